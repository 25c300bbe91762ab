"""Disks fill up, files rot, commits fail: what a caller is told then is true."""

import asyncio
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from durable_memory.adapters.runtime import SystemIds
from durable_memory.adapters.sqlite import SqliteStore, connection
from durable_memory.adapters.sqlite.connection import connect
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads
from tests.conformance.samples import MANY, apply, create, ids, node, request_key, session, writing
from tests.processes.polling import wait_until_async

_PATIENCE_SECONDS = 60.0


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorcode = code
    return error


class WatchedCommits:
    """A writing connection that counts its commits, of which number `fails` fails with or without having happened."""

    def __init__(self, real: sqlite3.Connection, *, fails: int = 0, code: int = 0, applied: bool = False) -> None:
        self._real = real
        self._fails = fails
        self._code = code
        self._applied = applied
        self.commits = 0

    def commit(self) -> None:
        self.commits += 1
        if self.commits != self._fails or self._applied:
            self._real.commit()
        if self.commits == self._fails:
            raise sqlite_error(self._code)

    def __getattr__(self, name: str):
        return getattr(self._real, name)


class Gate:
    """A plan that holds the writer's thread until it is released, so that what comes meanwhile waits together."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()

    def plan(self) -> Plan:
        def decide(loaded: Loaded) -> Decision:
            self.reached.set()
            assert self.released.wait(_PATIENCE_SECONDS), "nobody let it go"
            return Decision(result={})

        return Plan(lock=Lock.NODES, reads=Reads(), decide=decide)


async def _together(store, namespace, *calls) -> list[Any]:
    """What the calls answer when they wait for the writer at the same time."""
    gate = Gate()
    first = asyncio.ensure_future(store.transact(namespace, gate.plan()))
    await wait_until_async(gate.reached.is_set)
    others = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    gate.released.set()
    await first
    return await asyncio.gather(*others, return_exceptions=True)


async def _failure(call) -> DomainError:
    with pytest.raises(DomainError) as failure:
        await call
    return failure.value


async def test_a_full_disk_is_definite_and_passes(store, namespace):
    await apply(store, namespace, create("n"))
    (pages,) = store._database.writer.execute("PRAGMA page_count").fetchone()
    store._database.writer.execute(f"PRAGMA max_page_count = {pages}")
    failure = await _failure(apply(store, namespace, create("big", "x" * 60_000), key="k"))
    assert (failure.reason, failure.metadata) == (Reason.DEPENDENCY_UNAVAILABLE, {"dependency": "store"})
    assert await store.current_nodes(namespace, ["big"]) == {}
    await store.check()
    store._database.writer.execute("PRAGMA max_page_count = 1000000")
    outcome = await apply(store, namespace, create("big", "x" * 60_000), key="k")
    assert (outcome.replayed, outcome.head.revision) == (False, 2)


async def test_on_a_full_disk_the_plans_that_fit_are_written(store, namespace):
    await apply(store, namespace, create("n"))
    (pages,) = store._database.writer.execute("PRAGMA page_count").fetchone()
    store._database.writer.execute(f"PRAGMA max_page_count = {pages + 4}")
    calls = [apply(store, namespace, create(f"n{size}", "x" * size)) for size in (60_000, 10, 50_000, 20)]
    answers = await _together(store, namespace, *calls)
    assert [getattr(answer, "reason", None) for answer in answers] == [
        Reason.DEPENDENCY_UNAVAILABLE,
        None,
        Reason.DEPENDENCY_UNAVAILABLE,
        None,
    ]
    assert (await store.head(namespace)).revision == 3


@pytest.mark.parametrize("applied", [False, True])
async def test_a_commit_that_fails_in_the_dark_is_unknown_and_the_last_one(store, path, namespace, applied):
    await apply(store, namespace, create("n"), key="first")
    store._database.writer = WatchedCommits(
        store._database.writer, fails=1, code=sqlite3.SQLITE_IOERR_FSYNC, applied=applied
    )
    assert (await _failure(apply(store, namespace, create("m"), key="k"))).reason is Reason.OUTCOME_UNKNOWN

    assert (await _failure(apply(store, namespace, create("o")))).reason is Reason.DEPENDENCY_UNAVAILABLE
    assert (await _failure(store.check())).reason is Reason.DEPENDENCY_UNAVAILABLE
    assert (await node(store, namespace, "n")).revision == 1

    await store.close()
    restarted = SqliteStore(path, SystemIds())
    await restarted.open()
    outcome = await apply(restarted, namespace, create("m"), key="k")
    assert (outcome.replayed, outcome.head.revision) == (applied, 2)
    await restarted.close()


async def test_when_a_commit_fails_in_the_dark_what_was_refused_is_definite(store, namespace):
    store._database.writer = WatchedCommits(store._database.writer, fails=2, code=sqlite3.SQLITE_IOERR_WRITE)
    answers = await _together(
        store, namespace, apply(store, namespace, create("n")), apply(store, namespace, create("n"))
    )
    assert [answer.reason for answer in answers] == [Reason.OUTCOME_UNKNOWN, Reason.DEPENDENCY_UNAVAILABLE]


async def test_plans_that_wait_together_are_committed_together(store, namespace):
    watched = store._database.writer = WatchedCommits(store._database.writer)
    answers = await _together(
        store, namespace, *(apply(store, namespace, create(f"n{number}")) for number in range(20))
    )
    assert [answer.head.revision for answer in answers] == list(range(1, 21))
    assert watched.commits == 2


async def test_a_call_that_is_cancelled_while_it_waits_is_not_written(store, namespace):
    gate = Gate()
    first = asyncio.ensure_future(store.transact(namespace, gate.plan()))
    await wait_until_async(gate.reached.is_set)
    calls = [asyncio.ensure_future(apply(store, namespace, create(name))) for name in ("a", "b", "c")]
    await asyncio.sleep(0)
    calls[1].cancel()
    await asyncio.wait([calls[1]])
    assert calls[1].cancelled()
    gate.released.set()
    await asyncio.gather(first, calls[0], calls[2])
    assert set(await store.current_nodes(namespace, ["a", "b", "c"])) == {"a", "c"}


async def test_a_call_that_is_cancelled_while_it_is_decided_is_not_written(store, namespace):
    gate = Gate()
    call = asyncio.ensure_future(store.transact(namespace, replace(gate.plan(), request=request_key("k"))))
    await wait_until_async(gate.reached.is_set)
    call.cancel()
    await asyncio.wait([call])
    gate.released.set()
    await apply(store, namespace, create("n"))
    assert await store.find_request(namespace, "ApplyChangeSet", "k") is None


async def test_a_defect_of_the_writer_reaches_those_who_wait_and_ends_all_writing(store, namespace):
    class Defective:
        def execute(self, statement: str) -> None:
            raise RuntimeError("defect")

    await apply(store, namespace, create("n"))
    real, store._database.writer = store._database.writer, Defective()
    with pytest.raises(RuntimeError, match="defect"):
        await apply(store, namespace, create("m"))
    store._database.writer = real
    assert (await _failure(apply(store, namespace, create("m")))).reason is Reason.DEPENDENCY_UNAVAILABLE
    assert (await node(store, namespace, "n")).revision == 1


async def test_a_failed_commit_that_was_rolled_back_is_definite(store, namespace):
    store._database.writer = WatchedCommits(store._database.writer, fails=1, code=sqlite3.SQLITE_FULL)
    assert (await _failure(apply(store, namespace, create("n"), key="k"))).reason is Reason.DEPENDENCY_UNAVAILABLE
    assert not (await apply(store, namespace, create("n"), key="k")).replayed


async def test_one_plan_of_a_group_that_raises_leaves_the_others_alone(store, namespace):
    def decide(loaded: Loaded) -> Decision:
        raise KeyError("defect")

    answers = await _together(
        store,
        namespace,
        apply(store, namespace, create("a")),
        store.transact(namespace, Plan(lock=Lock.NAMESPACE, reads=Reads(), decide=decide)),
        apply(store, namespace, create("a")),
        store.transact(namespace, writing(runs=(), sessions=(session(namespace),))),
        apply(store, namespace, create("b")),
    )
    assert isinstance(answers[1], KeyError)
    assert [getattr(answer, "reason", None) for answer in answers] == [
        None,
        None,
        Reason.NODE_ALREADY_EXISTS,
        None,
        None,
    ]
    changed = await store.changed_nodes(namespace, after_revision=0, at_revision=2, after_node_id="", limit=MANY)
    assert ids(changed) == ["a", "b"]


async def test_a_file_that_another_tool_holds_is_unavailable_for_a_while(path, namespace, monkeypatch):
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_SECONDS", 0.05)
    store = SqliteStore(path, SystemIds())
    await store.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as tool:
        tool.execute("BEGIN IMMEDIATE")
        assert (await _failure(apply(store, namespace, create("n")))).reason is Reason.DEPENDENCY_UNAVAILABLE
        assert (await store.head(namespace)).revision == 0
        tool.execute("ROLLBACK")
    assert (await apply(store, namespace, create("n"))).head.revision == 1
    await store.close()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("node_revisions", "evidence", '[{"uri": "u"}]'),
        ("node_revisions", "labels", "[1]"),
        ("node_revisions", "relations", '[{"kind": 9, "node_id": "x"}]'),
        ("node_revisions", "committed_at", 2**62),
    ],
)
async def test_a_row_that_makes_no_sense_is_reported_as_corrupt(store, path, namespace, table, column, value):
    await apply(store, namespace, create("n"))
    with closing(connect(path, writer=True)) as tool:
        tool.execute(f"UPDATE {table} SET {column} = ?", (value,))  # noqa: S608 - names out of this test
    failure = await _failure(store.current_nodes(namespace, ["n"]))
    assert (failure.reason, failure.metadata) == (Reason.DATA_CORRUPTED, {"what": "node revision"})
    assert (await _failure(apply(store, namespace, create("n")))).reason is Reason.DATA_CORRUPTED
    await apply(store, namespace, create("m"))


async def test_a_damaged_file_is_reported_as_corrupt(path, namespace):
    store = SqliteStore(path, SystemIds())
    await store.open()
    for number in range(20):
        await apply(store, namespace, create(f"n{number}", "x" * 5_000))
    await store.close()
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)

    async def open_and_read() -> None:
        await store.open()
        try:
            await store.list_revisions(namespace, "n1", after_revision=0, limit=1)
        finally:
            await store.close()

    assert (await _failure(open_and_read())).reason is Reason.DATA_CORRUPTED
