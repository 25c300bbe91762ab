"""How connections are set up, and what every statement costs."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from durable_memory.adapters import sqlite
from durable_memory.adapters.sqlite.connection import connect
from durable_memory.adapters.sqlite.statements import SQL

QUERIES = sorted(name for name, text in SQL.items() if re.search(r"^(SELECT|UPDATE)", text, re.MULTILINE))

SORTED = {
    "due_refreshes": "the namespaces of a generation that are due",
    "list_refresh_runs": "the last 64 runs of a partition",
    "changed_nodes": "the nodes of a delta, which the index has in the order of commits",
    "nodes_by_content": "the few nodes with one of a few contents",
    "revisions_committed_at": "the nodes of a few change sets",
}
"""Queries that sort, and what: nothing that grows with the namespace."""

OWNED_BY = ("namespace_key=?", "partition=?", "(name=?)")
"""A row is a namespace's, by its key, or a partition's, by the digest of namespace and generation; leases are too."""

ACROSS_NAMESPACES = {"due_refreshes": ("SCAN bound", "SCAN waiting")}
"""What the scheduler asks: by the generation, and with the scans of its own intermediate results."""

OF_THE_SERVER = {
    "ping",
    "add_store",
    "page_token_keys",
    "add_page_token_key",
    "forget_page_token_keys",
    "served_generation",
    "record_generation",
}
"""About no namespace: the store itself, its keys, and what a configured embedding provider makes."""


@pytest.fixture
def reader(store, path):
    with closing(connect(path, writer=False)) as connection:
        yield connection


def test_every_commit_waits_for_the_disk(store):
    pragmas = {
        name: store._database.writer.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys")
    }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_readers_cannot_write(reader):
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM node_revisions")


@pytest.mark.parametrize("name", QUERIES)
def test_no_query_reads_more_than_its_index_says(reader, name):
    parameters = dict.fromkeys(re.findall(r":(\w+)", SQL[name]))
    parameters |= {key: "[]" for key in parameters if key.endswith("s")}
    plan = [row[3] for row in reader.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", parameters)]
    scans = [step for step in plan if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
    own = ACROSS_NAMESPACES.get(name, ())
    assert [step for step in scans if step not in own] == (
        [] if name != "page_token_keys" else ["SCAN page_token_keys"]
    )
    assert any("TEMP B-TREE" in step for step in plan) == (name in SORTED)
    for step in plan:
        if step.startswith("SEARCH") and name != "ping":
            by_generation = "authority_digest=?" in step and name in ACROSS_NAMESPACES
            by_configuration = "(configuration_digest=?)" in step and name in OF_THE_SERVER
            assert by_generation or by_configuration or any(owner in step for owner in OWNED_BY), step


def test_the_owners_name_stands_in_every_statement_on_what_it_holds():
    alone = OF_THE_SERVER | ACROSS_NAMESPACES.keys()
    for name, text in SQL.items():
        if re.search(r"^(SELECT|UPDATE|INSERT)", text, re.MULTILINE) and name not in alone:
            assert re.search(r":(namespace_key|partitions?|name)\b", text), name


def test_every_statement_is_used():
    package = Path(sqlite.__file__).parent
    code = "\n".join(file.read_text("utf-8") for file in package.rglob("*.py"))
    assert [name for name in SQL if f'"{name}"' not in code] == []
