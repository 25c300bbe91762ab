"""What the pages say is so: their programs run, their commands answer, their SQL works, their links lead somewhere."""

import os
import re
import shlex
import sqlite3
import subprocess
import sys
import uuid
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import asyncpg
import pytest

from durable_memory_client.sync import MemoryClient
from tests.conftest import StartServer

_ROOT = Path(__file__).resolve().parents[2]
_PAGES = [_ROOT / "README.md", _ROOT / "CONTRIBUTING.md", *sorted((_ROOT / "docs").glob("*.md"))]
_SECONDS = 60
_DONE = re.compile(r"(remembered|proposed|active|revised): .*")


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def _environment(**variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DURABLE_MEMORY_")}
    paths = os.pathsep.join([str(_ROOT / "service"), str(_ROOT / "clients" / "python" / "src")])
    return {**inherited, "PYTHONPATH": paths, **variables}


def _run(*command: str, **variables: str) -> str:
    done = subprocess.run(
        command, env=_environment(**variables), capture_output=True, text=True, timeout=_SECONDS, check=False
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


@pytest.mark.parametrize("page", ["docs/quick-start.md", "docs/command-line.md"])
def test_the_commands_of_a_page_answer_as_it_says(page: str, start_server: StartServer):
    server = start_server("memory:", env={"DURABLE_MEMORY_SERVER_EMBEDDING_PROVIDER": "local"})
    answered = 0
    for block in _blocks(_ROOT / page, "console"):
        for command, answer in re.findall(r"^\$ durable-memory (.+)\n?(.*)$", block, re.MULTILINE):
            arguments = [sys.executable, "-m", "durable_memory", *shlex.split(command)]
            said = _run(*arguments, DURABLE_MEMORY_ADDRESS=server.address)
            if _DONE.fullmatch(answer):
                assert said == answer + "\n"
                answered += 1
            elif answer.startswith("indexed: "):
                assert said.startswith(answer + "\n")
    assert answered


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if target and not target.startswith("https://"):
            assert (page.parent / target).exists(), target


@pytest.fixture
def roles() -> dict[str, str]:
    """The roles of the page under names of the test's own: they belong to the whole PostgreSQL server."""
    mark = uuid.uuid4().hex[:8]
    return {"memory_owner": f"owner_{mark}", "memory_server": f"server_{mark}"}


async def test_a_server_with_the_rights_of_the_page_does_everything_and_can_delete_nothing(
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
