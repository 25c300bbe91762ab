"""Refresh: make a partition's index cover what is ACTIVE now, or leave it exactly as it was.

Under a fenced lease: judge what is there, take in what changed since it was made, embed what no cache has, check that
the source stands still, write the intent, publish with compare-and-swap, write the receipt. Nothing is published in
part, and a crash at any point is completed or undone by whoever comes next.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from durable_memory.app.semantic.health import SemanticHealth
from durable_memory.app.semantic.index_delta import (
    IndexDelta,
    StagedSegments,
    lay_out,
    live_records,
)
from durable_memory.app.semantic.lease_holder import LeaseHolder
from durable_memory.app.semantic.partition_state import IndexState, PartitionState, judge
from durable_memory.app.semantic.passages import Passages, Refusals
from durable_memory.app.semantic.publishing import (
    CancelledTooLateError,
    not_known,
    published,
    put_on_record,
    to_its_end,
)
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.app.semantic.refresh_progress import Granted, RefreshPhase, RefreshProgress, Report
from durable_memory.app.semantic.source_reads import Source, active_nodes, changed_nodes
from durable_memory.app.semantic.vector_cache import VectorCache
from durable_memory.app.semantic.vector_view import VectorView
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.node import NodeRevision
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.semantic.manifest import Descriptor, Manifest, index_history
from durable_memory.domain.semantic.refusals import stage_expired
from durable_memory.domain.semantic.segment import FloatWidth
from durable_memory.domain.state import Head
from durable_memory.ports.embedder import Embedder
from durable_memory.ports.leases import Lease
from durable_memory.ports.observing import UNOBSERVED, Observer
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.semantic_records import Intent, Receipt, RefreshWork, SemanticRecords
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import Consistency, Publication, VectorIndex

_FOLDS: Final = 3
_STARTS: Final = 3
_TRUE: Final = "true"


class RefreshService:
    """Refreshes partitions of the server's generation."""

    def __init__(
        self,
        store: Store,
        records: SemanticRecords,
        index: VectorIndex,
        holder: LeaseHolder,
        vectors: VectorCache,
        embedder: Embedder,
        clock: Clock,
        ids: Ids,
        health: SemanticHealth,
        observer: Observer = UNOBSERVED,
        *,
        limits: RefreshLimits,
    ) -> None:
        self._store = store
        self._records = records
        self._index = index
        self._holder = holder
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock
        self._ids = ids
        self._health = health
        self._observer = observer
        self._limits = limits
        self._refusals = Refusals()

    async def covers_all(self, partition: Partition) -> bool:
        """Whether the last receipt is of the present revision, or there is nothing to index."""
        receipt = await self._records.last_receipt(partition)
        head = await self._store.head(partition.namespace)
        if receipt is None:
            return head.active_count == 0
        return (receipt.source_history_id, receipt.source_revision) == (head.history_id, head.revision)

    async def refresh(
        self,
        namespace: Namespace,
        generation: Generation,
        *,
        requirement: Consistency,
        report: Report,
        publish_behind: bool = False,
        rebuild: bool = False,
        granted: Granted | None = None,
    ) -> Receipt:
        """The receipt of a publication, or of the verified fact that none was needed.

        `publish_behind`: what covers less, but covers it soon, is as right, for every hit is checked. Where the source
        never stands still, publish what was read at the last look instead of refusing; and an index that was lost is
        published as it was, from cached vectors, before anything new is embedded: that has a receipt of its own, and
        stays whatever becomes of the rest. `rebuild`: write every segment anew,
        and ask the provider again for texts that it has refused. `granted` is told the fence.

        Raises: CONSISTENCY_UNSUPPORTED before any other work, LEASE_HELD, LEASE_FENCED, SOURCE_DRIFT,
        INDEX_REVISION_CONFLICT, QUOTA_EXCEEDED, SEMANTIC_UNAVAILABLE (cause) if the provider fails.
        """
        if requirement is Consistency.INDEX_REVISION_CAS and self._index.consistency is not requirement:
            raise DomainError(
                Reason.CONSISTENCY_UNSUPPORTED,
                f"the index offers {self._index.consistency.value}",
                required=requirement.value,
                offered=self._index.consistency.value,
            )
        partition = Partition(namespace, generation.authority_digest)
        staged: set[str] = set()

        async def keep_staged() -> None:
            if not staged:
                return
            try:
                await self._index.keep_staged(partition, set(staged), ttl_seconds=self._holder.ttl_seconds)
            except DomainError as error:
                # One of them is gone. The lease lives, and the publication finds out and stages them anew.
                if error.reason is not Reason.LEASE_FENCED:
                    raise

        with self._observer.refreshing(partition.name, partition.authority_digest) as notes:
            async with self._holder.hold(partition, keep_staged) as lease:
                if granted is not None:
                    granted.fence = lease.fence
                    if granted.on_lease is not None:
                        await granted.on_lease()
                run = _Refresh(self, partition, generation, lease, staged, report, publish_behind, rebuild)
                notes.receipt = await run.to_receipt()
                if granted is not None and granted.on_receipt is not None:
                    await granted.on_receipt(notes.receipt)
            self._health.unembedded(partition, notes.receipt.active_count - notes.receipt.indexed_count)
            return notes.receipt


