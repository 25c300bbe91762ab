"""The command line as a person and a program use it, against a real server and against none.

What talks to a server runs in this process, for speed; what has to be a process of its own is one.
"""

import hashlib
import json
import re
import signal
import stat
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from durable_memory.cli.application import app
from tests.integration.command_line import MANY_SECONDS, SECONDS, CommandLine, Processes
from tests.processes.server import ServerProcess

pytestmark = pytest.mark.timeout(MANY_SECONDS)

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("served")
    with ServerProcess(f"sqlite:///{folder / 'memory.db'}", folder / "server.log") as running:
        yield running


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess("memory:", tmp_path_factory.mktemp("other") / "server.log") as running:
        yield running


@pytest.fixture
def place(server: ServerProcess) -> dict[str, str]:
    """The variables that name the server, and in it a namespace of the test's own."""
    return {"DURABLE_MEMORY_ADDRESS": server.address, "DURABLE_MEMORY_SCOPE": uuid.uuid4().hex}


@pytest.fixture
def memory(place: dict[str, str], tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path, **place)


@pytest.fixture
def elsewhere(other_server: ServerProcess, tmp_path: Path) -> CommandLine:
    """Another store, with nothing in it that belongs to the test."""
    return CommandLine(tmp_path, DURABLE_MEMORY_ADDRESS=other_server.address)


@pytest.fixture
def alone(tmp_path: Path) -> Processes:
    """The command line with no server anywhere."""
    return Processes(tmp_path / "home")


@pytest.fixture
def in_kolkata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Half an hour beside the full hours of the others, all the year."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        yield
    time.tzset()


def test_what_is_remembered_is_recalled_with_its_citation(memory: CommandLine):
    remembered = memory.ok("remember", "The office opens at 8.", "--id", "office-hours", "--json").json

    assert remembered["outcome"] == "CREATED"
    found = memory.ok("recall", "when does the office open", "--json").json
    assert [hit["citation"] for hit in found["hits"]] == [remembered["citation"]]
    lines = memory.ok("recall", "office").out.splitlines()
    assert lines[1].startswith("office-hours@1 ")
    assert lines[1].rstrip().endswith("The office opens at 8.")


def test_a_candidate_is_recalled_only_after_somebody_activated_the_revision_that_they_read(memory: CommandLine):
    memory.ok("propose", "The user prefers tea.", "--id", "tea", "--source", "session:1", "--source-text", "tea please")

    assert "tea@1" in memory.ok("candidates").out
    assert memory.ok("recall", "tea", "--json").json["hits"] == []
    bare = memory("activate", "tea")
    assert bare.code == 2
    assert "tea@1" in bare.err
    assert memory.ok("activate", "tea@1", "--note", "heard it myself").out == "active: tea@2\n"
    assert len(memory.ok("recall", "tea", "--json").json["hits"]) == 1
    shown = memory.ok("show", "tea").out
    assert "session:1" in shown
    assert "decided by" in shown


def test_of_several_candidates_what_is_refused_is_named_and_the_rest_is_done(memory: CommandLine):
    memory.ok("propose", "One.", "--id", "one")
    memory.ok("propose", "Two.", "--id", "two")
    memory.ok("remember", "Three.", "--id", "three")

    done = memory("reject", "one@1", "three@1", "two@1", "--json")

    assert done.code == 1
    assert [line["outcome"] for line in done.lines] == ["REJECTED", "REFUSED", "REJECTED"]
    error = json.loads(done.err)
    assert (error["error"]["reason"], error["advice"] is not None) == ("INVALID_TRANSITION", True)
    again = memory.ok("propose", "One.")
    assert again.out.startswith("rejected before: one@2")
    assert memory.ok("propose", "One.", "--repropose", "--json").json["outcome"] == "CREATED"


