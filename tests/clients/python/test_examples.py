"""The example of a chat turn: short, and true."""

import subprocess
import sys
from pathlib import Path

import pytest

from clients.python.examples.chat_turn import chat_turn
from durable_memory_client import Decision, MemoryClient
from durable_memory_client.aio import calls
from durable_memory_client.testing import EmbeddedServer
from tests.processes.free_port import free_port

_EXAMPLE = Path(__file__).resolve().parents[3] / "clients" / "python" / "examples" / "chat_turn.py"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """How soon the server answers is not what these tests judge."""
    monkeypatch.setattr(calls, "PATIENCE_SECONDS", 60.0)


def test_the_example_is_short():
    assert len(_EXAMPLE.read_text().splitlines()) < 40


async def test_what_one_turn_heard_the_next_one_remembers_once_it_is_activated(durable_memory_client: MemoryClient):
    async with durable_memory_client as memory:
        first = await chat_turn(memory, "I'd rather have tea.")
        (candidate,) = await memory.list_candidates().all()
        assert (await chat_turn(memory, "What about tea?")).count("[m1]") == 0

        await memory.activate(candidate, Decision.manual())
        second = await chat_turn(memory, "Some tea, then?")

        assert "I remember" not in first
        assert "I'd rather have tea." in second
        (usage,) = await memory.usage().all()
        assert (usage.admission_count, usage.use_count) == (1, 1)


async def test_a_turn_that_nothing_can_be_looked_up_for_is_a_turn_too(durable_memory_client: MemoryClient):
    async with durable_memory_client as memory:
        assert await chat_turn(memory, "👍") == "You said: 👍"
        assert await chat_turn(memory, "a half \ud83d and a \0") == "You said: a half ? and a  "
        assert {node.content async for node in memory.list_candidates()} == {"👍", "a half ? and a  "}


async def test_a_turn_without_memory_is_answered_all_the_same(capsys):
    async with MemoryClient(f"127.0.0.1:{free_port()}", tenant="demo", principal="user-1", scope="chat") as memory:
        assert await chat_turn(memory, "Hello?") == "You said: Hello?"
    assert "this turn may not have been kept" in capsys.readouterr().err


def test_the_example_runs_as_its_docstring_says(durable_memory_server: EmbeddedServer):
    answer = subprocess.run(
        [sys.executable, str(_EXAMPLE), "I'd rather have tea."],
        env={"DURABLE_MEMORY_ADDRESS": durable_memory_server.address},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.stdout == "You said: I'd rather have tea.\n"
    assert answer.stderr == ""
