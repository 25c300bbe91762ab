"""What people and hosts ask of semantic recall: refresh now, how does the index stand, when is it refreshed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from durable_memory.app.call import Call
from durable_memory.app.semantic.current import CurrentGeneration, provider_has_not_answered
from durable_memory.app.semantic.health import SemanticHealth
from durable_memory.app.semantic.lease_holder import LeaseHolder
from durable_memory.app.semantic.maintenance import Maintenance, MaintenanceHealth, describe_failure
from durable_memory.app.semantic.partition_state import IndexState, PartitionState, judge
from durable_memory.app.semantic.publishing import put_on_record, to_its_end
from durable_memory.app.semantic.refresh import RefreshService
from durable_memory.app.semantic.refresh_progress import Granted, Report
from durable_memory.app.semantic.unindexed import count_unindexed
from durable_memory.app.semantic.vector_cache import VectorCache
from durable_memory.app.semantic.vector_view import VectorView
from durable_memory.app.sessions import SessionService
from durable_memory.domain.caller import Role
from durable_memory.domain.errors import DomainError, Reason, invalid_field
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, Manifest
from durable_memory.domain.state import ChangeToken
from durable_memory.ports.runtime import Clock
from durable_memory.ports.semantic_records import (
    SCHEDULE_SECONDS_MAX,
    MaintenanceRun,
    Receipt,
    RefreshWork,
    RunOutcome,
    Schedule,
    SemanticRecords,
)
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import Consistency, VectorIndex

SCHEDULE_SECONDS_MIN: Final = 1.0
_STATUS_ATTEMPTS: Final = 5

_NOT_BEGUN: Final = frozenset({Reason.LEASE_HELD, Reason.CONSISTENCY_UNSUPPORTED})
"""How a refresh ends that was not tried, because another one is going on or its caller wants what there is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How a namespace's partition stands.

    `unindexed_active_count`: ACTIVE memories whose present text has no live vector, as of `token`. `refused_count`:
    those of the last receipt's that the provider refuses to embed. `last_failure`: why the latest run failed, out of a
    closed list; empty if it did not, or a refresh has come through since.
    """

    token: ChangeToken
    generation: Generation
    state: IndexState
    manifest: Manifest | None
    last_receipt: Receipt | None
    unindexed_active_count: int
    refused_count: int
    last_failure: str
    schedule: Schedule | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceMaintenance:
    """What became of one namespace's refreshes. `health` is of this process, for all namespaces: operators see it."""

    health: MaintenanceHealth | None
    last_receipt: Receipt | None
    runs: Sequence[MaintenanceRun]


