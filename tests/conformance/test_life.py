"""Opening, closing, and what outlives both."""

import asyncio

import pytest

from durable_memory.adapters.change_signal import ChangeSignal
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.node import NodeRef
from tests.conformance.samples import MANY, all_nodes, apply, create, event, node, revise, session, writing
from tests.processes.polling import wait_until_async


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is waited for, as it begins. No wait ends by itself: whoever goes on was woken, or had nothing to wait for.

    Of the stores that are made from here on.
    """
    begun: list[bytes] = []
    made, wait = ChangeSignal.__init__, ChangeSignal.wait

    async def noted(signal: ChangeSignal, key: bytes) -> None:
        begun.append(key)
        await wait(signal, key)

    monkeypatch.setattr(ChangeSignal, "__init__", lambda signal, *_: made(signal, most_seconds=3_600.0))
    monkeypatch.setattr(ChangeSignal, "wait", noted)
    return begun


async def test_a_namespace_that_nobody_wrote_to_is_empty_with_a_stable_history_id(store, namespace):
    empty = await store.head(namespace)
    assert (empty.revision, empty.node_count, empty.chain_digest) == (0, 0, "0" * 64)
    assert await store.head(namespace) == empty
    assert await all_nodes(store, namespace, 0) == []
    assert (await apply(store, namespace, create("n"))).head.history_id == empty.history_id


async def test_a_closed_store_serves_nothing(backend, namespace):
    store = backend.new()
    for opened_before in (False, True):
        if opened_before:
            await store.open()
            await store.check()
            await store.close()
            await store.close()
        for call in (
            store.check(),
            store.page_token_keys(),
            store.renew_page_token_keys(),
            store.head(namespace),
            store.current_nodes(namespace, ["n"]),
            apply(store, namespace, create("n")),
            store.wait_for_change(namespace, 0),
        ):
            with pytest.raises(DomainError) as refusal:
                await call
            assert refusal.value.reason is Reason.NOT_SERVING


async def test_calls_that_run_while_the_store_closes_are_finished(backend, namespace):
    store = backend.new()
    await store.open()
    calls = [asyncio.ensure_future(apply(store, namespace, create(f"n{number}"))) for number in range(8)]
    reads = [asyncio.ensure_future(store.current_nodes(namespace, ["n0"])) for _ in range(8)]
    await asyncio.sleep(0)
    await store.close()
    answers = await asyncio.gather(*calls, *reads, return_exceptions=True)
    definite = (Reason.NOT_SERVING, Reason.DEPENDENCY_UNAVAILABLE)
    for answer in answers:
        assert not isinstance(answer, BaseException) or getattr(answer, "reason", None) in definite
    async with backend.opened() as reopened:
        written = (await reopened.head(namespace)).revision
    assert written == sum(not isinstance(answer, BaseException) for answer in answers[:8])


async def test_page_tokens_are_signed_with_random_keys_that_stay(backend):
    async with backend.opened() as store:
        keys = list(await store.page_token_keys())
        await store.renew_page_token_keys()
        assert list(await store.page_token_keys()) == keys
    assert 1 <= len(keys) <= 2
    assert all(isinstance(key, bytes) and len(key) == 32 for key in keys)
    async with backend.opened() as store:
        assert list(await store.page_token_keys()) == keys


async def test_everything_acknowledged_is_there_after_another_start(durable_backend, namespace, other_namespace):
    async with durable_backend.opened() as store:
        first = await apply(store, namespace, create("n", "one"), key="k")
        await apply(store, namespace, revise("n", 1, "two"))
        await store.transact(namespace, writing(sessions=(session(namespace),), events=(event("e", NodeRef("n", 1)),)))
        head, written = await store.head(namespace), await node(store, namespace, "n")
        unwritten = await store.head(other_namespace)
    async with durable_backend.opened() as store:
        assert await store.head(namespace) == head
        assert await store.head(other_namespace) == unwritten
        assert await node(store, namespace, "n") == written
        assert await store.get_session(namespace, "s") == session(namespace)
        assert len(await store.list_events(namespace, kind=None, after_event_id="", limit=MANY)) == 1
        replay = await apply(store, namespace, create("n", "one"), key="k")
        assert (replay.replayed, replay.result, replay.head) == (True, first.result, head)


async def test_a_waiter_wakes_when_the_namespace_changes(waits, store, namespace):
    async def follow() -> None:
        while (await store.head(namespace)).revision == 0:
            await store.wait_for_change(namespace, 0)

    followers = [asyncio.ensure_future(follow()) for _ in range(3)]
    await wait_until_async(lambda: len(waits) == len(followers), what="all of them wait")
    assert not any(follower.done() for follower in followers)
    await apply(store, namespace, create("n"))
    await asyncio.gather(*followers)


@pytest.mark.usefixtures("waits")
async def test_a_waiter_for_a_revision_that_has_passed_returns_at_once(store, namespace):
    await apply(store, namespace, create("n"))
    await store.wait_for_change(namespace, 0)


async def test_a_waiter_that_is_cancelled_is_forgotten(store, namespace):
    waiter = asyncio.ensure_future(store.wait_for_change(namespace, 0))
    await store.check()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    await apply(store, namespace, create("n"))


async def test_closing_wakes_those_who_wait(waits, backend, namespace):
    async with backend.opened() as store:
        waiter = asyncio.ensure_future(store.wait_for_change(namespace, 0))
        await wait_until_async(lambda: waits, what="it waits")
    await asyncio.wait([waiter])
    error = waiter.exception()
    assert error is None or (isinstance(error, DomainError) and error.reason is Reason.NOT_SERVING)
