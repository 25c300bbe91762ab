"""Values of semantic recall that the tests write, with every field that a test does not care about filled in."""

from dataclasses import replace
from datetime import timedelta

from durable_memory.domain.canonical import digest_hex
from durable_memory.domain.namespace import Namespace
from durable_memory.domain.semantic.embedded_text import text_digest
from durable_memory.domain.semantic.generation import Generation, Partition
from durable_memory.domain.session import RecallPolicy, SemanticGeneration, Session, SessionBinding, SessionState
from durable_memory.ports.semantic_records import (
    DueRefresh,
    Intent,
    MaintenanceRun,
    Receipt,
    RefreshWork,
    RunOutcome,
    Schedule,
    SemanticRecords,
)
from durable_memory.ports.store import Store
from tests.conformance.samples import NOW, policy, session, writing

WORK = RefreshWork(
    added=1,
    replaced=2,
    removed=3,
    cache_hits=4,
    provider_calls=5,
    provider_inputs=6,
    provider_bytes=7,
    staged_bytes=8,
    milliseconds=9,
)
DELAY = 2.0


def generation(unique: str) -> Generation:
    """One that no other test uses."""
    return Generation(provider="test", model="model", revision=unique, dimension=3)


def partition(namespace: Namespace, of: Generation) -> Partition:
    return Partition(namespace, of.authority_digest)


def digests(*texts: str) -> list[str]:
    return [text_digest(text) for text in texts]


def vector(number: int) -> bytes:
    return number.to_bytes(4, "little") * 3


def intent(fence: int, expected_index_revision: int = 0, *, source_revision: int = 1) -> Intent:
    return Intent(
        fence=fence,
        nonce=f"nonce-{fence}-{expected_index_revision}",
        expected_index_revision=expected_index_revision,
        history_digest=digest_hex("test", str(expected_index_revision).encode()),
        source_history_id="history",
        source_revision=source_revision,
        active_count=10,
        work=WORK,
        started_at=NOW,
    )


def receipt(
    of: Partition, fence: int, index_revision: int = 1, *, source_revision: int = 1, history_id: str = "history"
) -> Receipt:
    return Receipt(
        authority_digest=of.authority_digest,
        fence=fence,
        index_revision=index_revision,
        history_digest=digest_hex("test", str(index_revision).encode()),
        source_history_id=history_id,
        source_revision=source_revision,
        active_count=10,
        indexed_count=9,
        consistency="INDEX_REVISION_CAS",
        work=WORK,
        at=NOW,
    )


def maintenance_run(number: int = 0, *, fence: int = 0, outcome: RunOutcome = RunOutcome.PUBLISHED) -> MaintenanceRun:
    """One that began `number` seconds after `NOW`."""
    started_at = NOW + timedelta(seconds=number)
    return MaintenanceRun(
        started_at=started_at,
        ended_at=started_at + timedelta(microseconds=1),
        outcome=outcome,
        error="PROVIDER_FAILED" if outcome is RunOutcome.FAILED else "",
        index_revision=number,
        fence=fence,
    )


def schedule(of: Generation, interval: float | None = None, delay: float | None = None) -> Schedule:
    return Schedule(
        authority_digest=of.authority_digest,
        interval_seconds=interval,
        on_change_delay_seconds=delay,
        set_by="operator",
        set_at=NOW,
    )


def bound_policy(of: Generation) -> RecallPolicy:
    return replace(
        policy(),
        semantic=SemanticGeneration(
            authority_digest=of.authority_digest,
            provider=of.provider,
            model=of.model,
            model_revision=of.revision,
            dimension=of.dimension,
            normalization=of.normalization.value,
            metric=of.metric.value,
            candidate_limit=100,
            min_similarity=0.0,
        ),
    )


def bound_session(
    namespace: Namespace, of: Generation, session_id: str = "s", state: SessionState = SessionState.OPEN
) -> Session:
    binding = SessionBinding(namespace=namespace, policy=bound_policy(of))
    return replace(session(namespace, session_id), binding=binding, state=state)


async def bind(store: Store, namespace: Namespace, of: Generation, session_id: str = "s") -> None:
    """Open a session of the generation."""
    await store.transact(namespace, writing(sessions=(bound_session(namespace, of, session_id),)))


async def cover(
    records: SemanticRecords, of: Partition, *, history_id: str, source_revision: int, index_revision: int = 1
) -> None:
    """Take a fence, and say that the index covers the namespace up to a revision."""
    fence = await records.highest_fence(of) + 1
    assert await records.record_fence(of, fence)
    await records.write_receipt(
        of, receipt(of, fence, index_revision, source_revision=source_revision, history_id=history_id)
    )


async def due(
    records: SemanticRecords, of: Generation, seconds: float = 0.0, *, delay: float = DELAY, limit: int = 100
) -> list[Namespace]:
    """The namespaces whose partition is due so many seconds after `NOW`."""
    found = await records.due(of.authority_digest, NOW + timedelta(seconds=seconds), delay, limit)
    assert found == [DueRefresh(namespace=item.namespace, authority_digest=of.authority_digest) for item in found]
    return [item.namespace for item in found]
