"""Sixty-four writers at once: each change has seen the one before it, and whoever came too late is told by how much."""

import asyncio
from collections.abc import Sequence

from durable_memory_client import (
    ChangeSet,
    Evidence,
    EvidenceKind,
    MemoryClient,
    MemoryNamespace,
    Node,
    Revise,
    Revised,
)
from durable_memory_client.errors import RevisionConflictError

_WRITERS = 64
_CHANGES_EACH = 6
_PATIENCE_SECONDS = 60.0
"""Of a call among so many: how soon it is answered is not what is judged."""


async def test_64_writers_of_one_node_lose_no_update_and_are_told_of_every_conflict(clients: Sequence[MemoryClient]):
    await _begin(clients[0])
    conflicts = await asyncio.gather(
        *(_count_once(clients[writer % len(clients)], writer) for writer in range(_WRITERS))
    )
    # Were there none, nothing was shown.
    assert sum(conflicts) > _WRITERS
    for memory in clients:
        revisions = await _all_revisions(memory)
        assert [node.revision for node in revisions] == list(range(1, _WRITERS + 2))
        assert [node.content for node in revisions] == [f"counted {count}" for count in range(_WRITERS + 1)]
        # Each from one writer, and from each writer one.
        assert len({node.labels["writer"] for node in revisions[1:]}) == _WRITERS
        changes = [change async for change in memory.list_change_sets(page_size=500)]
        assert [change.namespace_revision for change in changes] == list(range(1, _WRITERS + 2))
        assert (await memory.get_change_token()).namespace_revision == _WRITERS + 1


async def test_64_writers_in_64_namespaces_do_not_meet(clients: Sequence[MemoryClient]):
    async def write(writer: int) -> None:
        # Each change of a namespace by way of another server than the one before it.
        spaces = [client.namespace(scope=f"scope-{writer}") for client in clients]
        await _begin(spaces[0])
        for change in range(_CHANGES_EACH):
            assert await _count_once(spaces[change % len(spaces)], writer) == 0

    await asyncio.gather(*map(write, range(_WRITERS)))
    for writer in range(_WRITERS):
        memory = clients[writer % len(clients)].namespace(scope=f"scope-{writer}")
        revisions = await _all_revisions(memory)
        assert [node.content for node in revisions] == [f"counted {count}" for count in range(_CHANGES_EACH + 1)]
        assert {node.labels["writer"] for node in revisions[1:]} == {str(writer)}
        assert (await memory.get_change_token()).namespace_revision == _CHANGES_EACH + 1


async def test_of_64_writers_that_expect_the_same_namespace_one_wins(clients: Sequence[MemoryClient]):
    await _begin(clients[0])

    async def remember(writer: int) -> int | None:
        memory = clients[writer % len(clients)]
        try:
            remembered = await memory.remember(
                f"fact {writer}", expected_namespace_revision=1, timeout=_PATIENCE_SECONDS
            )
        except RevisionConflictError as error:
            _require(error, expected="1", actual="2")
            return None
        return remembered.citation.namespace_revision

    answers = await asyncio.gather(*map(remember, range(_WRITERS)))
    assert sorted(answers, key=str) == [2, *[None] * (_WRITERS - 1)]


async def test_64_equal_requests_at_once_are_one(clients: Sequence[MemoryClient]):
    answers = await asyncio.gather(
        *(
            clients[number % len(clients)].remember("the only one", request_id="request-1", timeout=_PATIENCE_SECONDS)
            for number in range(_WRITERS)
        )
    )
    assert len({(answer.outcome, answer.citation) for answer in answers}) == 1
    assert len([change async for change in clients[0].list_change_sets()]) == 1


async def test_64_writers_that_remember_the_same_make_one_memory(clients: Sequence[MemoryClient]):
    answers = await asyncio.gather(
        *(
            clients[number % len(clients)].remember("known to all", timeout=_PATIENCE_SECONDS)
            for number in range(_WRITERS)
        )
    )
    assert sorted(str(answer.outcome) for answer in answers) == ["CREATED", *["UNCHANGED"] * (_WRITERS - 1)]
    assert len({answer.citation for answer in answers}) == 1


async def _begin(memory: MemoryNamespace) -> None:
    await memory.remember("counted 0", node_id="counter", labels={"count": "0"}, timeout=_PATIENCE_SECONDS)


async def _count_once(memory: MemoryNamespace, writer: int) -> int:
    """Add one to what is there, by compare and set. How many times somebody else was faster."""
    conflicts = 0
    while True:
        node = await memory.get_node("counter", timeout=_PATIENCE_SECONDS)
        try:
            made = await _set(memory, node, int(node.labels["count"]) + 1, writer)
        except RevisionConflictError as error:
            conflicts += 1
            actual = int(error.metadata["actual"])
            _require(error, node_id="counter", expected=str(node.revision), actual=str(max(actual, node.revision + 1)))
            await _is_there(memory, actual)
        else:
            assert made == node.revision + 1
            return conflicts


def _require(error: RevisionConflictError, **metadata: str) -> None:
    assert error.definite
    told = {name: value for name, value in error.metadata.items() if name != "operation_index"}
    assert told == metadata


async def _is_there(memory: MemoryNamespace, revision: int) -> None:
    assert (await memory.get_node("counter", timeout=_PATIENCE_SECONDS)).revision >= revision


async def _set(memory: MemoryNamespace, node: Node, count: int, writer: int) -> int:
    """Half of the writers name the text that they have seen, the others the number of its revision."""
    content, labels = f"counted {count}", {"count": str(count), "writer": str(writer)}
    if writer % 2:
        revised: Revised = await memory.revise(node, content=content, set_labels=labels, timeout=_PATIENCE_SECONDS)
        return revised.citation.node_revision
    evidence = Evidence(uri=f"count:{writer}-{count}", kind=EvidenceKind.MANUAL, body=content.encode())
    applied: ChangeSet = await memory.apply_change_set(
        [
            Revise(
                node_id=node.id,
                expected_revision=node.revision,
                content=content,
                set_labels=labels,
                evidence=[evidence],
            )
        ],
        timeout=_PATIENCE_SECONDS,
    )
    return applied.changes[0].citation.node_revision


async def _all_revisions(memory: MemoryNamespace) -> list[Node]:
    return [node async for node in memory.list_revisions("counter", page_size=500)]
