"""Reads: of one point in history, paged exactly, streamed without gaps."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from durable_memory.app import repository as repository_module
from durable_memory.app.repository import RepositoryReader, SnapshotEnd, WatchedChange, WatchIdle
from durable_memory.domain.canonical import canonical_json
from durable_memory.domain.change_set import Create, SetStatus
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import Reason
from durable_memory.domain.node import NodeKind, NodeRef, NodeRevision, NodeStatus
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.store import NodeSelection
from tests.unit.app.stores import HookedStore, Rewinder
from tests.unit.app.world import DEFAULTS, OTHER_NAMESPACE, World, decision, draft, ids_of, refused

ALL = NodeSelection()


async def listed(world: World, selection: NodeSelection = ALL, *, at: int | None = None, limit: int = 2) -> list[str]:
    """Ids of all pages, every page but the last one full."""
    found: list[str] = []
    while True:
        page = await world.app.repository.list_nodes(
            world.call, selection, at_revision=at, after_node_id=found[-1] if found else "", limit=limit
        )
        found.extend(ids_of(page.nodes))
        at = page.token.namespace_revision
        if not page.more:
            return found
        assert len(page.nodes) == limit


# Points in history


async def test_an_empty_namespace_answers_at_revision_0_with_a_stable_history(world: World, replica: World) -> None:
    token = await world.app.repository.token(world.call)
    assert token.namespace_revision == 0
    assert await replica.app.repository.token(replica.call) == token
    assert (await world.app.repository.token(world.at(OTHER_NAMESPACE).call)).history_id != token.history_id
    await world.remember("tea", "a")
    assert (await world.app.repository.token(world.call)).history_id == token.history_id


async def test_a_node_is_read_as_it_was_at_any_revision(world: World) -> None:
    await world.put("a", "tea")
    await world.put("b", "milk")
    await world.put("a", "coffee")
    expected = {1: ("tea", 1), 2: ("tea", 1), 3: ("coffee", 2), None: ("coffee", 2)}
    for at, (content, revision) in expected.items():
        token, node = await world.app.repository.node(world.call, "a", at)
        assert (node.content, node.revision, token.namespace_revision) == (content, revision, at or 3)
    with refused(Reason.NODE_NOT_FOUND, node_id="b"):
        await world.app.repository.node(world.call, "b", 1)
    with refused(Reason.NODE_NOT_FOUND, node_id="a"):
        await world.app.repository.node(world.call, "a", 0)
    with refused(Reason.REVISION_NOT_FOUND, namespace_revision=4, actual=3):
        await world.app.repository.node(world.call, "a", 4)
    _, found = await world.app.repository.nodes(world.call, ["b", "missing", "a"], 2)
    assert {node_id: node.content for node_id, node in found.items()} == {"a": "tea", "b": "milk"}


# Pages


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
async def test_pages_of_nodes_end_exactly(world: World, count: int) -> None:
    for number in range(count):
        await world.remember(f"tea {number}", f"n{number}")
    assert await listed(world) == [f"n{number}" for number in range(count)]


async def test_all_pages_of_a_listing_show_one_revision(world: World) -> None:
    for number in range(5):
        await world.remember(f"tea {number}", f"n{number}")
    first = await world.app.repository.list_nodes(world.call, ALL, at_revision=None, after_node_id="", limit=2)
    await world.remember("new", "n22")
    await world.retire(await world.node("n3"))
    second = await world.app.repository.list_nodes(
        world.call, ALL, at_revision=first.token.namespace_revision, after_node_id="n1", limit=9
    )
    assert [(node.node_id, node.status) for node in second.nodes] == [
        (name, NodeStatus.ACTIVE) for name in ("n2", "n3", "n4")
    ]
    assert second.token == first.token


async def test_a_listing_narrows_before_it_pages(world: World) -> None:
    for number in range(6):
        kind = NodeKind.EPISODIC if number % 2 else NodeKind.SEMANTIC
        await world.remember(f"tea {number}", f"n{number}", kind=kind, labels={"half": str(number // 3)})
    await world.retire(await world.node("n5"))
    assert await listed(world, NodeSelection(kinds=frozenset({NodeKind.EPISODIC}))) == ["n1", "n3", "n5"]
    assert await listed(world, NodeSelection(statuses=frozenset({NodeStatus.ARCHIVED}))) == ["n5"]
    assert await listed(world, NodeSelection(labels={"half": "1"})) == ["n3", "n4", "n5"]
    selection = NodeSelection(kinds=frozenset({NodeKind.EPISODIC}), statuses=frozenset({NodeStatus.ACTIVE}))
    assert await listed(world, selection) == ["n1", "n3"]
    assert await listed(world, selection, at=6) == ["n1", "n3", "n5"]


async def test_revisions_of_a_node_are_listed_oldest_first(world: World) -> None:
    for content in ("tea", "coffee", "milk"):
        await world.put("a", content)
    first = await world.app.repository.list_revisions(world.call, "a", after_revision=0, limit=2)
    assert ([node.content for node in first.nodes], first.more) == (["tea", "coffee"], True)
    rest = await world.app.repository.list_revisions(world.call, "a", after_revision=2, limit=2)
    assert ([node.content for node in rest.nodes], rest.more) == (["milk"], False)
    none = await world.app.repository.list_revisions(world.call, "a", after_revision=3, limit=2)
    assert (none.nodes, none.more) == ((), False)
    with refused(Reason.NODE_NOT_FOUND, node_id="missing"):
        await world.app.repository.list_revisions(world.call, "missing", after_revision=0, limit=2)


async def test_a_page_never_holds_what_was_committed_after_its_token(world: World) -> None:
    await world.put("a", "tea")
    await world.put("a", "coffee")
    hooked = HookedStore(world.store)
    reader = RepositoryReader(hooked)

    async def write() -> None:
        hooked.before.clear()
        await world.put("a", f"milk {await world.revision()}")

    hooked.before["list_revisions"] = write
    page = await reader.list_revisions(world.call, "a", after_revision=0, limit=9)
    assert ([node.revision for node in page.nodes], page.token.namespace_revision) == ([1, 2], 2)
    hooked.before["list_change_sets"] = write
    sets = await reader.list_change_sets(world.call, after_revision=0, limit=9)
    revisions = [record.namespace_revision for record in sets.change_sets]
    assert (revisions, sets.token.namespace_revision) == ([1, 2, 3], 3)


# Revisions and change sets by name


async def test_a_revision_is_read_by_reference_or_citation(world: World) -> None:
    old = await world.put("a", "tea")
    await world.put("a", "coffee")
    for target in (old.ref, Citation.of(old)):
        token, node = await world.app.repository.revision(world.call, target)
        assert (node.content, token.namespace_revision) == ("tea", 2)
    cited = Citation.of(old)
    for wrong in (NodeRef("a", 3), NodeRef("b", 1), Citation(cited.namespace_revision, "a", 1, "0" * 64)):
        with refused(Reason.REVISION_NOT_FOUND):
            await world.app.repository.revision(world.call, wrong)


async def test_a_change_set_is_read_by_its_revision_or_by_the_request_that_made_it(world: World) -> None:
    await world.app.memories.remember(world.request("Remember", "k"), "a", draft("tea"), DEFAULTS)
    await world.put("a", "coffee")
    _, record = await world.app.repository.change_set(world.call, 1)
    assert (record.method, record.request_id, record.caller) == ("Remember", "k", "owner")
    assert [(change.node_id, change.revision, change.status_before) for change in record.changes] == [("a", 1, None)]
    token, same = await world.app.repository.change_set_of(world.call, "Remember", "k")
    assert (same, token.namespace_revision) == (record, 2)
    for asked in (0, 3):
        with refused(Reason.REVISION_NOT_FOUND, namespace_revision=asked, actual=2):
            await world.app.repository.change_set(world.call, asked)


async def test_a_request_that_changed_nothing_made_no_change_set(world: World) -> None:
    await world.open()
    with refused(Reason.REVISION_NOT_FOUND, method="OpenSession", request_id=f"{world.ids.name}-1"):
        await world.app.repository.change_set_of(world.call, "OpenSession", f"{world.ids.name}-1")
    await world.remember("tea", "a")
    await world.app.memories.remember(world.request("Remember", "again"), None, draft("tea"), DEFAULTS)
    with refused(Reason.REVISION_NOT_FOUND, method="Remember", request_id="again"):
        await world.app.repository.change_set_of(world.call, "Remember", "again")
    with refused(Reason.REVISION_NOT_FOUND, request_id="never"):
        await world.app.repository.change_set_of(world.call, "Remember", "never")


# Snapshots


async def snapshot(world: World, *statuses: NodeStatus, at: int | None = None) -> tuple[Any, list[NodeRevision], Any]:
    parts = [part async for part in world.app.repository.snapshot(world.call, frozenset(statuses), at)]
    nodes = [part for part in parts if isinstance(part, NodeRevision)]
    assert [parts[0], *nodes, parts[-1]] == parts
    return parts[0], nodes, parts[-1]


async def test_a_snapshot_is_complete_at_one_revision_and_says_what_it_hashes_to(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository_module, "PAGE_SIZE_MAX", 2)
    for number in range(5):
        await world.put(f"n{number}", f"té {number}")
    await world.retire(await world.node("n1"))
    token, nodes, end = await snapshot(world)
    assert token == await world.app.repository.token(world.call)
    assert ids_of(nodes) == ["n0", "n1", "n2", "n3", "n4"]
    text = b"durablememory.dev/snapshot/v1\n" + b"".join(canonical_json(node.canonical()) + b"\n" for node in nodes)
    assert end == SnapshotEnd(
        node_count=5,
        content_bytes=sum(len(node.content.encode()) for node in nodes),
        digest=hashlib.sha256(text).hexdigest(),
    )
    _, active, _ = await snapshot(world, NodeStatus.ACTIVE)
    assert ids_of(active) == ["n0", "n2", "n3", "n4"]


async def test_a_snapshot_of_the_past_stays_what_it_was(world: World) -> None:
    await world.put("a", "tea")
    before = await snapshot(world)
    await world.put("a", "coffee")
    await world.put("b", "milk")
    token, nodes, end = await snapshot(world, at=1)
    assert (token, end) == (before[0], before[2])
    assert [node.content for node in nodes] == ["tea"]
    assert (await snapshot(world))[2].digest != end.digest
    with refused(Reason.REVISION_NOT_FOUND, namespace_revision=9):
        await snapshot(world, at=9)


async def test_writes_during_a_snapshot_do_not_show_in_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_module, "PAGE_SIZE_MAX", 1)
    for number in range(3):
        await world.put(f"n{number}", f"tea {number}")
    expected = await snapshot(world)
    parts = []
    async for part in world.app.repository.snapshot(world.call, frozenset()):
        parts.append(part)
        await world.put("n2", f"changed {len(parts)}")
        await world.put(f"n{len(parts)}x", f"new {len(parts)}")
    assert parts[-1] == expected[2]


async def test_a_snapshot_over_its_budget_fails_and_is_never_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        await world.put(f"n{number}", "tea " * 10 + str(number))
    monkeypatch.setattr(repository_module, "SNAPSHOT_MAX_NODES", 2)
    with refused(Reason.SNAPSHOT_TOO_LARGE, max_nodes=2):
        await snapshot(world)
    monkeypatch.setattr(repository_module, "SNAPSHOT_MAX_NODES", 3)
    await snapshot(world)
    monkeypatch.setattr(repository_module, "SNAPSHOT_MAX_BYTES", 100)
    with refused(Reason.SNAPSHOT_TOO_LARGE, max_bytes=100):
        await snapshot(world)


async def test_equal_state_has_an_equal_digest_in_any_store(world: World, elsewhere: World) -> None:
    for one in (world, elsewhere):
        await one.apply(Create(node_id="a", status=NodeStatus.ACTIVE, draft=draft("tea", evidence=(decision("x"),))))
        await one.apply(SetStatus(node_id="a", expected_revision=1, status=NodeStatus.CONFLICTED))
    assert (await snapshot(world))[2] == (await snapshot(elsewhere))[2]


# Watching


async def until(events: AsyncIterator[Any], revision: int) -> list[Any]:
    """Events up to the idle report at a revision."""
    seen = []
    async for event in events:
        seen.append(event)
        if isinstance(event, WatchIdle) and event.token.namespace_revision >= revision:
            return seen
    raise AssertionError("the watch ended")


def changes(events: list[Any]) -> list[int]:
    return [event.token.namespace_revision for event in events if isinstance(event, WatchedChange)]


async def test_a_watch_tells_what_was_there_then_that_it_has_caught_up(world: World) -> None:
    await world.put("a", "tea")
    await world.put("a", "coffee")
    async with aclosing(world.app.repository.watch(world.call, 0)) as watch:
        seen = await until(watch, 2)
    assert changes(seen) == [1, 2]
    assert [[node.content for node in event.nodes] for event in seen[:-1]] == [["tea"], ["coffee"]]
    assert seen[-1] == WatchIdle(token=await world.app.repository.token(world.call))


async def test_a_watch_from_now_on_tells_of_what_comes(world: World) -> None:
    await world.put("a", "tea")
    async with aclosing(world.app.repository.watch(world.call, None)) as watch:
        assert await until(watch, 1) == [WatchIdle(token=await world.app.repository.token(world.call))]
        await world.put("a", "coffee")
        assert changes(await until(watch, 2)) == [2]


async def test_a_watch_without_nodes_reads_none(world: World) -> None:
    await world.put("a", "tea")
    hooked = HookedStore(world.store)
    reader = RepositoryReader(hooked)
    async with aclosing(reader.watch(world.call, 0, with_nodes=False)) as watch:
        (change, _) = await until(watch, 1)
    assert change.nodes == ()
    assert hooked.calls["revisions_committed_at"] == 0


async def test_a_watch_has_no_gaps_while_others_write(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_module, "_BATCH_CHANGE_SETS", 3)

    async def write(writer: int) -> None:
        for number in range(15):
            await world.remember(f"{writer} {number}")
            await asyncio.sleep(0)

    async with aclosing(world.app.repository.watch(world.call, 0)) as watch:
        writers = [asyncio.create_task(write(writer)) for writer in range(4)]
        seen = await until(watch, 60)
        await asyncio.gather(*writers)
    assert changes(seen) == list(range(1, 61))
    for event in seen:
        if isinstance(event, WatchedChange):
            assert [(node.node_id, node.revision) for node in event.nodes] == [
                (change.node_id, change.revision) for change in event.change_set.changes
            ]


async def test_a_watch_goes_on_after_any_revision(world: World) -> None:
    for number in range(6):
        await world.put("a", f"tea {number}")
    history = (await world.app.repository.token(world.call)).history_id
    for after in range(7):
        token = ChangeToken(history_id=history, namespace_revision=after)
        async with aclosing(world.app.repository.watch(world.call, token)) as watch:
            assert changes(await until(watch, 6)) == list(range(after + 1, 7))


async def test_a_watch_reads_ahead_within_bounds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_module, "_BATCH_NODES", 3)
    asked: list[int] = []
    store: Any = world.store
    committed_at = store.revisions_committed_at

    async def counted(namespace: Any, revisions: Any) -> Any:
        found = await committed_at(namespace, revisions)
        asked.append(sum(map(len, found.values())))
        return found

    store.revisions_committed_at = counted
    for number in range(3):
        creates = (
            Create(node_id=f"{number}-{place}", status=NodeStatus.CANDIDATE, draft=draft("tea")) for place in range(2)
        )
        await world.apply(*creates)
    many = (Create(node_id=f"x-{place}", status=NodeStatus.CANDIDATE, draft=draft("tea")) for place in range(7))
    await world.apply(*many)
    async with aclosing(world.app.repository.watch(world.call, 0)) as watch:
        assert changes(await until(watch, 4)) == [1, 2, 3, 4]
    assert asked == [2, 2, 2, 7]


async def test_a_watch_of_another_history_is_refused_from_the_start_and_later(world: World) -> None:
    await world.put("a", "tea")
    token = await world.app.repository.token(world.call)
    with refused(Reason.HISTORY_CHANGED, expected="another", actual=token.history_id):
        await anext(world.app.repository.watch(world.call, ChangeToken(history_id="another", namespace_revision=1)))
    async with aclosing(world.app.repository.watch(world.call, token)) as watch:
        assert await anext(watch) == WatchIdle(token=token)
        Rewinder(world.store, world.namespace).rename_history("restored")  # type: ignore[arg-type]
        await world.put("a", "coffee")
        with refused(Reason.HISTORY_CHANGED, expected=token.history_id, actual="restored"):
            await anext(watch)


async def test_a_history_that_is_replaced_while_changes_are_told_ends_the_watch(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository_module, "_BATCH_CHANGE_SETS", 1)
    for number in range(3):
        await world.put("a", f"tea {number}")
    async with aclosing(world.app.repository.watch(world.call, 0)) as watch:
        assert changes([await anext(watch)]) == [1]
        Rewinder(world.store, world.namespace).rename_history("restored")  # type: ignore[arg-type]
        with refused(Reason.HISTORY_CHANGED, actual="restored"):
            await anext(watch)


async def test_a_watch_never_runs_ahead_of_the_namespace(world: World) -> None:
    await world.put("a", "tea")
    with refused(Reason.REVISION_NOT_FOUND, namespace_revision=2, actual=1):
        await anext(world.app.repository.watch(world.call, 2))
    rewinder = Rewinder(world.store, world.namespace)  # type: ignore[arg-type]
    await world.put("a", "coffee")
    hooked = HookedStore(world.store)

    async def lost(namespace: Any, revision: int) -> None:
        rewinder.rewind()

    hooked.wait_for_change = lost  # type: ignore[attr-defined]
    async with aclosing(RepositoryReader(hooked).watch(world.call, 2)) as watch:
        await anext(watch)
        with refused(Reason.REVISION_NOT_FOUND, namespace_revision=2, actual=1):
            await anext(watch)