def test_a_rule_may_decide_and_a_person_and_a_rule_may_not_both(memory: CommandLine):
    memory.ok("propose", "Ruled.", "--id", "ruled")

    assert memory("activate", "ruled@1", "--rule", "quotes@3", "--by", "somebody").code == 2
    assert memory("activate", "ruled@1", "--rule", "quotes").code == 2
    memory.ok("activate", "ruled@1", "--rule", "quotes@3")
    kinds = [evidence["kind"] for evidence in memory.ok("show", "ruled", "--json").json["node"]["evidence"]]
    assert kinds == ["USER_STATEMENT", "VERIFICATION"]


def test_a_correction_leaves_the_old_citation_readable_and_refuses_whoever_has_not_read_it(memory: CommandLine):
    first = memory.ok("remember", "Opens at 8.", "--id", "hours", "--json").json["citation"]
    memory.ok("revise", "hours@1", "Opens at 9.", "--note", "read off the door")

    late = memory("revise", "hours@1", "Opens at 10.")

    assert late.code == 1
    assert "REVISION_CONFLICT" in late.err
    assert "hours@2" in late.err
    old = memory.ok("show", first)
    assert "Opens at 8." in old.out
    assert "hours@2 now" in old.out
    history = memory.ok("show", "hours", "--history", "--json").json["history"]
    assert [(node["revision"], node["content"]) for node in history] == [(1, "Opens at 8."), (2, "Opens at 9.")]


def test_a_memory_is_retired_brought_back_and_superseded(memory: CommandLine):
    memory.ok("remember", "Lunch is at noon.", "--id", "lunch")

    assert memory.ok("retire", "lunch@1").out == "retired: lunch@2\n"
    assert "(tenant" not in memory.ok("recall", "lunch").out
    refused = memory("retire", "lunch@2")
    assert refused.code == 1
    assert "reactivate" in refused.err
    assert memory.ok("reactivate", "lunch@2").out == "active again: lunch@3\n"
    assert memory.ok("supersede", "lunch@3", "Lunch is at one.", "--id", "lunch-2").out == (
        "lunch@4 is superseded by lunch-2@1\n"
    )
    assert memory.ok("list").out.splitlines()[1].startswith("lunch-2@1 ")
    assert len(memory.ok("list", "--all", "--json").lines) == 2
    assert memory.ok("list", "--at", "1", "--json").lines[0]["id"] == "lunch"


def test_text_comes_from_the_command_line_stdin_or_a_file_as_it_is(memory: CommandLine, tmp_path: Path):
    file = tmp_path / "note.txt"
    file.write_text("from a file\nin two lines\n", encoding="utf-8")

    memory.ok("remember", "-", "--id", "piped", stdin="用户喜欢喝绿茶。\n".encode())
    memory.ok("remember", "--file", str(file), "--id", "filed")

    contents = {node["id"]: node["content"] for node in memory.ok("list", "--json").lines}
    assert contents == {"piped": "用户喜欢喝绿茶。", "filed": "from a file\nin two lines"}
    assert memory.ok("recall", "绿茶", "--json").json["hits"][0]["content"] == "用户喜欢喝绿茶。"
    assert memory("remember").code == 2
    assert memory("remember", "both", "--file", str(file)).code == 2
    assert memory("remember", "-", stdin=b"\xff\xfe").code == 2


def test_a_memory_cannot_move_the_cursor_of_whoever_reads_it(memory: CommandLine):
    hostile = "before \x1b[2J\x1b]0;owned\x07 \u202eafter \x9bm"
    memory.ok("remember", hostile, "--id", "hostile", "--author", "a\x1b[31mb")

    for command in (["recall", "before"], ["show", "hostile"], ["list"], ["list", "--json"]):
        shown = memory.ok(*command).out
        assert not set("\x1b\x07\u202e\x9b") & set(shown), command
    assert memory.ok("list", "--json").lines[0]["content"] == hostile


def test_the_same_request_id_makes_a_change_once(memory: CommandLine):
    first = memory.ok("remember", "Once.", "--request-id", "r1", "--json").json

    assert memory.ok("remember", "Once.", "--request-id", "r1", "--json").json == first
    other = memory("remember", "Twice.", "--request-id", "r1")
    assert other.code == 1
    assert "IDEMPOTENCY_KEY_REUSED" in other.err


