"""The index under traffic: watched while it moves, and held against what is on record when the traffic is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from durable_memory_client import IndexStatus, MemoryNamespace, MemoryServiceError
from tests.processes.polling import WaitTimeoutError, wait_until_async
from tests.qualification.checks import fencing, index
from tests.qualification.observers.leases import LeaseObserver
from tests.qualification.observers.receipts import Repository, namespace_key, partition_name
from tests.qualification.scenarios.indexed_place import LEASE_TTL_SECONDS
from tests.qualification.scenarios.stage import Stage

_CAUGHT_UP_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 0.2
_CALL_SECONDS: Final = 60.0
_LEAVE_SECONDS: Final = 5.0
"""For what is done although nobody may answer any more."""


def observer_of(stage: Stage) -> LeaseObserver:
    """Of all nodes of the cluster's Redis; it watches while its block lasts."""
    return LeaseObserver({node.name: node.port for node in stage.cluster.redis.nodes}, stage.timeline)


async def judge_index(stage: Stage, observer: LeaseObserver, places: Sequence[MemoryNamespace]) -> None:
    """Wait until what is indexed by itself has caught up; then hold what was seen of all places against the record.

    Nobody writes any more. Places whose schedule is off may be behind.
    """
    statuses = {_name(place): await place.get_index_status(timeout=_CALL_SECONDS) for place in places}
    indexed = {_name(place): place for place in places if _refreshes_itself(statuses[_name(place)])}
    final = await _caught_up(indexed)
    stage.found("the index catches up with what was written", len(final), index.not_caught_up(final))
    keys = {_name(place): _key(place) for place in places}
    own = {partition_name(keys[name], status.generation.authority_digest) for name, status in statuses.items()}
    kept = await Repository(stage.cluster.postgres.direct_dsn()).read(list(keys.values()))
    primary = await stage.cluster.redis.find_primary()
    seen = [one for one in observer.seen if one.partition in own]
    latest = {name: one for name, one in observer.latest_at(primary.name).items() if name in own}
    published = len({one.published.nonce for one in seen if one.published is not None})
    stage.found(
        "one holder at a time, and fences that rise",
        len(seen),
        fencing.problems(seen, kept.receipts, ttl_seconds=LEASE_TTL_SECONDS),
    )
    stage.found(
        "what is on record is under fences on record",
        len(kept.receipts),
        fencing.records_above_the_floor(kept.receipts, kept.intents, kept.floors),
    )
    stage.found("index revisions rise by one", published, index.problems(seen))
    stage.found(
        "what is published is on record", len(latest), index.off_the_record(latest, kept.receipts, kept.intents)
    )
    stage.result.figures["publications"] = published
    stage.result.figures["moments_missed_by_the_observer"] = observer.missed


async def leave_alone(places: Sequence[MemoryNamespace]) -> None:
    """Let nothing be indexed by itself any more: whoever comes next needs the model. Nothing, where nobody answers."""
    for place in places:
        with suppress(MemoryServiceError):
            await place.set_schedule(timeout=_LEAVE_SECONDS)


async def _caught_up(places: Mapping[str, MemoryNamespace]) -> Mapping[str, IndexStatus]:
    """The statuses that have everything, or the last ones when time is up."""
    statuses: dict[str, IndexStatus] = {}

    async def have_everything() -> bool:
        for name, place in places.items():
            with suppress(MemoryServiceError):
                statuses[name] = await place.get_index_status(timeout=_CALL_SECONDS)
        return len(statuses) == len(places) and not index.not_caught_up(statuses)

    with suppress(WaitTimeoutError):
        await wait_until_async(have_everything, _CAUGHT_UP_SECONDS, interval=_LOOK_SECONDS)
    return statuses


def _refreshes_itself(status: IndexStatus) -> bool:
    return status.schedule is None or status.schedule.on_change_delay is not None


def _key(place: MemoryNamespace) -> bytes:
    tenant, principal, scope = place.ref.tenant, place.ref.principal, place.ref.scope
    assert tenant is not None
    assert principal is not None
    assert scope is not None
    return namespace_key(tenant, principal, scope)


def _name(place: MemoryNamespace) -> str:
    return f"{place.ref.tenant}/{place.ref.scope}"