class SemanticService:
    """Works on the partition of the call's namespace in the server's generation."""

    def __init__(
        self,
        store: Store,
        records: SemanticRecords,
        index: VectorIndex,
        holder: LeaseHolder,
        vectors: VectorCache,
        refresh: RefreshService,
        maintenance: Maintenance,
        sessions: SessionService,
        clock: Clock,
        health: SemanticHealth,
        *,
        current: CurrentGeneration,
    ) -> None:
        self._store = store
        self._records = records
        self._index = index
        self._holder = holder
        self._vectors = vectors
        self._refresh = refresh
        self._maintenance = maintenance
        self._sessions = sessions
        self._clock = clock
        self._health = health
        self._current = current

    @property
    def generation(self) -> Generation | None:
        """What this server makes; `None` if nobody has ever heard that of its provider."""
        return self._current.known

    async def refresh(
        self, call: Call, session_id: str, requirement: Consistency, report: Report, *, rebuild: bool = False
    ) -> Receipt:
        """Make the session's partition cover what is ACTIVE now; see `RefreshService.refresh`.

        `rebuild`: every segment is written anew, from cached vectors where there are any. One that fails is on record
        among the runs, as a scheduled one is.

        Raises: as that, SESSION_NOT_FOUND, SESSION_CLOSED, SEMANTIC_UNAVAILABLE for a session of another generation.
        """
        session = await self._sessions.get(call, session_id)
        session.require_open()
        generation = self._current.bound(session.binding.policy.semantic)
        started, granted = self._clock.now(), Granted()
        try:
            return await self._refresh.refresh(
                call.namespace,
                generation,
                requirement=requirement,
                report=report,
                rebuild=rebuild,
                granted=granted,
            )
        except DomainError as error:
            if error.reason not in _NOT_BEGUN:
                run = MaintenanceRun(
                    started_at=started,
                    ended_at=self._clock.now(),
                    outcome=RunOutcome.FAILED,
                    error=describe_failure(error),
                    fence=granted.fence,
                )
                # What the caller is told is why the refresh failed, also where that cannot be put on record.
                with suppress(DomainError):
                    await self._records.add_run(self._partition(call), run)
            raise

    async def status(self, call: Call) -> IndexStatus:
        """Pure. Raises: DEPENDENCY_UNAVAILABLE if index or repository cannot be read."""
        partition = self._partition(call)
        head = await self._store.head(call.namespace)
        state, view = await self._judged(partition)
        receipt = state.receipt
        return IndexStatus(
            token=head.token,
            generation=self._current.required(),
            state=state.state,
            manifest=state.manifest,
            last_receipt=receipt,
            unindexed_active_count=(
                head.active_count
                if view is None
                else await count_unindexed(self._store, call.namespace, head.token, head.active_count, view)
            ),
            refused_count=0 if view is None or receipt is None else receipt.active_count - receipt.indexed_count,
            last_failure=self._provider_away() or _last_failure(await self._records.runs(partition), receipt),
            schedule=await self._records.schedule(call.namespace, partition.authority_digest),
        )

    async def receipts(self, call: Call, *, before: tuple[int, int, int] | None, limit: int) -> Sequence[Receipt]:
        """Newest first; those whose position is below `before`."""
        return await self._records.list_receipts(self._partition(call), before=before, limit=limit)

    async def clear(self, call: Call) -> Receipt:
        """Forget the published vectors. Recall goes on lexically; the next refresh builds from cached vectors.

        Raises: LEASE_HELD, LEASE_FENCED, OUTCOME_UNKNOWN where nobody answered, or it cannot be put on record.
        """
        partition = self._partition(call)
        async with self._holder.hold(partition) as lease:
            head = await self._store.head(call.namespace)
            receipt = Receipt(
                authority_digest=partition.authority_digest,
                fence=lease.fence,
                index_revision=0,
                history_digest=INDEX_HISTORY_START,
                source_history_id=head.history_id,
                source_revision=0,
                active_count=head.active_count,
                indexed_count=0,
                consistency=self._index.consistency.value,
                work=RefreshWork(),
                at=self._clock.now(),
            )

            async def cleared() -> Receipt:
                await self._index.clear(partition, lease)
                self._vectors.drop(partition)
                return await put_on_record(self._records, partition, receipt)

            return await to_its_end(cleared())

    async def set_schedule(
        self, call: Call, *, interval_seconds: float | None, on_change_delay_seconds: float | None
    ) -> Schedule:
        """When this namespace is refreshed from now on; both `None`: only by an explicit refresh.

        Raises: INVALID_FIELD for times out of bounds.
        """
        for field, seconds in (("interval", interval_seconds), ("on_change_delay", on_change_delay_seconds)):
            if seconds is not None and not SCHEDULE_SECONDS_MIN <= seconds <= SCHEDULE_SECONDS_MAX:
                raise invalid_field(field, "is not from 1 second to 366 days")
        schedule = Schedule(
            authority_digest=self._current.required().authority_digest,
            interval_seconds=interval_seconds,
            on_change_delay_seconds=on_change_delay_seconds,
            set_by=call.caller.name,
            set_at=self._clock.now(),
        )
        await self._records.set_schedule(call.namespace, schedule)
        return schedule

    async def maintenance(self, call: Call) -> NamespaceMaintenance:
        """The namespace's last receipt and runs, and for operators the health of this process's workers."""
        partition = self._partition(call)
        return NamespaceMaintenance(
            health=self._maintenance.health() if Role.OPERATOR in call.caller.roles else None,
            last_receipt=await self._records.last_receipt(partition),
            runs=await self._records.runs(partition),
        )

    def _provider_away(self) -> str:
        """Why nothing can be embedded, for as long as the provider has not answered since the start."""
        current = self._current
        return describe_failure(provider_has_not_answered(current.trouble)) if current.value is None else ""

    def _partition(self, call: Call) -> Partition:
        return Partition(call.namespace, self._current.required().authority_digest)

    async def _judged(self, partition: Partition) -> tuple[PartitionState, VectorView | None]:
        """How the partition stands, and its vectors where they can be trusted."""
        for attempt in range(1, _STATUS_ATTEMPTS + 1):
            state = await self._state(partition)
            if state.state is not IndexState.CORRUPTED:
                self._health.judged(partition, state)
            if state.state is not IndexState.CURRENT or state.manifest is None:
                return state, None
            try:
                return state, await self._vectors.load(partition, state.manifest)
            except DomainError as error:
                if error.reason is Reason.DATA_CORRUPTED:
                    return replace(state, state=IndexState.CORRUPTED), None
                # Somebody published between the two reads; where that goes on and on, the caller is told.
                if error.reason is not Reason.INDEX_REVISION_CONFLICT or attempt == _STATUS_ATTEMPTS:
                    raise
        raise AssertionError("every attempt returns or raises")

    async def _state(self, partition: Partition) -> PartitionState:
        try:
            return await judge(self._index, self._records, partition)
        except DomainError as error:
            if error.reason is not Reason.DATA_CORRUPTED:
                raise
            receipt = await self._records.last_receipt(partition)
            return PartitionState(state=IndexState.CORRUPTED, manifest=None, receipt=receipt)


def _last_failure(runs: Sequence[MaintenanceRun], receipt: Receipt | None) -> str:
    """Why the latest run failed, unless a refresh that somebody asked for has come through since."""
    if not runs or runs[0].outcome is not RunOutcome.FAILED:
        return ""
    run = runs[0]
    if receipt is None:
        return run.error
    mended = receipt.fence > run.fence if run.fence else receipt.at > run.ended_at
    return "" if mended else run.error
