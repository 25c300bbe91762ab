"""Idempotency: a logical call happens once, however often and however concurrently it is made."""

import asyncio

import pytest

from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.change_set import ChangeSet
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.store import Loaded, RequestRecord
from tests.conformance.samples import apply, change_plan, corroborate, create, node, request_key, revise, writing


async def test_a_repeat_returns_the_first_result_without_deciding_again(store, namespace):
    decided: list[Loaded] = []
    plan = change_plan(ChangeSet(operations=(create("n"),)), request=request_key("k"), see=decided.append)
    first = await store.transact(namespace, plan)
    again = await store.transact(namespace, plan)
    assert (first.replayed, again.replayed) == (False, True)
    assert again.result == first.result == {"at": 1, "nodes": {"n": 1}}
    assert len(decided) == 1


async def test_a_repeat_is_answered_before_revisions_are_compared(store, namespace):
    await apply(store, namespace, create("n"))
    first = await apply(store, namespace, revise("n", 1, "second"), key="k")
    await apply(store, namespace, revise("n", 2, "third"))
    again = await apply(store, namespace, revise("n", 1, "second"), key="k")
    assert (again.replayed, again.result) == (True, first.result)
    assert again.head.revision == 3
    assert (await node(store, namespace, "n")).content == "third"


async def test_a_key_with_another_fingerprint_is_refused_and_changes_nothing(store, namespace):
    await apply(store, namespace, create("n"), key="k")
    other = change_plan(ChangeSet(operations=(create("m"),)), request=request_key("k", fingerprint="v1:b"))
    with pytest.raises(DomainError) as refusal:
        await store.transact(namespace, other)
    assert refusal.value.reason is Reason.IDEMPOTENCY_KEY_REUSED
    assert refusal.value.metadata == {"method": "ApplyChangeSet", "request_id": "k"}
    assert await store.current_nodes(namespace, ["m"]) == {}


async def test_one_key_names_one_request_per_method(store, namespace):
    await apply(store, namespace, create("n"), key="k")
    other = change_plan(ChangeSet(operations=(create("m"),)), request=request_key("k", "v1:b", method="Remember"))
    assert not (await store.transact(namespace, other)).replayed


async def test_of_concurrent_first_attempts_one_decides_and_the_others_replay(store, namespace):
    outcomes = await asyncio.gather(*(apply(store, namespace, create("n"), key="k") for _ in range(16)))
    assert sorted(outcome.replayed for outcome in outcomes) == [False] + [True] * 15
    assert [outcome.result for outcome in outcomes] == [{"at": 1, "nodes": {"n": 1}}] * 16
    assert (await store.head(namespace)).revision == 1


async def test_a_refused_attempt_leaves_its_key_unused(store, namespace):
    with pytest.raises(DomainError):
        await apply(store, namespace, corroborate("n", 1, "e"), key="k")
    assert await store.find_request(namespace, "ApplyChangeSet", "k") is None
    assert not (await apply(store, namespace, create("n"), key="k")).replayed


async def test_a_no_op_keeps_its_result_and_moves_nothing(store, namespace):
    before = await store.head(namespace)
    plan = writing(result={"outcome": "UNCHANGED"}, request=request_key("k"))
    first = await store.transact(namespace, plan)
    await apply(store, namespace, create("n"))
    again = await store.transact(namespace, plan)
    assert first.head == before
    assert (again.replayed, again.result) == (True, {"outcome": "UNCHANGED"})


async def test_a_stored_request_can_be_found(store, namespace):
    outcome = await apply(store, namespace, create("n"), key="k")
    found = await store.find_request(namespace, "ApplyChangeSet", "k")
    assert found == RequestRecord(request=request_key("k"), result=outcome.result, namespace_revision=1)
    assert await store.find_request(namespace, "ApplyChangeSet", "other") is None
    assert await store.find_request(namespace, "Remember", "k") is None


async def test_results_come_back_with_every_kind_of_json_value(store, namespace):
    result: JsonObject = {
        "text": 'naïve 记忆 \u2028 "quoted"',
        "none": None,
        "yes": True,
        "list": [1, 0.25, {"a": []}],
    }
    plan = writing(result=result, request=request_key("k"))
    await store.transact(namespace, plan)
    assert (await store.transact(namespace, plan)).result == result
