"""A primary and its synchronous standby: what is acknowledged outlives the primary, and nobody believes the old one."""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from durable_memory.adapters.postgres import PostgresSettings, PostgresStore
from durable_memory.adapters.runtime import SystemIds
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.ports.store import Plan
from tests.integration.postgres.conftest import PATIENT, answers
from tests.integration.postgres.plans import NAMESPACE, create, no_op
from tests.processes.polling import wait_until_async
from tests.qualification.cluster.postgres_pair import DATABASE, PostgresPair

_IN_DOUBT = (Reason.OUTCOME_UNKNOWN, Reason.DEPENDENCY_UNAVAILABLE, Reason.OVERLOADED)

_log = logging.getLogger(__name__)


@pytest.fixture
async def pair() -> AsyncIterator[PostgresPair]:
    async with PostgresPair() as pair:
        yield pair


@pytest.fixture
async def store(pair: PostgresPair) -> AsyncIterator[PostgresStore]:
    async with _opened(pair.dsn) as store:
        yield store


@asynccontextmanager
async def _opened(dsn: str, **settings: Any) -> AsyncIterator[PostgresStore]:
    """All hosts answer, with more or less of it: each has all the time it needs to say when it was promoted."""
    bounds = {**PATIENT, "other_hosts_seconds": 60.0, "commit_timeout_seconds": 5.0, **settings}
    store = PostgresStore(dsn, ids=SystemIds(), settings=PostgresSettings(**bounds))
    try:
        await store.open()
        yield store
    finally:
        await store.close()


async def _reason(call) -> Reason:
    with pytest.raises(DomainError) as caught:
        await call
    return caught.value.reason


async def test_what_is_acknowledged_before_the_primary_is_killed_is_there_after_the_promotion(
    pair: PostgresPair, store: PostgresStore
):
    acknowledged: list[str] = []
    unknown: list[str] = []
    ended = asyncio.Event()

    async def write(prefix: int) -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            name = f"{prefix}-{number}"
            try:
                await store.transact(NAMESPACE, create(name, key=name))
            except DomainError as error:
                assert error.reason in _IN_DOUBT  # noqa: PT017 - nothing else may come
                if error.reason is Reason.OUTCOME_UNKNOWN:
                    unknown.append(name)
                await asyncio.sleep(0.02)
            else:
                acknowledged.append(name)

    waiter = asyncio.ensure_future(store.wait_for_change(NAMESPACE, 1_000_000))
    writers = [asyncio.ensure_future(write(number)) for number in range(4)]
    await wait_until_async(lambda: len(acknowledged) > 20, what="some writes")
    await pair.kill9_primary()
    before = len(acknowledged)
    await pair.promote()
    await wait_until_async(lambda: len(acknowledged) > before + 20, what="writes on the new primary")
    ended.set()
    await asyncio.gather(*writers)
    await asyncio.wait_for(waiter, 60.0)

    nodes = await store.current_nodes(NAMESPACE, [*acknowledged, *unknown])
    assert set(acknowledged) <= set(nodes)
    head = await store.head(NAMESPACE)
    for name in unknown:
        outcome = await store.transact(NAMESPACE, create(name, key=name))
        assert outcome.replayed == (name in nodes)
    missing = sum(name not in nodes for name in unknown)
    assert (await store.head(NAMESPACE)).revision == head.revision + missing
    assert head.revision == len(nodes)
    _log.info(
        "%d acknowledged, %d unknown, of which %d were there", len(acknowledged), len(unknown), len(unknown) - missing
    )


async def test_nobody_believes_an_old_primary_that_takes_writes_again(pair: PostgresPair, store: PostgresStore):
    await store.transact(NAMESPACE, create("before", key="k"))
    await pair.promote()
    await wait_until_async(lambda: answers(store), what="the new primary is found")
    after = await store.transact(NAMESPACE, create("after"))
    # It is the first in the list, and knows nothing of the change after its end.
    await pair.revive_old_primary()
    assert pair.nodes[0] is pair.standby

    assert await store.head(NAMESPACE) == after.head
    async with _opened(pair.dsn) as newcomer:
        assert await newcomer.head(NAMESPACE) == after.head
        assert (await newcomer.transact(NAMESPACE, create("newcomer"))).head.revision == 3

    # Rather than what it says, a process that has seen its successor says that there is no database.
    pair.primary.proxy.refuse()
    assert await _reason(store.head(NAMESPACE)) is Reason.DEPENDENCY_UNAVAILABLE
    assert await _reason(store.transact(NAMESPACE, create("lost"))) is Reason.DEPENDENCY_UNAVAILABLE
    assert not await answers(store)
    pair.primary.proxy.mend()
    await wait_until_async(lambda: answers(store), what="the new primary is found again")
    assert (await store.head(NAMESPACE)).revision == 3


async def test_a_primary_that_was_overtaken_and_still_answers_is_found_out(pair: PostgresPair):
    """Nothing tells but the other one: whoever only reads meets no error."""
    async with _opened(pair.dsn, survey_seconds=0.2) as reader:
        assert (await reader.head(NAMESPACE)).revision == 0
        pair.cut_replication(silently=False)
        overtaking = pair.standby.dsn(DATABASE)
        standby = await asyncpg.connect(overtaking)
        assert await standby.fetchval("SELECT pg_promote()")
        await standby.close()
        async with _opened(overtaking) as writer:
            await writer.transact(NAMESPACE, create("after"))

        async def reads_what_was_written() -> bool:
            try:
                return (await reader.head(NAMESPACE)).revision == 1
            except DomainError as error:  # what the old one answers to a question from before it was found out
                assert error.reason is Reason.DEPENDENCY_UNAVAILABLE  # noqa: PT017 - nothing else may come
                return False

        await wait_until_async(reads_what_was_written, what="the later primary is read")
        assert set(await reader.current_nodes(NAMESPACE, ["after"])) == {"after"}
        assert (await reader.transact(NAMESPACE, create("more"))).head.revision == 2