class _Refresh:
    """One refresh under its lease."""

    def __init__(
        self,
        service: RefreshService,
        partition: Partition,
        generation: Generation,
        lease: Lease,
        staged: set[str],
        report: Report,
        publish_behind: bool,
        rebuild: bool,
    ) -> None:
        self._service = service
        self._store = service._store
        self._records = service._records
        self._index = service._index
        self._partition = partition
        self._namespace = partition.namespace
        self._generation = generation
        self._lease = lease
        self._staged = staged
        self._report = report
        self._publish_behind = publish_behind
        self._rebuild = rebuild
        self._ask_again = rebuild
        self._cleared = False
        self._restored = False
        self._begin_work()

    def _begin_work(self) -> None:
        """What is done from now on is counted for the next receipt."""
        service = self._service
        self._started = service._clock.monotonic()
        self._passages = Passages(
            service._records,
            service._embedder,
            service._refusals,
            service._observer,
            self._namespace,
            self._generation,
            ask_again=self._ask_again,
        )

    async def to_receipt(self) -> Receipt:
        """Start again where what a publication lists has gone before it happened, which changes nothing.

        Raises: OUTCOME_UNKNOWN, whatever it was, once the old index has been cleared.
        """
        try:
            return await self._started_again()
        except DomainError as error:
            if not self._cleared or error.reason is Reason.OUTCOME_UNKNOWN:
                raise
            raise not_known("the index was cleared, and nothing is known to be in its place") from error
        except asyncio.CancelledError:
            if not self._cleared:
                raise
            raise CancelledTooLateError from None

    async def _started_again(self) -> Receipt:
        for _ in range(_STARTS):
            try:
                return await self._once()
            except DomainError as error:
                if error.reason is not Reason.DATA_CORRUPTED:
                    raise
                await self._mend(error)
        raise stage_expired()

    async def _mend(self, damage: DomainError) -> None:
        """Let go of what was found damaged; the vectors of all of it are cached."""
        self._staged.clear()
        self._service._vectors.drop(self._partition)
        if damage.metadata.get("what") == "manifest":
            await self._index.clear(self._partition, self._lease)
        elif damage.metadata.get("staged") != _TRUE:
            self._rebuild = True

    async def _once(self) -> Receipt:
        state = await judge(self._index, self._records, self._partition)
        self._service._health.judged(self._partition, state)
        if state.completes is not None:
            state = await self._complete(state, state.completes)
        await self._report(RefreshProgress(phase=RefreshPhase.DIFFING))
        view = await self._usable_view(state)
        if view is None and self._publish_behind and not self._restored:
            receipt = await self._as_it_was(state)
            if receipt is not None:
                return receipt if await self._service.covers_all(self._partition) else await self._once()
        delta = IndexDelta()
        source = Source.of(await self._take_in(delta, view, self._source_of(state, view)))
        if delta.empty and state.state is IndexState.CURRENT and (view is not None or not state.lists_segments):
            return await self._unchanged(state, source)
        if delta.empty and state.state is IndexState.NOT_BUILT and source.active_count == 0:
            return await self._unchanged(state, source)
        return await self._publish(state, view, delta, source)

    async def _as_it_was(self, state: PartitionState) -> Receipt | None:
        """What was published last, once more, and its receipt: recall by meaning does not wait until the provider has
        embedded what came since, which it may be too slow for, or away.

        None where it cannot be made of cached vectors alone. What the provider refused then has none, and is left out.
        """
        last, head = state.receipt, await self._store.head(self._namespace)
        if last is None or not last.indexed_count:
            return None
        if last.source_history_id != head.history_id or last.source_revision > head.revision:
            return None
        delta = IndexDelta()
        async for page in active_nodes(self._store, self._namespace, last.source_revision):
            delta.take(page, None)
        missing = await self._passages.cached({record.text_digest for record, _ in delta.wanted.values()})
        delta.leave_out(set(missing))
        if len(delta.wanted) < last.indexed_count:
            return None
        self._passages.refused.update(missing)
        try:
            receipt = await self._publish(state, None, delta, Source.of_receipt(last))
        except DomainError as error:
            if error.reason is not Reason.QUOTA_EXCEEDED:
                raise
            receipt = None  # The bounds are tighter than they were. What is there now may be less, and fit.
        self._restored, self._rebuild = True, self._ask_again
        self._begin_work()
        return receipt

    # What is there, and what has changed

    async def _usable_view(self, state: PartitionState) -> VectorView | None:
        """The published vectors; none if there are none that can be trusted, and then all is built again."""
        if self._rebuild or state.state is not IndexState.CURRENT or state.manifest is None:
            return None
        try:
            return await self._service._vectors.load(self._partition, state.manifest)
        except DomainError as error:
            if error.reason is not Reason.DATA_CORRUPTED:
                raise
            return None

    def _source_of(self, state: PartitionState, view: VectorView | None) -> tuple[str, int] | None:
        """(history id, revision) that the index covers, by its manifest or by a later receipt of the same state."""
        if view is None or state.manifest is None:
            return None
        source = (state.manifest.source_history_id, state.manifest.source_revision)
        receipt = state.receipt
        if receipt is not None and receipt.history_digest == state.manifest.history_digest:
            later = (receipt.source_history_id, receipt.source_revision)
            if later[0] == source[0] and later[1] > source[1]:
                return later
        return source

    async def _take_in(self, delta: IndexDelta, view: VectorView | None, source: tuple[str, int] | None) -> Head:
        """Fold in changes and find their vectors until the source stands still."""
        head = await self._store.head(self._namespace)
        if source is None or source[0] != head.history_id or source[1] > head.revision:
            await self._diff_everything(delta, view, head)
        else:
            delta.take(await self._changed(source[1], head), view)
        for fold in range(_FOLDS + 1):
            self._check_size(head)
            await self._embed(delta)
            latest = await self._store.head(self._namespace)
            if latest.history_id != head.history_id:
                break
            if latest.revision == head.revision:
                return head
            if fold == _FOLDS and self._publish_behind:
                return head
            delta.take(await self._changed(head.revision, latest), view)
            head = latest
        raise DomainError(
            Reason.SOURCE_DRIFT,
            "the namespace kept changing while its index was being refreshed",
            namespace_revision=head.revision,
        )

    async def _diff_everything(self, delta: IndexDelta, view: VectorView | None, head: Head) -> None:
        active: set[str] = set()
        async for page in active_nodes(self._store, self._namespace, head.revision):
            delta.take(page, view)
            active.update(node.node_id for node in page)
        if view is not None:
            delta.removed.update(record.node_id for record in view.records() if record.node_id not in active)

    async def _changed(self, after_revision: int, head: Head) -> list[NodeRevision]:
        return await changed_nodes(self._store, self._namespace, after_revision, head)

    # Vectors

    async def _embed(self, delta: IndexDelta) -> None:
        """Vectors of all that is wanted. What the provider refuses is left out, and its old vector with it."""
        if not self._rebuild:
            self._service._health.unembedded(self._partition, len(delta.wanted))

        async def progress(done: int, total: int) -> None:
            await self._report(RefreshProgress(phase=RefreshPhase.EMBEDDING, done=done, total=total))

        await self._passages.get({record.text_digest: text for record, text in delta.wanted.values()}, progress)
        delta.leave_out(self._passages.refused)

    # Publication

    async def _publish(
        self, state: PartitionState, view: VectorView | None, delta: IndexDelta, source: Source
    ) -> Receipt:
        descriptor = self._descriptor(state.manifest)
        in_another_form = state.manifest is not None and state.manifest.descriptor != descriptor
        if in_another_form:
            state = replace(state, manifest=None)  # what there will be before the publication
        laid_out = await asyncio.to_thread(self._lay_out, view, delta, descriptor.width)
        self._service._limits.require(
            records=live_records(laid_out.entries), nbytes=sum(entry.nbytes for entry in laid_out.entries)
        )
        await self._report(RefreshProgress(phase=RefreshPhase.STAGING, done=len(delta.wanted), total=len(delta.wanted)))
        for segment_id, encoded in laid_out.staged.items():
            await self._index.stage(self._partition, segment_id, encoded, ttl_seconds=self._service._holder.ttl_seconds)
            self._staged.add(segment_id)
        publication = Publication(
            partition=self._partition,
            lease=self._lease,
            expected_index_revision=state.index_revision,
            descriptor=descriptor,
            segments=laid_out.entries,
            staged_ids=frozenset(laid_out.staged),
            source_history_id=source.history_id,
            source_revision=source.revision,
            nonce=self._service._ids.random_hex(16),
        )
        history = index_history(state.history_digest, state.index_revision + 1, laid_out.entries)
        intent = Intent(
            fence=self._lease.fence,
            nonce=publication.nonce,
            expected_index_revision=state.index_revision,
            history_digest=history,
            source_history_id=source.history_id,
            source_revision=source.revision,
            active_count=source.active_count,
            work=self._work_done(delta, laid_out.nbytes),
            started_at=self._service._clock.now(),
        )
        await self._records.write_intent(self._partition, intent)
        receipt = await to_its_end(self._settle(publication, intent, clear_first=in_another_form))
        await self._report(RefreshProgress(phase=RefreshPhase.PUBLISHED))
        return receipt

    async def _settle(self, publication: Publication, intent: Intent, *, clear_first: bool) -> Receipt:
        """Publish and write the receipt of it. `clear_first`: what is there has another form, and would be in the way;
        until then it serves."""
        if clear_first:
            self._service._vectors.drop(self._partition)
            await self._index.clear(self._partition, self._lease)
            self._cleared = True
        manifest = await published(self._index, publication)
        self._cleared = False
        self._staged.clear()
        return await put_on_record(self._records, self._partition, self._receipt_of(intent, manifest))

    def _lay_out(self, view: VectorView | None, delta: IndexDelta, width: FloatWidth) -> StagedSegments:
        return lay_out(
            view,
            delta,
            self._passages.found,
            dimension=self._generation.dimension,
            width=width,
            new_ids=iter(lambda: self._service._ids.random_hex(12), None),
        )

    def _check_size(self, head: Head) -> None:
        """Of what is ACTIVE, before anything of it is embedded: each needs a vector, and its numbers take room.

        Raises: QUOTA_EXCEEDED.
        """
        vector_bytes = self._generation.dimension * self._service._limits.width // 8
        self._service._limits.require(records=head.active_count, nbytes=head.active_count * vector_bytes)

    # Receipts

    async def _complete(self, state: PartitionState, intent: Intent) -> PartitionState:
        """Write the receipt of a publication whose publisher died before it could."""
        if state.manifest is None:
            raise AssertionError("a publication that happened has a manifest")
        receipt = replace(self._receipt_of(intent, state.manifest), completed_by_successor=True)
        await self._records.write_receipt(self._partition, receipt)
        return replace(state, receipt=receipt, completes=None)

    async def _unchanged(self, state: PartitionState, source: Source) -> Receipt:
        receipt = Receipt(
            authority_digest=self._partition.authority_digest,
            fence=self._lease.fence,
            index_revision=state.index_revision,
            history_digest=state.history_digest,
            source_history_id=source.history_id,
            source_revision=source.revision,
            active_count=source.active_count,
            indexed_count=0 if state.manifest is None else state.manifest.live_count,
            consistency=self._index.consistency.value,
            work=self._work_done(IndexDelta(), 0),
            at=self._service._clock.now(),
        )
        await self._records.write_receipt(self._partition, receipt)
        await self._report(RefreshProgress(phase=RefreshPhase.UNCHANGED))
        return receipt

    def _receipt_of(self, intent: Intent, manifest: Manifest) -> Receipt:
        return Receipt(
            authority_digest=self._partition.authority_digest,
            fence=self._lease.fence,
            index_revision=manifest.index_revision,
            history_digest=manifest.history_digest,
            source_history_id=intent.source_history_id,
            source_revision=intent.source_revision,
            active_count=intent.active_count,
            indexed_count=manifest.live_count,
            consistency=self._index.consistency.value,
            work=replace(intent.work, milliseconds=self._milliseconds()),
            at=self._service._clock.now(),
        )

    def _work_done(self, delta: IndexDelta, staged_bytes: int) -> RefreshWork:
        return RefreshWork(
            added=len(delta.wanted) - len(delta.replaced),
            replaced=len(delta.replaced),
            removed=len(delta.removed),
            refused=len(self._passages.refused),
            cache_hits=self._passages.cache_hits,
            provider_calls=self._passages.calls,
            provider_inputs=self._passages.inputs,
            provider_bytes=self._passages.input_bytes,
            staged_bytes=staged_bytes,
            milliseconds=self._milliseconds(),
        )

    def _milliseconds(self) -> int:
        return round(1_000 * (self._service._clock.monotonic() - self._started))

    def _descriptor(self, manifest: Manifest | None) -> Descriptor:
        """All vectors of a partition are stored in one width: that of those that are there, unless all are written anew
        because somebody wants it so. So servers whose settings differ for a while do not write it anew in turns."""
        width = self._service._limits.width
        if manifest is not None and not self._rebuild:
            width = manifest.descriptor.width
        return Descriptor(
            dimension=self._generation.dimension,
            metric=self._generation.metric.value,
            normalization=self._generation.normalization.value,
            width=width,
        )
