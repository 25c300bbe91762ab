"""Export and import of a whole namespace: every revision, change set, request, session, run and access event.

An export is a sequence of records between a header and a footer whose digest covers them all. An import verifies
everything that can be verified before it writes anything, then writes all of it in one transaction under a new
history id.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, replace

from durable_memory.app.call import Call, Mutation
from durable_memory.app.stored_results import integer, objects
from durable_memory.app.transfer_records import (
    ExportFooter,
    ExportHeader,
    ExportRecord,
    RecordDigest,
    SessionExport,
    TransferCounts,
    counts_json,
    parse_counts,
)
from durable_memory.app.transfer_verification import verified_copy
from durable_memory.domain.access import AccessEvent
from durable_memory.domain.node import NodeRef
from durable_memory.domain.session import BindingRecord
from durable_memory.domain.state import ChangeToken, Head
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.store import RequestRecord, Store

_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Where the namespace stands after an import, and what it brought."""

    token: ChangeToken
    counts: TransferCounts


class TransferService:
    """Moves namespaces between stores, for operators."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids

    async def export(self, call: Call) -> AsyncGenerator[ExportRecord, None]:
        """All records of the namespace as it stands now; what is written meanwhile is left out.

        A stream without its footer is not an export.
        """
        head = await self._store.head(call.namespace)
        yield ExportHeader(
            namespace=call.namespace,
            token=head.token,
            chain_digest=head.chain_digest,
            exported_at=self._clock.now(),
        )
        digest = RecordDigest()
        async for record in self._records(call, head):
            digest.add(record)
            yield record
        yield ExportFooter(counts=digest.counts(), digest=digest.hex())

    async def import_(self, call: Mutation, records: Sequence[ExportRecord]) -> Imported:
        """Make an empty namespace what a complete export says. A repeat of the request returns the first result.

        Raises: DATA_CORRUPTED (record, problem) for whatever does not verify, INVALID_FIELD for an export of another
        namespace, REVISION_CONFLICT if the namespace holds anything already.
        """
        stored = await self._store.find_request(call.namespace, call.request.method, call.request.key)
        if stored is None:
            copy, counts = verified_copy(call.namespace, records)
            history_id = self._ids.random_hex(16)
            request = RequestRecord(
                request=call.request,
                result={"at": copy.revision, "counts": counts_json(counts), "history_id": history_id},
                namespace_revision=copy.revision,
            )
            requests = [item for item in copy.requests if _identity(item) != _identity(request)]
            await self._store.import_namespace(call.namespace, replace(copy, requests=[*requests, request]), history_id)
            result = request.result
        else:
            stored.request.require_same(call.request.fingerprint)
            result = stored.result
        return Imported(
            token=ChangeToken(history_id=str(result["history_id"]), namespace_revision=integer(result["at"])),
            counts=parse_counts(objects([result["counts"]])[0]),
        )

    async def _records(self, call: Call, head: Head) -> AsyncIterator[ExportRecord]:
        exported: set[NodeRef] = set()
        seen = 0
        while seen < head.revision:
            limit = min(_PAGE, head.revision - seen)
            records = await self._store.list_change_sets(call.namespace, after_revision=seen, limit=limit)
            nodes = await self._store.revisions_committed_at(
                call.namespace, {record.namespace_revision for record in records}
            )
            for record in records:
                for node in nodes[record.namespace_revision]:
                    exported.add(node.ref)
                    yield replace(node, valid_to=None)
                yield record
                seen = record.namespace_revision
        async for request in self._store.export_requests(call.namespace):
            if request.namespace_revision <= head.revision:
                yield request
        async for session in self._sessions(call):
            yield session
        async for run, _ in self._store.export_runs(call.namespace):
            yield run
        async for event in self._events(call):
            if event.ref in exported:
                yield event

    async def _sessions(self, call: Call) -> AsyncIterator[SessionExport]:
        bindings: dict[str, list[BindingRecord]] = {}
        async for record in self._store.export_bindings(call.namespace):
            bindings.setdefault(record.session_id, []).append(record)
        after = ""
        while True:
            sessions = await self._store.list_sessions(call.namespace, after_session_id=after, limit=_PAGE)
            for session in sessions:
                known = [
                    record
                    for record in bindings.get(session.session_id, ())
                    if record.binding_version <= session.binding_version
                ]
                if len(known) == session.binding_version:  # opened before the bindings were read
                    yield SessionExport(session=session, bindings=tuple(known))
            if len(sessions) < _PAGE:
                return
            after = sessions[-1].session_id

    async def _events(self, call: Call) -> AsyncIterator[AccessEvent]:
        after = ""
        while True:
            events = await self._store.list_events(call.namespace, kind=None, after_event_id=after, limit=_PAGE)
            for event in events:
                yield event
            if len(events) < _PAGE:
                return
            after = events[-1].event_id


def _identity(record: RequestRecord) -> tuple[str, str]:
    return record.request.method, record.request.key
