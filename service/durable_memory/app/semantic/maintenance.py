"""Scheduled refreshes: any replica runs any of them, one at a time for each partition, and none is replayed.

The schedule and the receipts in the repository say what is due; the lease says who does it. What a recall found lost or
damaged is due as well, although nothing has changed: it is built again from cached vectors. A refresh that fails waits
longer before each next try, in this process, while others may try at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import partial
from typing import Final

import structlog

from durable_memory.app.defects import exception_types, frames
from durable_memory.app.semantic.current import CurrentGeneration
from durable_memory.app.semantic.health import SemanticHealth
from durable_memory.app.semantic.refresh import RefreshService
from durable_memory.app.semantic.refresh_progress import Granted, RefreshProgress
from durable_memory.app.semantic.repeated_failures import RepeatedFailures
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.ports.embedder import EmbeddingError
from durable_memory.ports.runtime import Clock
from durable_memory.ports.semantic_records import (
    RUN_ERROR_MAX_CHARACTERS,
    MaintenanceRun,
    Receipt,
    RunOutcome,
    SemanticRecords,
)
from durable_memory.ports.vector_index import Consistency
from durable_memory.tasks import completed, end

_BACKOFF_FIRST_SECONDS: Final = 2.0
_BACKOFF_MOST_SECONDS: Final = 300.0
_PROVIDER_MOST_SECONDS: Final = 30.0
"""The provider's own circuit keeps its peace; what is new is not to wait for minutes once it is back."""
_BACKOFFS_KEPT: Final = 10_000
_HELD_SECONDS: Final = 2.0
"""For how long a partition that another replica is at is left to it."""

_BY_HAND_SECONDS: Final = 60.0
"""For how long a lost index whose namespace has no schedule is not looked at again."""

_DETAILS: Final = ("after", "status", "trouble", "expected_dimension", "received_dimension")
"""What a provider's failure is told by, beside its name."""

_LOOK: Final = "look"

_log = structlog.stdlib.get_logger(__name__)


