"""Several namespaces in one turn: a user's memory and a project's, say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TypeVar

from durable_memory_client.aio.calls import OnUnavailable
from durable_memory_client.aio.run import MemoryRun
from durable_memory_client.aio.transport import Thunk, gather
from durable_memory_client.errors import MemoryServiceError
from durable_memory_client.values.access import Admission, UseOutcome
from durable_memory_client.values.enums import RecallMode
from durable_memory_client.values.namespace import Namespace
from durable_memory_client.values.recall import Hit, MergedRecall, Recall, RecallFilter

T = TypeVar("T")


async def recall_all(
    runs: Sequence[MemoryRun],
    query: str,
    *,
    max_results: int | None = None,
    filter: RecallFilter | None = None,
    mode: RecallMode | None = None,
    include_surroundings: bool = False,
    on_unavailable: OnUnavailable | None = None,
    timeout: float | None = None,
) -> MergedRecall:
    """Recall in several runs, each of a namespace of its own, at once; the hits as one sequence.

    Hits come by rank, the runs taking turns in the order given; `max_results` cuts the whole. Nothing is admitted:
    give what you use to `admit_all`. With `on_unavailable="empty"`, a namespace out of reach has no hits.
    """

    def recalling(run: MemoryRun) -> Thunk[Recall]:
        async def recall() -> Recall:
            return await run.recall(
                query,
                filter=filter,
                mode=mode,
                include_surroundings=include_surroundings,
                on_unavailable=on_unavailable,
                timeout=timeout,
            )

        return recall

    parts = await gather([recalling(run) for run in runs])
    by_rank = zip_longest(*(part.hits for part in parts))
    hits = tuple(hit for hits in by_rank for hit in hits if hit is not None)
    return MergedRecall(hits=hits[:max_results], parts=tuple(parts))


async def admit_all(
    runs: Sequence[MemoryRun],
    hits: Iterable[Hit],
    *,
    on_unavailable: OnUnavailable | None = None,
    timeout: float | None = None,
) -> Admission:
    """Admit each hit in the run of its namespace. The answer has the hits that may stay, in the order given.

    Raises: ValueError for a hit of a namespace that no run is of.
    """
    wanted = tuple(hits)
    shares = _shares(runs, wanted)

    def admitting(run: MemoryRun, share: Sequence[Hit]) -> Thunk[Admission]:
        async def admit() -> Admission:
            return await run.admit(share, on_unavailable=on_unavailable, timeout=timeout)

        return admit

    admissions = await _all([admitting(run, share) for run, share in shares])
    admitted = {id(hit) for admission in admissions for hit in admission.hits}
    return Admission(
        hits=tuple(hit for hit in wanted if id(hit) in admitted),
        outcomes=tuple(outcome for admission in admissions for outcome in admission.outcomes),
        error=next((admission.error for admission in admissions if admission.error is not None), None),
    )


async def record_use_all(
    runs: Sequence[MemoryRun], hits: Iterable[Hit], *, timeout: float | None = None
) -> list[UseOutcome]:
    """Record the use of each hit in the run of its namespace; the outcomes run by run.

    Raises: ValueError for a hit of a namespace that no run is of.
    """
    shares = _shares(runs, tuple(hits))

    def recording(run: MemoryRun, share: Sequence[Hit]) -> Thunk[list[UseOutcome]]:
        async def record() -> list[UseOutcome]:
            return await run.record_use(share, timeout=timeout)

        return record

    outcomes = await _all([recording(run, share) for run, share in shares])
    return [outcome for share in outcomes for outcome in share]


async def _all(changes: Sequence[Thunk[T]]) -> list[T]:
    try:
        return await gather(changes)
    except MemoryServiceError as error:
        if len(changes) > 1:
            error.definite = False  # of the whole: the others may have been done
        raise


def _shares(runs: Sequence[MemoryRun], hits: Sequence[Hit]) -> list[tuple[MemoryRun, list[Hit]]]:
    shares: dict[Namespace, tuple[MemoryRun, list[Hit]]] = {}
    for run in runs:
        shares.setdefault(run.namespace, (run, []))
    for hit in hits:
        if hit.namespace not in shares:
            raise ValueError(f"no run is of the namespace of a hit: {hit.namespace}")
        shares[hit.namespace][1].append(hit)
    return [share for share in shares.values() if share[1]]
