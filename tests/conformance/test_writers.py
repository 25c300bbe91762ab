"""Many writers at once: nothing is lost, nothing happens twice, and every conflict says where the node stands."""

import asyncio

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeKind
from tests.conformance.samples import MANY, all_nodes, apply, create, node, revise

WRITERS = 64


async def test_64_writers_of_one_node_lose_no_update(store, namespace):
    await apply(store, namespace, create("shared"))

    async def attempt(change, key: str) -> DomainError | None:
        try:
            await apply(store, namespace, change, key=key)
        except DomainError as error:
            return error
        return None

    async def label(writer: int) -> int:
        """Set a label of one's own, from the revision that one has read or was told; how many conflicts it took."""
        expected = (await node(store, namespace, "shared")).revision
        for conflicts in range(WRITERS):
            change = revise("shared", expected, labels={f"writer-{writer}": str(writer)})
            error = await attempt(change, f"{writer}-{conflicts}")
            if error is None:
                return conflicts
            assert error.reason is Reason.REVISION_CONFLICT
            assert error.metadata["node_id"] == "shared"
            assert int(error.metadata["expected"]) == expected
            assert int(error.metadata["actual"]) > expected
            expected = int(error.metadata["actual"])
        raise AssertionError("one writer met more conflicts than there are other writers")

    conflicts = await asyncio.gather(*(label(writer) for writer in range(WRITERS)))
    final = await node(store, namespace, "shared")
    assert final.labels == {f"writer-{writer}": str(writer) for writer in range(WRITERS)}
    assert final.revision == 1 + WRITERS
    assert (await store.head(namespace)).revision == 1 + WRITERS
    records = await store.list_change_sets(namespace, after_revision=0, limit=MANY)
    assert [record.namespace_revision for record in records] == list(range(1, WRITERS + 2))
    assert len({record.request_id for record in records}) == WRITERS + 1
    assert min(conflicts) == 0


async def test_64_writers_in_64_namespaces_never_meet(store, unique):
    namespaces = [Namespace("acme", f"user-{number}", unique) for number in range(WRITERS)]

    async def write(own: Namespace) -> None:
        await apply(store, own, create("n", own.principal_id, kind=NodeKind.EPISODIC), key="create")
        await apply(store, own, revise("n", 1, f"{own.principal_id} again"), key="revise")

    await asyncio.gather(*(write(own) for own in namespaces))
    for own in namespaces:
        assert [item.content for item in await all_nodes(store, own, 2)] == [f"{own.principal_id} again"]
        assert (await store.head(own)).revision == 2


async def test_64_writers_in_one_namespace_each_get_a_revision_of_their_own(store, namespace):
    outcomes = await asyncio.gather(
        *(apply(store, namespace, create(f"n{writer}"), key=f"k{writer}") for writer in range(WRITERS))
    )
    assert sorted(outcome.head.revision for outcome in outcomes) == list(range(1, WRITERS + 1))
    assert all(outcome.result["at"] == outcome.head.revision for outcome in outcomes)
    assert len(await all_nodes(store, namespace, WRITERS)) == WRITERS
