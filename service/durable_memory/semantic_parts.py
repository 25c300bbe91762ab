"""The adapters of semantic recall that the settings name, beside the store that they name."""

from __future__ import annotations

import structlog

from durable_memory.adapters.memory import MemoryStore
from durable_memory.adapters.memory.leases import MemoryLeaseStore
from durable_memory.adapters.memory.semantic_records import MemorySemanticRecords
from durable_memory.adapters.memory.vector_index import MemoryVectorIndex
from durable_memory.adapters.postgres import PostgresStore
from durable_memory.adapters.postgres.semantic_records import PostgresSemanticRecords
from durable_memory.adapters.sqlite import SqliteStore
from durable_memory.adapters.sqlite.leases import SqliteLeaseStore
from durable_memory.adapters.sqlite.semantic_records import SqliteSemanticRecords
from durable_memory.adapters.sqlite.vector_index import SqliteVectorIndex
from durable_memory.app.semantic.refresh_limits import RefreshLimits
from durable_memory.app.semantic.runtime import SemanticParts
from durable_memory.config import PREFIX, Settings, SettingsError
from durable_memory.domain.semantic.segment import FloatWidth
from durable_memory.embedding import build_embedder, why_lexical
from durable_memory.ports.embedder import Embedder
from durable_memory.ports.leases import LeaseStore
from durable_memory.ports.runtime import Clock, Ids
from durable_memory.ports.semantic_records import SemanticRecords
from durable_memory.ports.store import Store
from durable_memory.ports.vector_index import VectorIndex

_log = structlog.stdlib.get_logger(__name__)


def build_semantic_parts(
    settings: Settings, store: Store, clock: Clock, ids: Ids, embedder: Embedder | None = None
) -> SemanticParts | None:
    """The parts, not open yet; None where the settings name no embedder and none is given, and recall is lexical.

    Raises: SettingsError for an extra that is not installed, and for a shared store without a shared index.
    """
    embedder = embedder or build_embedder(settings, clock=clock, ids=ids)
    if embedder is None:
        problem = why_lexical(settings)
        if problem is not None:
            _log.info("semantic_off", provider="auto", problem=problem)
        if settings.vectors.redis_url is not None:
            # Not refused: whoever switches the provider off for a while should not have to move the rest about.
            _log.warning(
                "setting_without_effect",
                setting=f"{PREFIX}VECTORS_REDIS_URL",
                problem="no provider makes vectors, so that none are put there",
            )
        return None
    index, leases = _index_and_leases(settings, store, clock)
    bounds = settings.vectors
    return SemanticParts(
        embedder=embedder,
        index=index,
        leases=leases,
        records=_records(store),
        vector_budget_bytes=bounds.budget_bytes,
        lease_ttl_seconds=bounds.lease_ttl_seconds,
        workers=bounds.refresh_workers,
        default_delay_seconds=bounds.refresh_delay_seconds,
        poll_seconds=bounds.poll_interval_seconds,
        search_budget_seconds=bounds.search_budget_seconds,
        limits=RefreshLimits(max_bytes=bounds.max_partition_bytes, width=FloatWidth[bounds.vector_format.upper()]),
    )


def _index_and_leases(settings: Settings, store: Store, clock: Clock) -> tuple[VectorIndex, LeaseStore]:
    url = settings.vectors.redis_url
    if url is not None:
        # Its driver is an extra weight that only this deployment needs.
        from durable_memory.adapters.redis import RedisConnection, RedisLeaseStore, RedisVectorIndex, parse_redis_url

        connection = RedisConnection(parse_redis_url(url.get_secret_value()))
        return RedisVectorIndex(connection), RedisLeaseStore(connection)
    if isinstance(store, SqliteStore):
        return SqliteVectorIndex(store, clock), SqliteLeaseStore(store, clock)
    if isinstance(store, MemoryStore):
        leases = MemoryLeaseStore(clock)
        return MemoryVectorIndex(leases, clock), leases
    raise SettingsError(
        [f"{PREFIX}VECTORS_REDIS_URL: is missing: the index of a store that servers share has to be shared too"]
    )


def _records(store: Store) -> SemanticRecords:
    if isinstance(store, SqliteStore):
        return SqliteSemanticRecords(store)
    if isinstance(store, PostgresStore):
        return PostgresSemanticRecords(store)
    if isinstance(store, MemoryStore):
        return MemorySemanticRecords(store)
    raise TypeError(f"{type(store).__name__} keeps no records of semantic recall")