@pytest.mark.usefixtures("in_kolkata")
def test_times_are_shown_with_their_offset_and_read_in_the_same_zone(memory: CommandLine):
    memory.ok("remember", "Noon.", "--id", "noon", "--occurred", "2024-01-31T12:00")

    assert "2024-01-31 12:00 +05:30" in memory.ok("show", "noon").out
    assert "2024-01-31 06:30 UTC" in memory.ok("show", "noon", "--utc").out
    assert memory.ok("show", "noon", "--json").json["node"]["occurred_at"] == "2024-01-31T06:30:00.000000Z"
    assert memory.ok("recall", "noon", "--since", "2024-02-01", "--json").json["hits"] == []
    assert len(memory.ok("recall", "noon", "--until", "2024-02-01", "--json").json["hits"]) == 1
    wrong = memory("recall", "noon", "--since", "someday")
    assert wrong.code == 2
    assert "--since" in wrong.err


def test_explain_says_what_keeps_a_memory_out(memory: CommandLine):
    memory.ok("propose", "A candidate about tea.", "--id", "tea")

    why = memory.ok("explain", "tea", "tea", "--json").json

    assert (why["recalled"], why["exclusion"]) == (False, "NOT_ACTIVE")
    assert "not found: NOT_ACTIVE" in memory.ok("explain", "tea", "tea").out
    assert memory.ok("sessions", "--json").lines[0]["session_id"] == "command-line"
    assert memory.ok("usage").out == ""


def test_a_recall_shows_what_found_a_memory_and_takes_a_mode(memory: CommandLine):
    memory.ok("remember", "The office opens at 8.", "--id", "office-hours")

    header, line = memory.ok("recall", "office", "--mode", "lexical").out.splitlines()

    assert header.split() == ["name", "#", "score", "channel", "cosine", "memory"]
    assert line.split()[3:5] == ["lexical", "-"]
    auto = memory.ok("recall", "office", "--mode", "auto")
    assert auto.err == "warning: this server has no embedding provider; lexical recall only\n"
    assert memory.ok("recall", "office").err == ""
    refused = memory("recall", "office", "--mode", "hybrid")
    assert (refused.code, refused.out) == (1, "")
    assert "this server has no embedding provider" in refused.err
    assert memory("recall", "office", "--mode", "lexical", "--min-similarity", "0.5").code == 2


def test_sessions_are_listed_with_their_model_bound_anew_and_closed(memory: CommandLine):
    memory.ok("remember", "Tea.", "--id", "tea")
    memory.ok("explain", "tea", "tea")

    listed = memory.ok("sessions").out.splitlines()[1]
    assert listed.split()[:5] == ["command-line", "OPEN", "AUTO", "words", "only"]
    assert memory.ok("sessions", "rebind", "command-line").out == "bound: command-line, AUTO, words only\n"
    assert memory.ok("sessions", "--json").lines[0]["binding_version"] == 2
    assert "explain" in memory("sessions", "close", "command-line").err
    unknown = memory("sessions", "close", "nobody")
    assert (unknown.code, "SESSION_NOT_FOUND" in unknown.err) == (1, True)
    misplaced = memory("sessions", "--json", "close", "nobody")
    assert (misplaced.code, "stand after it" in misplaced.err) == (2, True)


def test_watch_prints_changes_in_order_and_ends_when_it_has_enough(
    memory: CommandLine, place: dict[str, str], tmp_path: Path
):
    memory.ok("remember", "First.", "--id", "first")
    watching = Processes(tmp_path, **place).start("watch", "--all", "--count", "2", "--json")
    assert watching.stdout is not None
    seen = json.loads(watching.stdout.readline())
    memory.ok("revise", "first@1", "First, revised.")

    rest, _ = watching.communicate(timeout=SECONDS)

    changes = [seen, *map(json.loads, rest.splitlines())]
    assert [change["change_set"]["method"] for change in changes] == ["Remember", "ReviseMemory"]
    assert changes[1]["nodes"][0]["content"] == "First, revised."
    assert watching.returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_watch_in_order(alone: Processes, number: signal.Signals, code: int):
    alone.ok("remember", "First.")
    watching = alone.start("watch", "--all")
    assert watching.stdout is not None
    watching.stdout.readline()

    watching.send_signal(number)

    _, errors = watching.communicate(timeout=SECONDS)
    assert (watching.returncode, errors) == (code, "")


