"""Transactions beside each other: who waits for whom, and what they see after waiting."""

import asyncio
from dataclasses import replace

import asyncpg
import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRef
from durable_memory.domain.session import Context
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads
from tests.integration.postgres.conftest import OpenStore
from tests.integration.postgres.plans import (
    NAMESPACE,
    admission,
    admit,
    change,
    corroborate,
    corroborated,
    create,
    created,
    no_op,
    request,
    session_with_run,
)
from tests.processes.polling import wait_until_async
from tests.processes.sessions import waits_for_a_lock


async def test_each_store_sees_at_once_what_the_other_acknowledged(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database) for _ in range(2)]
    for number in range(1, 21):
        writer, reader = stores[number % 2], stores[(number + 1) % 2]
        outcome = await writer.transact(NAMESPACE, create(f"n{number}"))
        assert await reader.head(NAMESPACE) == outcome.head
        assert outcome.head.revision == number


async def test_writers_of_one_namespace_in_two_processes_are_serial(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database) for _ in range(2)]
    await asyncio.gather(*(stores[number % 2].transact(NAMESPACE, create(f"n{number}")) for number in range(40)))
    records = await stores[0].list_change_sets(NAMESPACE, after_revision=0, limit=100)
    assert [record.namespace_revision for record in records] == list(range(1, 41))


async def test_an_admission_that_waited_for_a_change_sees_its_result(open_store: OpenStore, postgres_database: str):
    """The revision that it waits for is replaced meanwhile, by one that was not there when its statement began."""
    store = await open_store(postgres_database)
    await store.transact(NAMESPACE, create("a"))
    changing, observer = [await asyncpg.connect(postgres_database) for _ in range(2)]
    try:
        # A change set of another process, stopped before its commit.
        transaction = changing.transaction()
        await transaction.start()
        await changing.execute("SET search_path = durable_memory")
        await _replace_by_hand(changing, "a", 2)
        call = asyncio.ensure_future(store.transact(NAMESPACE, admit(NodeRef("a", 1), "e", key="k")))
        await _until_waiting(observer)
        await transaction.commit()
        assert (await call).result == {"admitted": False, "new": True, "found": 2}
        assert (await store.transact(NAMESPACE, admit(NodeRef("a", 2), "e2"))).result["admitted"]
    finally:
        for connection in (changing, observer):
            await connection.close()


async def test_a_change_waits_for_the_admissions_of_its_node(open_store: OpenStore, postgres_database: str):
    store = await open_store(postgres_database)
    await store.transact(NAMESPACE, create("a"))
    await store.transact(NAMESPACE, create("b"))
    holder, observer = [await asyncpg.connect(postgres_database) for _ in range(2)]
    try:
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("SELECT FROM durable_memory.node_revision WHERE node_id = 'a' FOR SHARE")
        # Others may name the node as well.
        assert (await store.transact(NAMESPACE, admit(NodeRef("a", 1), "e"))).result["admitted"]
        call = asyncio.ensure_future(store.transact(NAMESPACE, corroborate("a", 1, "doc:2")))
        await _until_waiting(observer)
        await transaction.rollback()
        assert (await call).head.revision == 3
    finally:
        await holder.close()
        await observer.close()


async def test_changes_and_admissions_of_the_same_nodes_never_deadlock(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database, namespace_connections=4) for _ in range(2)]
    await stores[0].transact(NAMESPACE, change(*(created(f"n{number}") for number in range(6))))

    def admit_all(number: int) -> Plan:
        names = frozenset(f"n{index}" for index in range(6))
        context = str(number)

        def decide(loaded: Loaded) -> Decision:
            events = tuple(
                admission(f"{number}-{name}", NodeRef(name, loaded.nodes[name].revision), context) for name in names
            )
            return Decision(result={}, events=events)

        return Plan(lock=Lock.NODES, reads=Reads(node_ids=names), decide=decide)

    async def touch(number: int) -> None:
        store = stores[number % 2]
        names = [f"n{(number + step) % 6}" for step in range(6)]
        nodes = await store.current_nodes(NAMESPACE, names)
        operations = [corroborated(name, nodes[name].revision, f"touched:{number}") for name in names]
        try:
            await store.transact(NAMESPACE, change(*operations))
        except DomainError as error:
            assert error.reason is Reason.REVISION_CONFLICT  # noqa: PT017 - a lost race is as good as a won one

    await asyncio.gather(
        *(stores[number % 2].transact(NAMESPACE, admit_all(number)) for number in range(30)),
        *(touch(number) for number in range(15)),
    )
    assert len(await stores[0].list_events(NAMESPACE, kind=None, after_event_id="", limit=500)) == 180


async def test_an_equal_admission_waits_for_the_first_and_replays_it(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database, namespace_connections=4) for _ in range(2)]
    await stores[0].transact(NAMESPACE, create("a"))
    outcomes = await asyncio.gather(
        *(store.transact(NAMESPACE, admit(NodeRef("a", 1), "e", key="k")) for store in stores * 4)
    )
    assert sum(not outcome.replayed for outcome in outcomes) == 1
    assert all(outcome.result == {"admitted": True, "new": True, "found": 1} for outcome in outcomes)


async def test_of_two_calls_that_record_one_event_one_sees_the_others(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database, namespace_connections=4) for _ in range(2)]
    await stores[0].transact(NAMESPACE, create("a"))
    outcomes = await asyncio.gather(*(store.transact(NAMESPACE, admit(NodeRef("a", 1), "e")) for store in stores * 4))
    assert sum(bool(outcome.result["new"]) for outcome in outcomes) == 1


