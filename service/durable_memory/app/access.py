"""Admission and use: what entered a model's input, and what was cited or acted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from durable_memory.app.call import Call, Mutation
from durable_memory.app.change_sets import exact_revisions
from durable_memory.app.memories import revision_not_found
from durable_memory.app.sessions import idle
from durable_memory.app.stored_results import error_json, integer, objects, parse_error, parse_ref, ref_json
from durable_memory.domain.access import (
    AccessEvent,
    AccessItem,
    AccessKind,
    UsageSummary,
    check_admissible,
    event_id_reused,
)
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.citation import Citation
from durable_memory.domain.errors import DomainError
from durable_memory.domain.node import NodeRef
from durable_memory.domain.session import Context, Run, RunState, run_ended, run_not_found, session_not_found
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.runtime import Clock
from durable_memory.ports.store import Decision, Loaded, Lock, Plan, Reads, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOutcome:
    """One item: recorded under `event_id` with the citation of its exact text, or refused with the reason why."""

    ref: NodeRef
    event_id: str
    citation: Citation | None = None
    error: DomainError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One outcome per item, in order. `next_context_id` is that of the next assembly, for admissions only."""

    outcomes: tuple[AccessOutcome, ...]
    token: ChangeToken
    next_context_id: str | None = None


class AccessService:
    """Records access events. Reading records nothing."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def admit(self, call: Mutation, session_id: str, context_id: str, items: Sequence[AccessItem]) -> Recorded:
        """Record that exact revisions enter the context `context_id`; what is refused must leave it.

        Only the current ACTIVE revision is admitted. Repeats are no-ops.

        Raises: SESSION_NOT_FOUND, SESSION_CLOSED, RUN_NOT_FOUND, RUN_ENDED.
        """
        now = self._clock.now()

        def decide(loaded: Loaded) -> Decision:
            return admission_decision(loaded, call, session_id, context_id, items, now)

        reads = admission_reads(session_id, context_id, items)
        plan = Plan(lock=Lock.NODES, reads=reads, decide=decide, request=call.request)
        outcome = await self._store.transact(call.namespace, plan)
        return await self.recorded(call, outcome.result, outcome.head.history_id)

    async def record_use(
        self, call: Mutation, session_id: str, context_id: str, items: Sequence[AccessItem]
    ) -> Recorded:
        """Record that exact revisions, current or not, were cited or acted on.

        Raises: SESSION_NOT_FOUND, SESSION_CLOSED, RUN_NOT_FOUND.
        """
        now = self._clock.now()

        def decide(loaded: Loaded) -> Decision:
            _, run = _context_of(loaded, session_id, context_id)
            events: list[AccessEvent] = []
            results: list[JsonObject] = []
            for item in items:
                event = _event(AccessKind.USE, call, session_id, context_id, item, now)
                try:
                    node = loaded.revisions.get(item.ref)
                    if node is None or (item.citation is not None and not item.citation.names(node)):
                        raise revision_not_found(item.ref)
                    _record(event, loaded, events)
                except DomainError as error:
                    results.append(_refused(event, error))
                else:
                    results.append(_accepted(event))
            return Decision(
                result={"at": loaded.head.revision, "items": results}, runs=_used(run, now), events=tuple(events)
            )

        reads = Reads(
            session_ids=frozenset({session_id}),
            contexts=frozenset({context_id}),
            revisions=frozenset(item.ref for item in items),
            event_ids=frozenset(item.settled_event_id(AccessKind.USE, context_id) for item in items),
        )
        plan = Plan(lock=Lock.NODES, reads=reads, decide=decide, request=call.request)
        outcome = await self._store.transact(call.namespace, plan)
        return await self.recorded(call, outcome.result, outcome.head.history_id)

    async def usage(self, call: Call, node_ids: Sequence[str], *, after: NodeRef, limit: int) -> Sequence[UsageSummary]:
        """Counts and last times per node revision, of some nodes or of all."""
        return await self._store.usage(call.namespace, node_ids=frozenset(node_ids), after=after, limit=limit)

    async def recorded(self, call: Call, result: JsonObject, history_id: str) -> Recorded:
        """What a stored result says, with citations read again."""
        items = objects(result["items"])
        refs = [parse_ref(item["node"]) for item in items if "error" not in item]
        nodes = {node.ref: node for node in await exact_revisions(self._store, call, refs)}
        outcomes = []
        for item in items:
            ref = parse_ref(item["node"])
            error = item.get("error")
            if isinstance(error, Mapping):
                outcomes.append(AccessOutcome(ref=ref, event_id=str(item["event_id"]), error=parse_error(error)))
            else:
                outcomes.append(
                    AccessOutcome(ref=ref, event_id=str(item["event_id"]), citation=Citation.of(nodes[ref]))
                )
        context_id = result.get("next_context_id")
        return Recorded(
            outcomes=tuple(outcomes),
            token=ChangeToken(history_id=history_id, namespace_revision=integer(result["at"])),
            next_context_id=None if context_id is None else str(context_id),
        )


def admission_reads(session_id: str, context_id: str, items: Sequence[AccessItem]) -> Reads:
    """What deciding on admissions has to see."""
    return Reads(
        node_ids=frozenset(item.ref.node_id for item in items),
        session_ids=frozenset({session_id}),
        contexts=frozenset({context_id}),
        event_ids=frozenset(item.settled_event_id(AccessKind.ADMISSION, context_id) for item in items),
    )


def admission_decision(
    loaded: Loaded,
    call: Mutation,
    session_id: str,
    context_id: str,
    items: Sequence[AccessItem],
    now: datetime,
) -> Decision:
    """One outcome per item, the events of those admitted, and the next context of the run."""
    context, run = _context_of(loaded, session_id, context_id)
    used = _used(run, now)
    if not used:
        raise run_ended(run)
    events: list[AccessEvent] = []
    results: list[JsonObject] = []
    for item in items:
        event = _event(AccessKind.ADMISSION, call, session_id, context_id, item, now)
        try:
            if event.event_id not in loaded.events:
                check_admissible(item.ref, loaded.nodes)
            _record(event, loaded, events)
        except DomainError as error:
            results.append(_refused(event, error))
        else:
            results.append(_accepted(event))
    following = context.next()
    if following.sequence > run.sequence:
        used = tuple(replace(run, sequence=following.sequence, context_id=following.context_id) for run in used)
    return Decision(
        result={"at": loaded.head.revision, "items": results, "next_context_id": following.context_id},
        runs=used,
        contexts=(following,),
        events=tuple(events),
    )


def _used(run: Run, now: datetime) -> tuple[Run, ...]:
    """The run as used now, or nothing where it has ended."""
    if run.state is not RunState.OPEN or idle(run, now):
        return ()
    return (replace(run, active_at=max(run.active_at, now)),)


def _context_of(loaded: Loaded, session_id: str, context_id: str) -> tuple[Context, Run]:
    session = loaded.sessions.get(session_id)
    if session is None:
        raise session_not_found(session_id)
    session.require_open()
    context = loaded.contexts.get(context_id)
    if context is None or context.session_id != session_id:
        raise run_not_found(session_id=session_id, context_id=context_id)
    return context, loaded.runs[context.session_id, context.run_id, context.incarnation]


def _event(
    kind: AccessKind, call: Mutation, session_id: str, context_id: str, item: AccessItem, now: datetime
) -> AccessEvent:
    return AccessEvent(
        event_id=item.settled_event_id(kind, context_id),
        kind=kind,
        session_id=session_id,
        context_id=context_id,
        node_id=item.ref.node_id,
        revision=item.ref.revision,
        caller=call.caller.name,
        at=now,
    )


def _record(event: AccessEvent, loaded: Loaded, events: list[AccessEvent]) -> None:
    """Add an event unless it is there already.

    Raises: EVENT_ID_REUSED if another one, stored or of the same call, has its id.
    """
    earlier = loaded.events.get(event.event_id) or next(
        (other for other in events if other.event_id == event.event_id), None
    )
    if earlier is None:
        events.append(event)
    elif not earlier.same_body(event):
        raise event_id_reused(event.event_id)


def _accepted(event: AccessEvent) -> JsonObject:
    return {"event_id": event.event_id, "node": ref_json(event.ref)}


def _refused(event: AccessEvent, error: DomainError) -> JsonObject:
    return {"error": error_json(error), "event_id": event.event_id, "node": ref_json(event.ref)}