def test_nothing_has_to_run_and_several_commands_at_once_take_turns(alone: Processes):
    started = [alone.start("remember", f"Fact number {number}.") for number in range(3)]
    for command in started:
        out, errors = command.communicate(timeout=SECONDS)
        assert command.returncode == 0, errors
        assert out.startswith("remembered: ")

    info = alone.ok("info", "--json").json
    assert info["opened"].endswith("durable-memory.db")
    assert info["address"] is None
    assert info["namespace"] == {"tenant": "local", "principal": "someone", "scope": "default"}
    assert info["change_token"]["namespace_revision"] == 3
    assert len(alone.ok("recall", "fact", "--json").json["hits"]) == 3


def test_a_command_finds_the_server_that_has_its_data_file_open(server: ServerProcess, alone: Processes):
    info = alone.ok("info", "--store", server.store, "--json").json

    assert (info["address"], info["opened"]) == (server.address, None)


def test_nobody_there_is_another_exit_code_and_says_how_to_go_on(alone: Processes):
    done = alone("recall", "tea", "--address", "127.0.0.1:1")

    assert done.code == 3
    assert "nobody answers at 127.0.0.1:1" in done.err
    assert "durable-memory serve" in done.err


@pytest.mark.parametrize("store", ["memory:", "bogus"])
def test_a_command_refuses_data_that_it_cannot_keep(alone: Processes, store: str):
    done = alone("remember", "Lost.", "--store", store)

    assert (done.code, done.out) == (2, "")
    assert done.err