class MaintenancePhase(IntEnum):
    """Numbers equal the contract's."""

    STOPPED = 1
    IDLE = 2
    REFRESHING = 3
    FAILING = 4
    """The last look for due work, or the last refresh, failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceHealth:
    """Of this process. `last_error` is out of a closed list of reasons, without content."""

    phase: MaintenancePhase
    workers: int
    running: int
    runs: int
    failures: int
    last_error: str
    last_error_at: datetime | None


@dataclass(slots=True)
class _Backoff:
    failures: int = 0
    not_before: float = 0.0


@dataclass(slots=True)
class _Counts:
    runs: int = 0
    failures: int = 0
    last_error: str = ""
    last_error_at: datetime | None = None
    look_failed: bool = False
    refresh_failed: bool = False


class Maintenance:
    """Looks for due refreshes and runs them, with a number of workers."""

    def __init__(
        self,
        refresh: RefreshService,
        records: SemanticRecords,
        current: CurrentGeneration,
        clock: Clock,
        health: SemanticHealth,
        *,
        workers: int,
        default_delay_seconds: float,
        poll_seconds: float,
    ) -> None:
        self._refresh = refresh
        self._records = records
        self._current = current
        self._clock = clock
        self._health = health
        self._workers = workers
        self._default_delay = default_delay_seconds
        self._poll = poll_seconds
        self._running: dict[str, asyncio.Task[None]] = {}
        self._backoff: OrderedDict[str, _Backoff] = OrderedDict()
        self._counts = _Counts()
        self._failures = RepeatedFailures(clock)
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look for work."""
        self._loop = asyncio.create_task(self._run(), name="semantic maintenance")

    async def stop(self) -> None:
        """Stop looking, and cancel what runs: an index is left whole, and another replica goes on."""
        loop, self._loop = self._loop, None
        if loop is not None:
            await end([loop])  # first, for it begins what is ended then
        await end(self._running.values())
        self._running.clear()

    def health(self) -> MaintenanceHealth:
        return MaintenanceHealth(
            phase=self._phase(),
            workers=self._workers,
            running=len(self._running),
            runs=self._counts.runs,
            failures=self._counts.failures,
            last_error=self._counts.last_error,
            last_error_at=self._counts.last_error_at,
        )

    def _phase(self) -> MaintenancePhase:
        if self._loop is None or self._loop.done():
            return MaintenancePhase.STOPPED
        if self._counts.look_failed or self._counts.refresh_failed:
            return MaintenancePhase.FAILING
        return MaintenancePhase.REFRESHING if self._running else MaintenancePhase.IDLE

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._poll)
            try:
                await self._look()
            except Exception as error:  # noqa: BLE001 - on record, whatever it is: nobody else would look again
                self._counts.look_failed = True
                self._failed(_LOOK, _as_failure(error))

    async def _look(self) -> None:
        room = self._workers - len(self._running)
        if room <= 0:
            return
        # What is passed over comes first again and again, and must not keep what comes after it from its turn.
        now = self._clock.now()
        due = await self._records.due(
            self._current.answered().authority_digest,
            now,
            self._default_delay,
            room + self._passed_over(),
        )
        for item in due:
            if len(self._running) >= self._workers:
                break
            partition = Partition(item.namespace, item.authority_digest)
            self._begin(partition, partial(self._is_due_since, partition, now))
        await self._rebuild()
        self._counts.look_failed = False
        self._well(_LOOK)

    def _passed_over(self) -> int:
        """How many may be due and do not begin now."""
        now = self._clock.monotonic()
        return len(self._running) + sum(now < backoff.not_before for backoff in self._backoff.values())

    async def _rebuild(self) -> None:
        """Begin to build again what was found lost or damaged, unless its namespace has switched schedules off."""
        for partition in self._health.unserved():
            if len(self._running) >= self._workers:
                return
            if not self._may_begin(partition):
                continue
            schedule = await self._records.schedule(partition.namespace, partition.authority_digest)
            if schedule is not None and schedule.is_off:
                self._put_off(partition.name, _BY_HAND_SECONDS)
            elif await self._health.is_unserved(partition):
                self._begin(partition, partial(self._health.is_unserved, partition))

    async def _is_due_since(self, partition: Partition, looked_at: datetime) -> bool:
        """Whether it is for the same reason as at that look: no other replica has run it since.

        A run that would have kept it from being due then was put on record later.
        """
        schedule = await self._records.schedule(partition.namespace, partition.authority_digest)
        interval = None if schedule is None else schedule.interval_seconds
        delay = self._default_delay if schedule is None else schedule.on_change_delay_seconds
        if delay is not None and await self._refresh.covers_all(partition):
            delay = None
        waits = [seconds for seconds in (interval, delay) if seconds is not None]
        if not waits:
            return False
        runs = await self._records.runs(partition)
        return not runs or runs[0].started_at + timedelta(seconds=min(waits)) <= looked_at

    def _may_begin(self, partition: Partition) -> bool:
        backoff = self._backoff.get(partition.name)
        waits = backoff is not None and self._clock.monotonic() < backoff.not_before
        return not waits and partition.name not in self._running

    def _begin(self, partition: Partition, still_due: Callable[[], Awaitable[bool]]) -> None:
        """`still_due` is asked again under the lease: another replica may have been at it between look and lease."""
        if not self._may_begin(partition):
            return
        task = asyncio.create_task(self._one(partition, still_due), name="scheduled refresh")
        self._running[partition.name] = task
        task.add_done_callback(lambda _: self._running.pop(partition.name, None))

    async def _one(self, partition: Partition, still_due: Callable[[], Awaitable[bool]]) -> None:
        started = self._clock.now()
        told = False

        def ended(outcome: RunOutcome, *, error: str = "", index_revision: int = 0) -> MaintenanceRun:
            return MaintenanceRun(
                started_at=started,
                ended_at=self._clock.now(),
                outcome=outcome,
                error=error,
                index_revision=index_revision,
                fence=granted.fence,
            )

        async def leave_to_others() -> None:
            if not await still_due():
                raise DomainError(Reason.LEASE_HELD, "another server has refreshed it since it was found to be due")

        async def came_through(receipt: Receipt) -> None:
            nonlocal told
            told = True  # what ends it from now on ends a run that is on record, and is no run of its own
            published = receipt.work.added + receipt.work.replaced + receipt.work.removed > 0
            outcome = RunOutcome.PUBLISHED if published else RunOutcome.UNCHANGED
            await completed(self._record(partition, ended(outcome, index_revision=receipt.index_revision)))

        granted = Granted(on_lease=leave_to_others, on_receipt=came_through)
        try:
            await self._refresh.refresh(
                partition.namespace,
                self._current.answered(),
                requirement=Consistency.INDEX_REVISION_CAS,
                report=_unreported,
                publish_behind=True,
                granted=granted,
            )
        except asyncio.CancelledError:
            if granted.fence and not told:
                await self._record(partition, ended(RunOutcome.CANCELLED))
            raise
        except Exception as error:  # noqa: BLE001 - on record, whatever it is, and the next try waits
            failure = _as_failure(error)
            if failure.reason is Reason.LEASE_HELD:
                self._put_off(partition.name, _HELD_SECONDS, self._failures_of(partition.name))
                return
            self._counts.refresh_failed = True
            self._failed(_refresh_of(partition), failure)
            self._back_off(partition.name, failure)
            if not told:
                await self._record(partition, ended(RunOutcome.FAILED, error=describe_failure(failure)))
        else:
            self._health.rebuilt(partition)
            self._counts.refresh_failed = False
            self._well(_refresh_of(partition))
            self._backoff.pop(partition.name, None)
        self._counts.runs += 1

    async def _record(self, partition: Partition, run: MaintenanceRun) -> None:
        try:
            await self._records.add_run(partition, run)
        except DomainError as error:
            # Fenced: somebody has begun after it, whose run is the later one and tells how the partition stands.
            if error.reason is not Reason.LEASE_FENCED:
                self._counts.refresh_failed = True
                self._failed(_record_of(partition), error)
        else:
            self._well(_record_of(partition))

    def _failed(self, source: str, error: DomainError) -> None:
        """`source`: which part of the work it was. Every failure is counted, and the log told of few of the same."""
        cause = describe_failure(error)
        self._counts.failures += 1
        self._counts.last_error = cause
        self._counts.last_error_at = self._clock.now()
        behind = error.__cause__
        told = behind.for_log if isinstance(behind, EmbeddingError) else {}
        facts = {"reason": error.reason.value, **_causes(error.metadata), **told}
        defects = exception_types(behind) if error.reason is Reason.INTERNAL else []
        trouble = self._failures.met(source, ":".join((cause, *defects)), facts)
        if trouble is None:
            return
        if behind is not None and defects:
            _log.error("semantic_maintenance_defect", exceptions=defects, frames=frames(behind))
        _log.warning("semantic_maintenance_failed", times=trouble.times, **facts)

    def _well(self, source: str) -> None:
        for trouble in self._failures.well(source):
            seconds = round(self._clock.monotonic() - trouble.since, 3)
            _log.info("semantic_maintenance_works_again", failures=trouble.times, seconds=seconds, **trouble.facts)

    def _back_off(self, name: str, error: DomainError) -> None:
        failures = self._failures_of(name)
        of_provider = error.metadata.get("cause") == "PROVIDER_FAILED"
        most = _PROVIDER_MOST_SECONDS if of_provider else _BACKOFF_MOST_SECONDS
        pause = min(_BACKOFF_FIRST_SECONDS * 2**failures, most)
        if error.reason is Reason.DEPENDENCY_UNAVAILABLE:
            # All wait for the same outage to end, and not for what is wrong with one of them.
            failures, pause = 0, _BACKOFF_FIRST_SECONDS
        self._put_off(name, pause, failures + 1)

    def _failures_of(self, name: str) -> int:
        return self._backoff[name].failures if name in self._backoff else 0

    def _put_off(self, name: str, seconds: float, failures: int = 0) -> None:
        self._backoff[name] = _Backoff(failures, self._clock.monotonic() + seconds)
        self._backoff.move_to_end(name)
        while len(self._backoff) > _BACKOFFS_KEPT:
            self._backoff.popitem(last=False)


async def _unreported(progress: RefreshProgress) -> None:
    """Nobody waits for the progress of a scheduled refresh."""


def _refresh_of(partition: Partition) -> str:
    return f"refresh {partition.name}"


def _record_of(partition: Partition) -> str:
    return f"record {partition.name}"


def _as_failure(error: Exception) -> DomainError:
    """What is no refusal of ours is a defect: its details are for the log alone."""
    if isinstance(error, DomainError):
        return error
    failure = DomainError(Reason.INTERNAL, "a defect, of which the log has the details")
    failure.__cause__ = error
    return failure


def _causes(metadata: Mapping[str, str]) -> dict[str, str]:
    return {name: metadata[name] for name in ("cause",) if name in metadata}


def describe_failure(error: DomainError) -> str:
    """Why a refresh failed, out of closed lists: `SEMANTIC_UNAVAILABLE:PROVIDER_FAILED:REFUSED:status=401`."""
    metadata = error.metadata
    words = [metadata[name] for name in ("cause", "failure") if name in metadata]
    details = [f"{name}={metadata[name]}" for name in _DETAILS if name in metadata]
    return ":".join((error.reason.value, *words, *details))[:RUN_ERROR_MAX_CHARACTERS]
