"""Export and import of a whole namespace: every revision, change set, request, session, run and access event.

An export is a sequence of records between a header and a footer whose digest covers them all. An import verifies
everything that can be verified before it writes anything, then writes all of it in one transaction under a new
history id.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from durable_memory.app.call import Call, Mutation
from durable_memory.app.change_sets import repeated
from durable_memory.app.repository import changes_after
from durable_memory.app.stored_results import integer, mapping
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
from durable_memory.domain.canonical import JsonObject
from durable_memory.domain.errors import DomainError, Reason, limit_exceeded
from durable_memory.domain.limits import IMPORT_MAX_EMPTY_CONTEXTS
from durable_memory.domain.node import NodeRef
from durable_memory.domain.session import BindingRecord, Run, Session
from durable_memory.domain.state import ChangeToken, Head
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.store import NamespaceCopy, RequestRecord, Store
from durable_memory.tasks import completed

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

        Raises: LIMIT_EXCEEDED instead of the footer if no import would take it, for the runs have too many contexts.
        """
        head = await self._store.head(call.namespace)
        yield ExportHeader(
            namespace=call.namespace,
            token=head.token,
            chain_digest=head.chain_digest,
            exported_at=self._clock.now(),
        )
        digest = RecordDigest()
        most = IMPORT_MAX_EMPTY_CONTEXTS + 2
        contexts = 0
        async with aclosing(self._records(call, head)) as records:
            async for record in records:
                try:
                    digest.add(record)
                except ValueError:
                    # Of a refusal that an earlier version kept, of a revision that is beyond all that there can be.
                    # The call is refused before it is looked up by now, so its record is of no use to anybody.
                    if not isinstance(record, RequestRecord):
                        raise
                    continue
                most += 1
                contexts += record.sequence + 1 if isinstance(record, Run) else 0
                yield record
        if contexts > most:
            raise limit_exceeded("runs", most, contexts, "contexts")
        yield ExportFooter(counts=digest.counts(), digest=digest.hex())

    async def import_(self, call: Mutation, records: Sequence[ExportRecord]) -> Imported:
        """Make an empty namespace what a complete export says. A repeat of the request returns the first result.

        Raises: DATA_CORRUPTED (record, problem) for whatever does not verify, INVALID_FIELD for an export of another
        namespace, REVISION_CONFLICT if the namespace holds anything already.
        """
        if await self._is_known(call):
            result = (await repeated(self._store, call)).result
        else:
            # A thread goes on where nobody waits for it, and holds all of the records as long as it does.
            copy, counts = await completed(asyncio.to_thread(verified_copy, call.namespace, records))
            result = await self._write(call, copy, counts)
        return Imported(
            token=ChangeToken(history_id=str(result["history_id"]), namespace_revision=integer(result["at"])),
            counts=parse_counts(mapping(result["counts"])),
        )

    async def _is_known(self, call: Mutation) -> bool:
        return await self._store.find_request(call.namespace, call.request.method, call.request.key) is not None

    async def _write(self, call: Mutation, copy: NamespaceCopy, counts: TransferCounts) -> JsonObject:
        """Import once: the request is kept with what it imported, and an equal one that was first is found."""
        history_id = self._ids.random_hex(16)
        request = RequestRecord(
            request=call.request,
            result={"at": copy.revision, "counts": counts_json(counts), "history_id": history_id},
            namespace_revision=copy.revision,
        )
        requests = [item for item in copy.requests if _identity(item) != _identity(request)]
        try:
            await self._store.import_namespace(call.namespace, replace(copy, requests=[*requests, request]), history_id)
        except DomainError as error:
            if error.reason is not Reason.REVISION_CONFLICT or not await self._is_known(call):
                raise
            return (await repeated(self._store, call)).result
        return request.result

    async def _records(self, call: Call, head: Head) -> AsyncGenerator[ExportRecord, None]:
        """In the order in which each refers only to what came before.

        What is written while this reads is left out as soon as it refers to something that was.
        """
        exported: set[NodeRef] = set()
        seen = 0
        while seen < head.revision:
            records, nodes = await changes_after(self._store, call, seen, upto=head.revision)
            for record in records:
                for node in nodes[record.namespace_revision]:
                    exported.add(node.ref)
                    yield replace(node, valid_to=None)
                yield record
                seen = record.namespace_revision
        async for request in self._store.export_requests(call.namespace):
            if request.namespace_revision <= head.revision:
                yield request
        sessions: set[str] = set()
        for session in await self._sessions(call):
            sessions.add(session.session.session_id)
            yield session
        contexts: set[str] = set()
        async for run, known in self._store.export_runs(call.namespace):
            if run.session_id in sessions:
                contexts.update(context.context_id for context in known if context.sequence <= run.sequence)
                yield run
        async for event in self._events(call):
            if event.ref in exported and event.context_id in contexts:
                yield event

    async def _sessions(self, call: Call) -> list[SessionExport]:
        """All sessions, read before their bindings, so that none lacks one; later bindings are left out."""
        sessions: list[Session] = []
        while True:
            after = sessions[-1].session_id if sessions else ""
            page = await self._store.list_sessions(call.namespace, after_session_id=after, limit=_PAGE)
            sessions.extend(page)
            if len(page) < _PAGE:
                break
        versions = {session.session_id: session.binding_version for session in sessions}
        bindings: dict[str, list[BindingRecord]] = {session_id: [] for session_id in versions}
        async for record in self._store.export_bindings(call.namespace):
            if record.binding_version <= versions.get(record.session_id, 0):
                bindings[record.session_id].append(record)
        return [SessionExport(session=session, bindings=tuple(bindings[session.session_id])) for session in sessions]

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