def test_with_a_token_the_credential_says_what_is_not_stated(tmp_path: Path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    keys = tmp_path / "keys.json"
    digest = hashlib.sha256(b"s3cret").hexdigest()
    roles = ["reader", "writer"]
    names = {"tenants": ["acme"], "principals": ["user-1"], "scopes": ["notes"]}
    keys.write_text(json.dumps([{"sha256": digest, "name": "writer-1", "roles": roles, **names}]))
    keys.chmod(0o600)
    store = f"sqlite:///{tmp_path / 'memory.db'}"
    with ServerProcess(store, tmp_path / "server.log", args=["--credentials", str(keys)]) as server:
        bare = CommandLine(tmp_path, DURABLE_MEMORY_ADDRESS=server.address)
        known = CommandLine(tmp_path, DURABLE_MEMORY_ADDRESS=server.address, DURABLE_MEMORY_TOKEN_FILE=str(token))

        nobody = bare("candidates")
        assert nobody.code == 1
        assert "DURABLE_MEMORY_TOKEN" in nobody.err
        proposed = known.ok("propose", "Mine.", "--id", "mine", "--json").json
        assert proposed["outcome"] == "CREATED"
        assert known.ok("info", "--json").json["server"]["caller"] == "writer-1"
        refused = known("activate", "mine@1")
        assert refused.code == 1
        assert "role activator" in refused.err
        assert known("candidates", "--tenant", "other").code == 1
        by_variable = CommandLine(tmp_path, DURABLE_MEMORY_ADDRESS=server.address, DURABLE_MEMORY_TOKEN="s3cret")
        assert by_variable.ok("candidates", "--json").lines[0]["id"] == "mine"
    assert known("recall", "x", "--token", "s3cret").code == 2  # it would stand in every list of processes


def test_an_export_comes_back_complete_in_another_store(memory: CommandLine, elsewhere: CommandLine, tmp_path: Path):
    first = memory.ok("remember", "The office opens at 8.", "--id", "hours", "--json").json
    memory.ok("revise", "hours@1", "The office opens at 9.")
    memory.ok("explain", "office", "hours")
    file = tmp_path / "export.jsonl"

    memory.ok("export", str(file))
    piped = memory.ok("export").out.splitlines()

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kinds = [next(iter(json.loads(line))) for line in file.read_text("utf-8").splitlines()]
    assert kinds[0] == "header"
    assert kinds[-1] == "footer"
    assert kinds.count("node_revision") == 2
    assert piped[1:] == file.read_text("utf-8").splitlines()[1:]
    imported = elsewhere.ok("import", str(file), "--json").json
    assert (imported["nodes"], imported["node_revisions"], imported["sessions"]) == (1, 2, 1)
    scope = json.loads(piped[0])["header"]["namespace"]["scope_id"]
    assert elsewhere.ok("show", first["citation"], "--scope", scope, "--json").json["node"]["content"] == (
        "The office opens at 8."
    )
    source, copy = (command.ok("info", "--json", "--scope", scope).json for command in (memory, elsewhere))
    assert copy["change_token"]["namespace_revision"] == source["change_token"]["namespace_revision"]
    assert copy["change_token"]["history_id"] != source["change_token"]["history_id"]
    again = elsewhere("import", str(file))
    assert again.code == 1
    assert "REVISION_CONFLICT" in again.err
    assert elsewhere("import", str(file), "--scope", "other").code == 2


def test_an_export_that_does_not_verify_is_refused_with_its_line_and_nothing_is_kept(
    memory: CommandLine, elsewhere: CommandLine, tmp_path: Path
):
    memory.ok("remember", "The office opens at 8.", "--id", "hours")
    lines = memory.ok("export").out.splitlines(keepends=True)
    damaged = tmp_path / "damaged.jsonl"

    damaged.write_text("".join(lines).replace("opens at 8", "opens at 7"), encoding="utf-8")
    changed = elsewhere("import", str(damaged))
    damaged.write_text("".join(lines[:-1]), encoding="utf-8")
    cut = elsewhere("import", str(damaged))
    damaged.write_text("".join([*lines[:2], "{broken\n", *lines[2:]]), encoding="utf-8")
    broken = elsewhere("import", str(damaged))

    assert changed.code == 1
    assert "line 2 of" in changed.err
    assert "DATA_CORRUPTED" in changed.err
    assert cut.code == 1
    assert "DATA_CORRUPTED" in cut.err
    assert broken.code == 2
    assert "line 3 of" in broken.err
    scope = json.loads(lines[0])["header"]["namespace"]["scope_id"]
    assert elsewhere.ok("info", "--scope", scope, "--json").json["change_token"]["namespace_revision"] == 0


def test_a_reader_that_leaves_early_is_no_failure(memory: CommandLine, place: dict[str, str], tmp_path: Path):
    memory.ok("remember", "One.")

    shell = Processes(tmp_path, **place).run(
        ["bash", "-c", f"{sys.executable} -m durable_memory list --json | head -c 7"]
    )

    assert shell.communicate(timeout=SECONDS) == ('{"id": ', "")


def test_the_page_about_it_has_every_command_and_every_option_and_no_other():
    page = (_ROOT / "docs" / "command-line.md").read_text("utf-8")
    sections = dict(re.findall(r"^##+ (.+)\n((?:(?!##).*\n)*)", page, re.MULTILINE))
    shared = _options(sections["Where it looks"])
    groups = {f"#{title.lower().replace(' ', '-')}": _options(text) for title, text in sections.items()}
    commands = dict(_commands(typer.main.get_group(app)))

    for name in sorted(commands.keys() - {"serve", "migrate", "check-config"}):
        linked = [groups[link] for link in re.findall(r"\((#[a-z-]+)\)", sections[name])]
        # What is tried by killing has to be stated: it takes nothing from where the others look.
        looks = set() if name == "qualify" else shared
        written = looks.union(_options(sections[name]), *linked)
        assert written == {option for parameter in commands[name].params for option in parameter.opts if "--" in option}


def _commands(group: TyperGroup, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            if command.invoke_without_command:
                yield prefix + name, command
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _options(text: str) -> set[str]:
    return set(re.findall(r"`(--[a-z-]+)", text)) - {"--token"}
