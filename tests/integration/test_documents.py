"""What the pages say is so: their programs run, their commands answer, their SQL works, their links lead somewhere."""

import os
import pty
import re
import shlex
import sqlite3
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import asyncpg
import pytest

from durable_memory_client.sync import MemoryClient
from tests.conftest import StartServer
from tests.integration.command_line import MANY_SECONDS, ROOMY, SECONDS

_ROOT = Path(__file__).resolve().parents[2]
_PAGES = [
    *(_ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((_ROOT / "docs").glob("*.md")),
    *sorted(_ROOT.glob("clients/*/README.md")),
    *sorted(_ROOT.glob("benchmarks/README.md")),
    _ROOT / "tests/qualification/README.md",
]
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_COSINE = re.compile(r"\b\d\.\d{3}\b")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def _environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
    paths = os.pathsep.join([str(_ROOT / "service"), str(_ROOT / "clients" / "python" / "src")])
    return {**inherited, **ROOMY, "PYTHONPATH": paths, **variables}


def _run(*command: str, **variables: str) -> str:
    done = subprocess.run(
        command, env=_environment(**variables), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize(
    ("page", "printed"), [("README.md", "The user prefers tea."), ("docs/quick-start.md", "office-hours 1 1")]
)
def test_the_first_program_of_a_page_runs_as_it_stands(start_server: StartServer, page: str, printed: str):
    server = start_server("memory:")

    said = _run(sys.executable, "-c", _blocks(_ROOT / page, "python")[0], DURABLE_MEMORY_ADDRESS=server.address)

    assert printed in said


@pytest.mark.timeout(MANY_SECONDS)
@pytest.mark.parametrize("page", ["docs/quick-start.md", "docs/command-line.md"])
def test_the_commands_of_a_page_answer_as_it_says_with_nothing_running(page: str, tmp_path: Path):
    answered = 0
    for block in _blocks(_ROOT / page, "console"):
        for command, answer in re.findall(r"^\$ durable-memory (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            said = _at_a_terminal(*shlex.split(command), home=tmp_path)
            if answer:
                assert _agrees(said, answer), said
                answered += 1
    assert answered


def _at_a_terminal(*arguments: str, home: Path) -> str:
    """What a person sees of a command, line by line: at a terminal there are tables."""
    terminal, slave = pty.openpty()
    environment = _environment(
        XDG_DATA_HOME=str(home),
        LOGNAME="someone",
        COLUMNS="100",
        LINES="50",  # or a dumb terminal has 80 columns
        TERM="dumb",
        DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER="local",
    )
    command = subprocess.Popen(
        [sys.executable, "-m", "durable_memory", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    said = b"".join(_read(terminal))
    assert command.wait(SECONDS) == 0, said
    return said.decode().replace("\r\n", "\n")


def _read(terminal: int) -> Iterator[bytes]:
    with open(terminal, "rb", buffering=0) as source:
        while True:
            try:
                part = source.read(65_536)
            except OSError:  # nobody is left to write to it
                return
            if not part:
                return
            yield part


def _agrees(said: str, answer: str) -> bool:
    """Whether it is the answer of a page, where "…" is anything, and cosines are those of another processor."""
    said, answer = _settled(said), _settled(answer)
    cosines, expected = (list(map(float, _COSINE.findall(text))) for text in (said, answer))
    pattern = ".*".join(map(re.escape, _COSINE.sub("0.000", answer).split("…")))
    same_words = re.fullmatch(pattern, _COSINE.sub("0.000", said)) is not None
    return same_words and cosines == pytest.approx(expected, abs=0.005)


def _settled(text: str) -> str:
    """Without what no two runs share: how long it took, and spaces at the end of a line."""
    text = re.sub(r"\d+\.\d+ s$", "0 s", text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def test_a_cosine_of_another_processor_is_the_same_answer_and_nothing_else_is():
    assert _agrees("1  0.860  tea\n", "1  0.859  tea\n")
    assert not _agrees("1  0.866  tea\n", "1  0.859  tea\n")
    assert not _agrees("1  0.859  rain\n", "1  0.859  tea\n")
    assert not _agrees("1  tea\n", "1  0.859  tea\n")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path):
    for link in _LINK.findall(_FENCED.sub("", page.read_text("utf-8"))):
        file, _, heading = link.partition("#")
        if not link.startswith("https://"):
            target = page.parent / file if file else page
            assert target.exists(), link
            assert not heading or heading in _anchors(target), link


def _anchors(page: Path) -> set[str]:
    """What links to the headings of a page are made of."""
    words = [
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
        for heading in _HEADING.findall(_FENCED.sub("", page.read_text("utf-8")))
    ]
    again = Counter(words) - Counter(set(words))
    assert not again, f"{page}: two headings of one name, so a link to it is to the first"
    return set(words)


@pytest.fixture
def roles() -> dict[str, str]:
    """The roles of the page under names of the test's own: they belong to the whole PostgreSQL server."""
    mark = uuid.uuid4().hex[:8]
    return {"memory_owner": f"owner_{mark}", "memory_server": f"server_{mark}"}


async def test_a_server_with_the_rights_of_the_page_does_everything_and_can_delete_no_memory(
    postgres_empty_database: str, start_server: StartServer, roles: dict[str, str]
):
    creation, renewal, _ = (_named(block, roles) for block in _blocks(_ROOT / "docs" / "operations.md", "sql"))
    grants = files("durable_memory.adapters.postgres").joinpath("grants.sql").read_text("utf-8")
    superuser = await asyncpg.connect(postgres_empty_database)
    database = await superuser.fetchval("SELECT current_database()")
    try:
        await superuser.execute("".join(line for line in creation.splitlines(True) if line.startswith("CREATE ROLE")))
        await superuser.execute(f'ALTER DATABASE "{database}" OWNER TO {roles["memory_owner"]}')
        owner_dsn = _as(postgres_empty_database, roles["memory_owner"])
        _run(sys.executable, "-m", "durable_memory", "migrate", "--store", owner_dsn)
        with_owner = await asyncpg.connect(owner_dsn)
        await with_owner.execute(grants.replace(':"role"', roles["memory_server"]))

        server_dsn = _as(postgres_empty_database, roles["memory_server"])
        server = start_server(server_dsn)
        with MemoryClient(server.address, tenant="acme", principal="user-1", scope="notes") as memory:
            remembered = memory.remember("The office opens at 8.")
            memory.retire(memory.revise(remembered, content="The office opens at 9."))
            with memory.open_session("chat").run() as run:
                run.recall("office", admit=True)
            before = memory.get_change_token()
            assert list(memory.export_namespace())
        server.terminate()
        with_server = await asyncpg.connect(server_dsn)
        for forbidden in (
            "DELETE FROM durable_memory.node_revision",
            "UPDATE durable_memory.node_revision SET content = ''",
            "DROP TABLE durable_memory.namespace",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await with_server.execute(forbidden)
        await with_server.close()

        await with_owner.execute(renewal)
        await with_owner.close()
        server.restart()
        with MemoryClient(server.address, tenant="acme", principal="user-1", scope="notes") as memory:
            after = memory.get_change_token()
            assert memory.get(remembered).content == "The office opens at 8."
        server.terminate()
        assert after.namespace_revision == before.namespace_revision
        assert after.history_id != before.history_id
    finally:
        await superuser.execute(f'ALTER DATABASE "{database}" OWNER TO CURRENT_USER')
        for role in roles.values():
            await superuser.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")
        await superuser.close()


def test_a_restored_sqlite_file_gets_a_new_history_by_the_statements_of_the_page(
    start_server: StartServer, tmp_path: Path
):
    file = tmp_path / "memory.db"
    server = start_server(f"sqlite:///{file}")
    with MemoryClient(server.address, tenant="acme", principal="user-1", scope="notes") as memory:
        remembered = memory.remember("The office opens at 8.")
        before = memory.get_change_token()
    server.terminate()

    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(_blocks(_ROOT / "docs" / "operations.md", "sql")[2])

    server.restart()
    with MemoryClient(server.address, tenant="acme", principal="user-1", scope="notes") as memory:
        after = memory.get_change_token()
        assert memory.get(remembered).content == "The office opens at 8."
    assert after.namespace_revision == before.namespace_revision
    assert after.history_id != before.history_id


def _named(statements: str, roles: dict[str, str]) -> str:
    for written, name in roles.items():
        statements = statements.replace(written, name)
    return statements


def _as(dsn: str, role: str) -> str:
    return re.sub(r"//[^@]+@", f"//{role}@", dsn)