async def test_a_commit_that_waits_for_a_lost_standby_is_unknown_seen_by_nobody_and_settled_by_a_repeat(
    pair: PostgresPair, store: PostgresStore
):
    first = await store.transact(NAMESPACE, create("first", key="first"))
    await pair.kill9_standby()
    plans = (create("a", key="k"), create("first", key="first"), no_op())
    assert await _reason(store.transact(NAMESPACE, plans[0])) is Reason.OUTCOME_UNKNOWN
    # The connection of the commit is gone, the commit itself still waits: it holds its lock, and nobody sees it.
    assert await store.head(NAMESPACE) == first.head
    assert not await store.current_nodes(NAMESPACE, ["a"])
    async with _opened(pair.dsn, lock_timeout_seconds=0.2) as impatient:
        for plan in plans:
            assert await _reason(impatient.transact(NAMESPACE, plan)) in (Reason.OVERLOADED, Reason.OUTCOME_UNKNOWN)

    await pair.restart_standby()
    await wait_until_async(lambda: _is_seen(store, "a"), what="the commit is over")
    await wait_until_async(lambda: _is_done(store, no_op()), what="commits are answered again")
    for plan in plans[:2]:
        assert (await store.transact(NAMESPACE, plan)).replayed
    assert (await store.head(NAMESPACE)).revision == 2


async def test_a_primary_without_its_standby_is_not_filled_with_commits_that_wait_and_is_read_all_the_while(
    pair: PostgresPair, store: PostgresStore
):
    await store.transact(NAMESPACE, create("first"))
    await pair.kill9_standby()
    namespaces = [Namespace("acme", f"user-{number}", "default") for number in range(60)]
    told = Counter(await asyncio.gather(*(_reason(store.transact(namespace, create("a"))) for namespace in namespaces)))
    assert set(told) == {Reason.OUTCOME_UNKNOWN, Reason.DEPENDENCY_UNAVAILABLE}
    # Those whose turn it was, and never more after that.
    assert told[Reason.OUTCOME_UNKNOWN] <= PostgresSettings().write_connections
    for namespace in namespaces[:4]:
        assert await _reason(store.transact(namespace, create("b"))) is Reason.DEPENDENCY_UNAVAILABLE
    assert set(await store.current_nodes(NAMESPACE, ["first"])) == {"first"}
    assert (await store.head(NAMESPACE)).revision == 1

    await pair.restart_standby()
    await wait_until_async(lambda: _is_written(store, "c"), what="commits are answered again")


async def _is_written(store: PostgresStore, node_id: str) -> bool:
    return await _is_done(store, create(node_id, key=node_id))


async def _is_done(store: PostgresStore, plan: Plan) -> bool:
    try:
        await store.transact(NAMESPACE, plan)
    except DomainError as error:
        assert error.reason in _IN_DOUBT  # noqa: PT017 - nothing else may come
        return False
    return True


async def test_what_only_a_lost_primary_had_is_another_history_from_then_on(pair: PostgresPair, store: PostgresStore):
    pair.cut_replication()
    writing = asyncio.ensure_future(_reason(store.transact(NAMESPACE, create("a", key="k"))))
    await _cancel_the_wait_for_the_standby(pair)
    assert await writing is Reason.OUTCOME_UNKNOWN
    # The primary shows it from now on, with or without a standby: whoever reads may see what is not yet safe.
    seen = await store.head(NAMESPACE)
    assert seen.revision == 1
    # No answer to a repeat says that it is; a service that had given up the commit by itself would not even try.
    repeated = await _reason(store.transact(NAMESPACE, create("a", key="k")))
    assert repeated in (Reason.OUTCOME_UNKNOWN, Reason.DEPENDENCY_UNAVAILABLE)

    await pair.promote()
    await wait_until_async(lambda: answers(store), what="the new primary is found")
    assert (await store.head(NAMESPACE)).revision == 0
    await wait_until_async(lambda: _is_written(store, "b"), what="a commit is answered")
    other = await store.transact(NAMESPACE, create("b", key="b"))
    # The same number, and nobody takes the one for the other.
    assert other.head.revision == seen.revision
    assert other.head.chain_digest != seen.chain_digest
    outcome = await store.transact(NAMESPACE, create("a", key="k"))
    assert not outcome.replayed


async def _is_seen(store: PostgresStore, node_id: str) -> bool:
    return bool(await store.current_nodes(NAMESPACE, [node_id]))


async def _cancel_the_wait_for_the_standby(pair: PostgresPair) -> None:
    observer = await asyncpg.connect(pair.direct_dsn())

    async def waiting() -> object:
        # The write's own, and not one by which the service would find out whether commits are answered.
        return await observer.fetchval(
            "SELECT pid FROM pg_stat_activity"
            " WHERE wait_event = 'SyncRep' AND application_name = 'durable-memory' AND query = 'COMMIT'"
        )

    try:
        await observer.fetchval("SELECT pg_cancel_backend($1)", await wait_until_async(waiting, what="a commit waits"))
    finally:
        await observer.close()
