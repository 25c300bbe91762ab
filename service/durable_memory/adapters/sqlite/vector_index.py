"""The vector index in the store's file: the same segments and manifests as elsewhere, published in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import Any, Final

from durable_memory.adapters.manifest_codec import descriptor_text, parse_descriptor, parse_segments, segments_text
from durable_memory.adapters.sqlite.connection import fetch, run
from durable_memory.adapters.sqlite.leases import MICROS_PER_SECOND, highest_fence, require_live
from durable_memory.adapters.sqlite.queries import names
from durable_memory.adapters.sqlite.store import SqliteStore
from durable_memory.domain.canonical import to_micros
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, MANIFEST_FORMAT, Manifest
from durable_memory.domain.semantic.refusals import (
    lease_fenced,
    manifest_unreadable,
    segment_id_reused,
    segment_missing,
    stage_expired,
)
from durable_memory.domain.semantic.segment import checksum
from durable_memory.ports.leases import Lease
from durable_memory.ports.runtime import Clock
from durable_memory.ports.vector_index import Consistency, Publication

REPLACED_GRACE_SECONDS: Final = 120.0


class SqliteVectorIndex:
    """`VectorIndex` in the file of `store`, which is opened and closed by its owner.

    Publishes under leases of a `SqliteLeaseStore` over the same store, and on the same clock.
    """

    consistency: Final = Consistency.INDEX_REVISION_CAS
    connections: Final = 0

    def __init__(
        self, store: SqliteStore, clock: Clock, *, replaced_grace_seconds: float = REPLACED_GRACE_SECONDS
    ) -> None:
        self._store = store
        self._clock = clock
        self._grace_micros = round(replaced_grace_seconds * MICROS_PER_SECOND)

    async def open(self) -> None:
        await self.check()

    async def close(self) -> None:
        """The file is the store's."""

    async def check(self) -> None:
        await self._store.check()

    async def manifest(self, partition: Partition) -> Manifest | None:
        return await self._store.read_beside(lambda connection: _find_manifest(connection, partition.name))

    async def segments(self, partition: Partition, segment_ids: Collection[str]) -> Mapping[str, bytes]:
        parameters = {"partition": partition.name, "segment_ids": names(segment_ids), "now": self._now()}
        rows = await self._store.read_beside(lambda connection: fetch(connection, "read_segments", parameters))
        return {row["segment_id"]: row["data"] for row in rows}

    async def stage(self, partition: Partition, segment_id: str, encoded: bytes, *, ttl_seconds: float) -> None:
        identity = {"nbytes": len(encoded), "checksum": checksum(encoded)}

        def work(connection: sqlite3.Connection) -> None:
            now = self._now()
            run(connection, "drop_expired_segments", {"now": now})
            held = _find_segments(connection, partition.name, [segment_id], now).get(segment_id)
            if held is None:
                parameters = {
                    "partition": partition.name,
                    "segment_id": segment_id,
                    "expires_at": now + round(ttl_seconds * MICROS_PER_SECOND),
                    "data": encoded,
                    **identity,
                }
                run(connection, "add_segment", parameters)
            elif held != identity:
                raise segment_id_reused()

        await self._store.write_beside(work)

    async def keep_staged(self, partition: Partition, segment_ids: Collection[str], *, ttl_seconds: float) -> None:
        wanted = set(segment_ids)

        def work(connection: sqlite3.Connection) -> None:
            now = self._now()
            if _find_segments(connection, partition.name, wanted, now).keys() != wanted:
                raise stage_expired()
            expires_at = now + round(ttl_seconds * MICROS_PER_SECOND)
            parameters = {"partition": partition.name, "segment_ids": names(wanted), "expires_at": expires_at}
            run(connection, "keep_segments", parameters)

        await self._store.write_beside(work)

    async def publish(self, publication: Publication) -> Manifest:
        return await self._store.write_beside(lambda connection: self._publish(connection, publication))

    async def clear(self, partition: Partition, lease: Lease) -> None:
        def work(connection: sqlite3.Connection) -> None:
            _require_own(connection, partition, lease)
            require_live(connection, lease, self._now())
            run(connection, "drop_manifest", {"partition": partition.name})
            run(connection, "drop_published_segments", {"partition": partition.name})

        await self._store.write_beside(work)

    def _publish(self, connection: sqlite3.Connection, publication: Publication) -> Manifest:
        name = publication.partition.name
        now = self._now()
        _require_own(connection, publication.partition, publication.lease)
        published = _find_manifest(connection, name)
        if published is not None and published.nonce == publication.nonce:
            return published
        require_live(connection, publication.lease, now)
        publication.require_follows(published)
        listed = {entry.segment_id for entry in publication.segments}
        held = _find_segments(connection, name, listed, now)
        for entry in publication.segments:
            if held.get(entry.segment_id) != {"nbytes": entry.nbytes, "checksum": entry.checksum}:
                raise segment_missing(staged=entry.segment_id in publication.staged_ids)
        before = () if published is None else published.segments
        replaced = {entry.segment_id for entry in before} - listed
        run(connection, "publish_segments", {"partition": name, "segment_ids": names(listed)})
        retired = {"partition": name, "segment_ids": names(replaced), "expires_at": now + self._grace_micros}
        run(connection, "retire_segments", retired)
        run(connection, "drop_expired_segments", {"now": now})
        manifest = publication.manifest(INDEX_HISTORY_START if published is None else published.history_digest)
        run(connection, "put_manifest", {"partition": name, **_manifest_columns(manifest)})
        return manifest

    def _now(self) -> int:
        return to_micros(self._clock.now())


def _require_own(connection: sqlite3.Connection, partition: Partition, lease: Lease) -> None:
    if lease.name != partition.name:
        raise lease_fenced(lease.fence, highest_fence(connection, partition.name))


def _find_segments(
    connection: sqlite3.Connection, partition: str, segment_ids: Collection[str], now: int
) -> dict[str, dict[str, Any]]:
    """Length and checksum of those that are there, by id."""
    parameters = {"partition": partition, "segment_ids": names(segment_ids), "now": now}
    return {
        row["segment_id"]: {"nbytes": row["nbytes"], "checksum": row["checksum"]}
        for row in fetch(connection, "find_segments", parameters)
    }


def _find_manifest(connection: sqlite3.Connection, partition: str) -> Manifest | None:
    rows = fetch(connection, "find_manifest", {"partition": partition})
    return _manifest(rows[0]) if rows else None


def _manifest(row: dict[str, Any]) -> Manifest:
    if row["format"] != MANIFEST_FORMAT:
        raise manifest_unreadable()
    return Manifest(
        descriptor=parse_descriptor(row["descriptor"]),
        index_revision=row["index_revision"],
        history_digest=row["history_digest"],
        fence=row["fence"],
        nonce=row["nonce"],
        source_history_id=row["source_history_id"],
        source_revision=row["source_revision"],
        segments=parse_segments(row["segments"]),
        format=row["format"],
    )


def _manifest_columns(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": manifest.format,
        "descriptor": descriptor_text(manifest.descriptor),
        "index_revision": manifest.index_revision,
        "history_digest": manifest.history_digest,
        "fence": manifest.fence,
        "nonce": manifest.nonce,
        "source_history_id": manifest.source_history_id,
        "source_revision": manifest.source_revision,
        "segments": segments_text(manifest.segments),
    }
