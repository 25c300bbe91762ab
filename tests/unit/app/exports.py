"""A namespace with something of everything, its export, and an import of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from durable_memory.app.candidates import Proposal
from durable_memory.app.sessions import PolicyRequest
from durable_memory.app.transfer_records import ExportRecord
from durable_memory.domain.citation import Citation
from durable_memory.domain.node import NodeRef, RelationKind
from tests.unit.app.world import DEFAULTS, MANUAL, World, draft, evidence, items

Records = list[ExportRecord]


async def fill(world: World) -> None:
    """A namespace with something of everything."""
    await world.app.memories.remember(world.request("Remember", "first"), "a", draft("tea"), DEFAULTS)
    await world.remember("milk", "b", labels={"type": "drink"}, surroundings=("with cereal",), author="user-1")
    await world.relate(RelationKind.RELATED_TO, "a", "b")
    proposals = [
        Proposal(node_id=name, draft=draft(name, evidence=(evidence(name),))) for name in ("yes", "no", "open")
    ]
    await world.app.candidates.propose(world.request("ProposeCandidates", "proposals"), proposals)
    await world.app.candidates.activate(world.request("ActivateCandidates"), [NodeRef("yes", 1)], MANUAL)
    await world.app.candidates.reject(world.request("RejectCandidates"), [NodeRef("no", 1)], MANUAL)
    await world.open(related_lookups=4)
    run = (await world.app.sessions.begin_run(world.request("BeginRun", "begin"), "assistant", "turn-1", "host-1")).run
    await world.app.recall.active_admitted(world.request("ActiveRecall", "recall"), "assistant", run.context_id, "tea")
    await world.app.access.record_use(
        world.request("RecordUse", "use"), "assistant", run.context_id, items(NodeRef("a", 2), NodeRef("missing", 1))
    )
    await world.begin(host="host-2")
    await world.put("a", "coffee")
    await world.app.memories.supersede(
        world.request("SupersedeMemory"), Citation.of(await world.node("a")), "c", draft("espresso"), DEFAULTS
    )
    session = await world.app.sessions.get(world.call, "assistant")
    await world.app.sessions.rebind(
        world.request("RebindSession"), "assistant", session.binding.digest(), PolicyRequest(max_results=9)
    )
    await world.open("closed")
    await world.app.sessions.close(world.request("CloseSession"), "closed")


async def exported(world: World) -> Records:
    return [record async for record in world.app.transfer.export(world.call)]


async def imported(world: World, records: Sequence[ExportRecord], key: str | None = None) -> Any:
    return await world.app.transfer.import_(world.request("ImportNamespace", key), records)
