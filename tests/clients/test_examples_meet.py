"""The example agents of all languages over one server: what one of them heard, the others recall."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from durable_memory_client import Decision, MemoryClient
from durable_memory_client.testing import EmbeddedServer

_CLIENTS = Path(__file__).resolve().parents[2] / "clients"
_SECONDS = 300

# What each agent says in its turn; what those before it said it must recall.
_TURNS = {
    "python": "I would rather have oolong tea.",
    "go": "The oolong comes from Anxi.",
    "node": "Oolong is steeped for three minutes.",
}
_AGENTS = {
    "python": [sys.executable, str(_CLIENTS / "python" / "examples" / "chat_turn.py")],
    "go": ["go", "-C", str(_CLIENTS / "go"), "run", "./examples/chatturn"],
    "node": ["node", str(_CLIENTS / "node" / "build" / "examples" / "chat-turn.js")],
}


def _say(language: str, text: str, server: EmbeddedServer) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
    answer = subprocess.run(
        [*_AGENTS[language], text],
        env={**kept, "DURABLE_MEMORY_ADDRESS": server.address},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """A server of its own: the agents share a namespace that other tests of them use too."""
    for tool in ("go", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed: its agent is not run")
    repository = _CLIENTS.parent
    for command in (["tools/setup_node"], ["npm", "--prefix", "clients/node", "run", "--silent", "build:tests"]):
        subprocess.run(command, cwd=repository, check=True, timeout=_SECONDS)
    with EmbeddedServer() as started:
        yield started


@pytest.mark.timeout(_SECONDS)
async def test_what_one_agent_heard_the_agents_in_other_languages_recall(server: EmbeddedServer):
    async with MemoryClient(server.address, tenant="demo", principal="user-1", scope="chat") as memory:
        heard: list[str] = []
        for language, text in _TURNS.items():
            answer = await asyncio.to_thread(_say, language, text, server)
            assert all(earlier in answer for earlier in heard), (language, answer)
            (candidate,) = await memory.list_candidates().all()
            assert candidate.content == text
            await memory.activate(candidate, Decision.manual())
            heard.append(text)
        answer = await asyncio.to_thread(_say, "python", "Tell me about oolong.", server)
        assert all(text in answer for text in heard)
        # Each turn admitted all that it was shown, and its answer quotes all of that with the marks.
        usage = await memory.usage().all()
        assert sum(row.admission_count for row in usage) == 1 + 2 + 3
        assert sum(row.use_count for row in usage) == 1 + 2 + 3
