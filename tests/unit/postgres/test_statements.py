"""The named statements and the code that runs them."""

import re
from pathlib import Path

import durable_memory.adapters.postgres as package
from durable_memory.adapters.postgres.sql import STATEMENTS

_SOURCES = [path.read_text() for path in Path(package.__file__).parent.rglob("*.py")]


def test_every_statement_is_used():
    used = {name for source in _SOURCES for name in re.findall(r'"(\w+)"', source)}
    assert set(STATEMENTS) <= used


def test_every_name_that_the_code_runs_is_a_statement():
    pattern = r'(?:statement|fetch|fetch_row|execute)\(\s*"(\w+)"'
    # The few literals that are statements themselves.
    run = {name for source in _SOURCES for name in re.findall(pattern, source)} - {
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SELECT",
    }
    assert run <= set(STATEMENTS)


def test_statements_are_whole():
    for name, text in STATEMENTS.items():
        assert "--" not in text, name
        assert ";" not in text, name
        assert "{node" not in text, name


def test_every_statement_about_a_namespace_names_it():
    without = {name for name, text in STATEMENTS.items() if "namespace_key" not in text}
    assert without == {
        "server", "server_role", "schema_migrations", "schema_version", "page_token_keys", "lock_page_token_keys",
        "mint_page_token_key", "forget_page_token_keys", "vouch", "notify", "own_session", "session_is_executing",
        "served_generation", "record_generation",
    }  # fmt: skip
