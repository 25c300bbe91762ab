"""Sessions, their bindings, runs and contexts."""

from dataclasses import replace
from datetime import timedelta

from durable_memory.domain.session import RunState, SemanticGeneration, SessionBinding, SessionState
from durable_memory.ports.store import Loaded, Reads
from tests.conformance.samples import MANY, NOW, binding_record, policy, run_with_context, session, writing


async def test_a_session_comes_back_with_every_field_and_an_equal_digest(store, namespace):
    generation = SemanticGeneration(
        authority_digest="d" * 64,
        provider="provider",
        model="model",
        model_revision="1",
        dimension=384,
        normalization="l2",
        metric="cosine",
        candidate_limit=100,
        min_similarity=0.3,
    )
    written = replace(
        session(namespace, "s é"),
        binding=SessionBinding(namespace=namespace, policy=replace(policy(), semantic=generation, min_score=0.1)),
        binding_version=3,
        state=SessionState.CLOSED,
        rebound_at=NOW + timedelta(microseconds=1),
        closed_at=NOW + timedelta(days=1),
    )
    await store.transact(namespace, writing(sessions=(written,)))
    found = await store.get_session(namespace, "s é")
    assert found == written
    assert found.binding.digest() == written.binding.digest()


async def test_a_session_is_replaced_by_its_id(store, namespace):
    await store.transact(namespace, writing(sessions=(session(namespace, "s"), session(namespace, "other"))))
    rebound = replace(session(namespace, "s", version=2, max_results=9), rebound_at=NOW)
    await store.transact(namespace, writing(sessions=(rebound,)))
    assert await store.get_session(namespace, "s") == rebound
    assert await store.get_session(namespace, "other") == session(namespace, "other")
    assert await store.get_session(namespace, "absent") is None


async def test_sessions_are_listed_and_paged_by_the_bytes_of_their_ids(store, namespace):
    names = ["B", "a", "b", "é", "記"]
    await store.transact(namespace, writing(sessions=tuple(session(namespace, name) for name in reversed(names))))
    listed = await store.list_sessions(namespace, after_session_id="", limit=MANY)
    assert [item.session_id for item in listed] == names
    page = await store.list_sessions(namespace, after_session_id="a", limit=2)
    assert [item.session_id for item in page] == ["b", "é"]


async def test_bindings_are_exported_in_the_order_of_their_versions(store, namespace):
    written = []
    for name in ("b", "a"):
        for version in range(1, 12):
            bound = session(namespace, name, version=version, max_results=version)
            written.append(binding_record(bound))
            await store.transact(namespace, writing(sessions=(bound,), bindings=(written[-1],)))
    exported = [record async for record in store.export_bindings(namespace)]
    assert exported == sorted(written, key=lambda record: (record.session_id, record.binding_version))


async def test_the_newest_incarnation_of_a_run_is_the_one_that_opened_last(store, namespace):
    await store.transact(namespace, writing(sessions=(session(namespace),)))
    runs = [run_with_context(incarnation=incarnation) for incarnation in ("3", "12", "7")]
    for run, context in runs:
        await store.transact(namespace, writing(runs=(run,), contexts=(context,)))
    seen: list[Loaded] = []
    reads = Reads(
        session_ids=frozenset({"s"}),
        latest_runs=frozenset({("s", "r"), ("s", "absent"), ("absent", "r")}),
        contexts=frozenset({runs[0][1].context_id, "absent"}),
    )
    await store.transact(namespace, writing(reads=reads, see=seen.append))
    (loaded,) = seen
    assert loaded.sessions == {"s": session(namespace)}
    assert loaded.latest_runs == {("s", "r"): runs[1][0]}
    assert loaded.runs == {("s", "r", "12"): runs[1][0], ("s", "r", "3"): runs[0][0]}
    assert loaded.contexts == {runs[0][1].context_id: runs[0][1]}


async def test_runs_that_opened_together_are_told_apart_by_their_incarnations_bytes(store, namespace):
    run, _ = run_with_context()
    await store.transact(namespace, writing(sessions=(session(namespace),)))
    for incarnation in ("b", "é", "B"):
        twin = replace(run, incarnation=incarnation)
        await store.transact(namespace, writing(runs=(twin,)))
    seen: list[Loaded] = []
    reads = Reads(latest_runs=frozenset({("s", "r")}))
    await store.transact(namespace, writing(reads=reads, see=seen.append))
    assert seen[0].latest_runs["s", "r"].incarnation == "é"


async def test_a_run_is_replaced_by_its_incarnation(store, namespace):
    run, context = run_with_context()
    other, other_context = run_with_context(incarnation="2")
    await store.transact(
        namespace, writing(sessions=(session(namespace),), runs=(run, other), contexts=(context, other_context))
    )
    following = context.next()
    ended = replace(
        run,
        state=RunState.TAKEN_OVER,
        sequence=1,
        context_id=following.context_id,
        active_at=NOW + timedelta(minutes=1),
        ended_at=NOW + timedelta(minutes=2),
    )
    await store.transact(namespace, writing(runs=(ended,), contexts=(following,)))
    assert await store.get_context(namespace, following.context_id) == (following, ended)
    assert await store.get_context(namespace, context.context_id) == (context, ended)
    assert await store.get_context(namespace, other_context.context_id) == (other_context, other)
    assert await store.get_context(namespace, "absent") is None


async def test_a_context_that_exists_is_left_as_it_is(store, namespace):
    run, context = run_with_context()
    await store.transact(namespace, writing(sessions=(session(namespace),), runs=(run,), contexts=(context,)))
    await store.transact(namespace, writing(contexts=(context, context.next())))
    assert await store.get_context(namespace, context.context_id) == (context, run)
    assert await store.get_context(namespace, context.next().context_id) == (context.next(), run)


async def test_runs_are_exported_in_order_with_their_contexts(store, namespace):
    await store.transact(
        namespace, writing(sessions=tuple(session(namespace, session_id) for session_id in ("t", "s")))
    )
    written = []
    for session_id, run_id, incarnation in (
        ("t", "a", "1"),
        ("s", "b", "2"),
        ("s", "b", "1"),
        ("s", "a", "9"),
        ("s", "a", "10"),
    ):
        run, context = run_with_context(session_id, run_id, incarnation)
        contexts = [context, context.next(), context.next().next()]
        await store.transact(namespace, writing(runs=(run,), contexts=tuple(reversed(contexts))))
        written.append((run, contexts))
    exported = [(run, list(contexts)) async for run, contexts in store.export_runs(namespace)]
    assert exported == sorted(
        written, key=lambda item: (item[0].session_id, item[0].run_id, item[0].opened_at, item[0].incarnation)
    )
