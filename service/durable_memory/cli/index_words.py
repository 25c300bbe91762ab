"""How the vector index stands and what refreshes did, in words."""

from __future__ import annotations

from typing import Final

from durable_memory.cli.times import Times, show_duration
from durable_memory_client import IndexState, IndexStatus, MaintenanceHealth, RefreshReceipt, RefreshSchedule

_AFTER_A_CHANGE: Final = "after a change, while a session is open that recalls by meaning"
_STATES: Final = {
    IndexState.NOT_BUILT: "not built: recall is by words",
    IndexState.REGRESSED: "lost what was published last; not searched, and the next refresh builds it again",
    IndexState.CORRUPTED: "damaged; not searched, and the next refresh builds it again",
}


def facts(times: Times, stands: IndexStatus, maintenance: MaintenanceHealth) -> list[tuple[str, str]]:
    """Names and values; a value is empty where there is nothing to say."""
    generation, receipt, unindexed = stands.generation, stands.last_receipt, stands.unindexed_active_count
    return [
        ("index", _state(stands)),
        ("model", f"{generation.model} of {generation.provider}, {generation.dimension} dimensions"),
        ("generation", generation.authority_digest),
        ("not covered", f"{memories(unindexed)}, found by words only" if unindexed else "nothing"),
        ("refused", f"{memories(stands.refused_count)}, by the embedding provider" if stands.refused_count else ""),
        *_published(stands),
        ("last refresh", f"{times.show(receipt.written_at)}: {done(receipt)}" if receipt else ""),
        ("last failure", stands.last_failure),
        ("refreshed", when(stands.schedule)),
        ("maintenance", _maintenance(maintenance)),
        ("its last error", _last_error(times, maintenance)),
    ]


def _state(stands: IndexStatus) -> str:
    if stands.state is not IndexState.CURRENT:
        return _STATES.get(stands.state, stands.state)
    if not stands.unindexed_active_count:
        return "in use: covers every active memory as it is now"
    if stands.unindexed_active_count == stands.refused_count:
        return "in use: covers what the embedding provider does not refuse"
    return "in use, and behind: some active memories are new or changed since"


def memories(count: int) -> str:
    return f"{count:,} active {'memory' if count == 1 else 'memories'}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def done(receipt: RefreshReceipt) -> str:
    """What a refresh did, in words; "nothing to do" for a verified no-op."""
    work = receipt.work
    amounts = ((work.added, "added"), (work.replaced, "replaced"), (work.removed, "removed"))
    changes = [f"{amount:,} {word}" for amount, word in amounts if amount]
    refused = [f"{work.refused:,} refused by the provider"] if work.refused else []
    if not changes and not work.staged_bytes:
        nothing = "cleared" if receipt.index_revision == 0 and receipt.active_count else "nothing to do"
        return ", ".join([nothing, *refused])
    embedded = f"{work.provider_inputs:,} embedded in {_counted(work.provider_calls, 'call')}"
    origin = f"{embedded}, {work.cache_hits:,} from the cache"
    return ", ".join([*(changes or ["written anew"]), origin, *refused, show_duration(work.duration)])


def when(schedule: RefreshSchedule | None) -> str:
    """When the index is refreshed by itself."""
    if schedule is None:
        return f"shortly {_AFTER_A_CHANGE} (the server's default)"
    times = []
    if schedule.interval is not None:
        times.append(f"every {show_duration(schedule.interval)}")
    if schedule.on_change_delay is not None:
        times.append(f"{show_duration(schedule.on_change_delay)} {_AFTER_A_CHANGE}")
    return ", and ".join(times) or "only by `index refresh`"


def _published(stands: IndexStatus) -> list[tuple[str, str]]:
    published, receipt = stands.published, stands.last_receipt
    if published is None:
        return []
    source = published.source
    if receipt is not None and receipt.index_history_digest == published.index_history_digest:
        source = receipt.source  # a refresh that found nothing to do has seen further
    return [
        ("published", f"index revision {published.index_revision}, covers revision {source.namespace_revision}"),
        (
            "vectors",
            f"{published.live_count:,} as of then, not used where the text has changed since; "
            f"{published.dead_count:,} replaced ones; {published.float_bits}-bit numbers, "
            f"{_counted(published.segment_count, 'segment')}, {published.stored_bytes:,} bytes",
        ),
    ]


def _last_error(times: Times, health: MaintenanceHealth) -> str:
    return f"{times.show(health.last_error_at)}: {health.last_error}" if health.last_error else ""


def _maintenance(health: MaintenanceHealth) -> str:
    if health.phase is None:
        return "for operators"
    return (
        f"{health.phase.lower()}, {health.running_count} of {health.worker_count} workers busy; "
        f"{_counted(health.run_count or 0, 'run')} and {_counted(health.failure_count or 0, 'failure')} "
        "since the server started"
    )