async def test_admissions_of_one_run_take_turns_at_its_contexts(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database, namespace_connections=4) for _ in range(2)]
    await stores[0].transact(NAMESPACE, session_with_run())
    first = Context.of("session-1", "run-1", "a", 0)

    def advance(loaded: Loaded) -> Decision:
        (run,) = loaded.runs.values()
        following = Context.of("session-1", "run-1", "a", run.sequence + 1)
        run = replace(run, sequence=following.sequence, context_id=following.context_id)
        return Decision(result={"sequence": run.sequence}, runs=(run,), contexts=(following,))

    plan = Plan(lock=Lock.NODES, reads=Reads(contexts=frozenset({first.context_id})), decide=advance)
    outcomes = await asyncio.gather(*(store.transact(NAMESPACE, plan) for store in stores * 6))
    assert {outcome.result["sequence"] for outcome in outcomes} == set(range(1, 13))


async def test_a_busy_namespace_leaves_connections_to_the_others(open_store: OpenStore, postgres_database: str):
    # Nobody has to wait for the busy one, however long that is.
    bounds = {"lock_timeout_seconds": 1_000.0, "statement_timeout_seconds": 1_000.0}
    store = await open_store(postgres_database, write_connections=3, namespace_queue=20, **bounds)
    busy, other = Namespace("acme", "busy", "default"), Namespace("acme", "other", "default")
    await store.transact(busy, create("a"))
    blocker = await asyncpg.connect(postgres_database)
    try:
        transaction = blocker.transaction()
        await transaction.start()
        await blocker.execute("SELECT FROM durable_memory.namespace FOR UPDATE")
        waiting = [asyncio.ensure_future(store.transact(busy, create(f"n{number}"))) for number in range(21)]
        await asyncio.sleep(0)
        with pytest.raises(DomainError) as caught:
            await store.transact(busy, create("one too many"))
        assert caught.value.reason is Reason.OVERLOADED
        assert (await asyncio.wait_for(store.transact(other, create("a")), 60)).head.revision == 1
        await transaction.rollback()
        await asyncio.gather(*waiting)
    finally:
        await blocker.close()
    # First come, first served.
    records = await store.list_change_sets(busy, after_revision=1, limit=100)
    assert [record.changes[0].node_id for record in records] == [f"n{number}" for number in range(21)]


async def test_a_lock_that_is_held_too_long_is_an_overload(open_store: OpenStore, postgres_database: str):
    store = await open_store(postgres_database, lock_timeout_seconds=0.1)
    await store.transact(NAMESPACE, create("a"))
    blocker = await asyncpg.connect(postgres_database)
    try:
        async with blocker.transaction():
            await blocker.execute("SELECT FROM durable_memory.namespace FOR UPDATE")
            with pytest.raises(DomainError) as caught:
                await store.transact(NAMESPACE, create("b"))
    finally:
        await blocker.close()
    assert caught.value.reason is Reason.OVERLOADED


async def test_a_pool_without_a_free_connection_is_an_overload(open_store: OpenStore, postgres_database: str):
    store = await open_store(postgres_database, write_connections=1, acquire_timeout_seconds=0.1)
    await store.transact(NAMESPACE, create("a"))
    blocker, observer = [await asyncpg.connect(postgres_database) for _ in range(2)]
    try:
        transaction = blocker.transaction()
        await transaction.start()
        await blocker.execute("SELECT FROM durable_memory.namespace FOR UPDATE")
        waiting = asyncio.ensure_future(store.transact(NAMESPACE, create("b")))
        await _until_waiting(observer)
        with pytest.raises(DomainError) as caught:
            await store.transact(Namespace("acme", "other", "default"), no_op())
        await transaction.rollback()
        await waiting
    finally:
        await blocker.close()
        await observer.close()
    assert caught.value.reason is Reason.OVERLOADED


async def test_a_request_of_both_kinds_of_plan_is_one_request(open_store: OpenStore, postgres_database: str):
    stores = [await open_store(postgres_database) for _ in range(2)]
    plans = [
        Plan(lock=lock, reads=Reads(), decide=lambda loaded: Decision(result={}), request=request("k"))
        for lock in (Lock.NAMESPACE, Lock.NODES)
    ]
    outcomes = await asyncio.gather(
        *(store.transact(NAMESPACE, plan) for store in stores for plan in plans for _ in range(3))
    )
    assert sum(not outcome.replayed for outcome in outcomes) == 1


async def _replace_by_hand(connection: asyncpg.Connection, node_id: str, namespace_revision: int) -> None:
    await connection.execute("UPDATE namespace SET revision = $1", namespace_revision)
    await connection.execute(
        "INSERT INTO change_set SELECT namespace_key, $1, method, request_id, caller, note, occurred_at, committed_at,"
        " changes, chain_digest FROM change_set WHERE namespace_revision = 1",
        namespace_revision,
    )
    await connection.execute(
        "UPDATE node_revision SET valid_to = $1 WHERE node_id = $2 AND valid_to IS NULL", namespace_revision, node_id
    )
    await connection.execute(
        "INSERT INTO node_revision SELECT namespace_key, node_id, revision + 1, kind, status, content, content_digest,"
        " surroundings, author, occurred_at, confidence, importance, evidence, relations, labels, created_at,"
        " updated_at, committed_at, decided_by, $1, NULL FROM node_revision WHERE node_id = $2",
        namespace_revision,
        node_id,
    )


async def _until_waiting(observer: asyncpg.Connection) -> None:
    await wait_until_async(lambda: waits_for_a_lock(observer), what="somebody waits for a lock")
