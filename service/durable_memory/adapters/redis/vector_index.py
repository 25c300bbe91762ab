"""The vector index on a Redis server: immutable segments, and a manifest that one script replaces.

A publication reads the manifest that it is to replace, because the script has to be told every key that it may touch;
the script then makes sure that it is still that manifest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, cast

from durable_memory.adapters.manifest_codec import descriptor_text, parse_descriptor
from durable_memory.adapters.redis import scripts
from durable_memory.adapters.redis.connection import Argument, RedisConnection
from durable_memory.adapters.redis.errors import index_unavailable, outcome_unknown
from durable_memory.adapters.redis.keys import lease_key, manifest_key, segment_key, segment_pattern
from durable_memory.adapters.redis.leases import milliseconds
from durable_memory.adapters.redis.manifest_fields import Fields, manifest_fields, parse_manifest
from durable_memory.adapters.redis.scripts import Answer
from durable_memory.adapters.redis.server import Client
from durable_memory.domain.errors import DomainError
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import INDEX_HISTORY_START, Manifest
from durable_memory.domain.semantic.refusals import (
    another_descriptor,
    index_revision_conflict,
    lease_fenced,
    manifest_unreadable,
    segment_id_reused,
    segment_missing,
    stage_expired,
)
from durable_memory.ports.leases import Lease
from durable_memory.ports.vector_index import Consistency, Publication

CHECKSUM_BYTES: Final = 32

_SEGMENTS_PER_ROUND_TRIP: Final = 16
_MOST_READS_AGAIN: Final = 3
_SCAN_COUNT: Final = 1000

_MANIFESTS_REMEMBERED: Final = 1_000
"""Partitions whose last manifest is kept as it was decoded."""


class RedisVectorIndex:
    """`VectorIndex` on a connection that opens and closes with it.

    Publishes under leases of a `RedisLeaseStore` on the same server.
    """

    consistency: Final = Consistency.INDEX_REVISION_CAS

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection
        self._grace = milliseconds(connection.settings.replaced_grace_seconds)
        self._transfer_timeout = connection.settings.transfer_timeout_seconds
        self._decoded: OrderedDict[str, tuple[Fields, Manifest | None]] = OrderedDict()

    @property
    def connections(self) -> int:
        return self._connection.connections

    async def open(self) -> None:
        await self._connection.open()

    async def close(self) -> None:
        await self._connection.close()

    async def check(self) -> None:
        await self._connection.check()

    # Reading

    async def manifest(self, partition: Partition) -> Manifest | None:
        """Read anew each time, and decoded where it is not byte for byte what was read the last time."""
        fields = await self._fields(partition)
        known = self._decoded.get(partition.name)
        if known is not None and known[0] == fields:
            self._decoded.move_to_end(partition.name)
            return known[1]
        manifest = parse_manifest(fields)
        self._decoded[partition.name] = (fields, manifest)
        self._decoded.move_to_end(partition.name)
        if len(self._decoded) > _MANIFESTS_REMEMBERED:
            self._decoded.popitem(last=False)
        return manifest

    async def segments(self, partition: Partition, segment_ids: Collection[str]) -> Mapping[str, bytes]:
        wanted = list(segment_ids)
        found: dict[str, bytes] = {}
        for start in range(0, len(wanted), _SEGMENTS_PER_ROUND_TRIP):
            ids = wanted[start : start + _SEGMENTS_PER_ROUND_TRIP]

            # Not MGET: its answer would have to be held by the server as a whole.
            values = await self._connection.each(
                [("GET", segment_key(partition.name, segment_id)) for segment_id in ids],
                timeout_seconds=self._transfer_timeout,
            )
            found |= {id_: value for id_, value in zip(ids, values, strict=True) if value is not None}
        return found

    # Staging

    async def stage(self, partition: Partition, segment_id: str, encoded: bytes, *, ttl_seconds: float) -> None:
        key = segment_key(partition.name, segment_id)

        async def put(client: Client) -> bool:
            # NX: a repeat that arrives late must not put a TTL on what is published.
            while not await client.set(key, encoded, px=milliseconds(ttl_seconds), nx=True):
                length = await client.strlen(key)
                tail = await client.getrange(key, -CHECKSUM_BYTES, -1)
                if length and tail:  # else it has expired since
                    return bool(length == len(encoded) and tail == encoded[-CHECKSUM_BYTES:])
            return True

        if not await self._connection.call(key, put, timeout_seconds=self._transfer_timeout):
            raise segment_id_reused()

    async def keep_staged(self, partition: Partition, segment_ids: Collection[str], *, ttl_seconds: float) -> None:
        keys = [segment_key(partition.name, segment_id) for segment_id in segment_ids]
        if not keys:
            return
        answer, *_ = await self._connection.run(scripts.KEEP_STAGED, keys, [milliseconds(ttl_seconds)])
        if answer == Answer.FENCED:
            raise stage_expired()

    # Publishing

    async def publish(self, publication: Publication) -> Manifest:
        await self._require_own(publication.partition, publication.lease)
        for _ in range(_MOST_READS_AGAIN):
            previous = await self.manifest(publication.partition)
            history = INDEX_HISTORY_START if previous is None else previous.history_digest
            manifest = publication.manifest(history)
            answer, *details = await self._run_publish(publication, manifest, previous, history)
            match answer:
                case Answer.DONE:
                    return manifest
                case Answer.REPEATED:
                    return _repeated(details)
                case Answer.OTHER_HISTORY:
                    continue
            raise _refusal(publication, answer, details)
        raise index_unavailable("the index kept changing while it was read")

    async def clear(self, partition: Partition, lease: Lease) -> None:
        await self._require_own(partition, lease)
        for attempt in range(_MOST_READS_AGAIN):
            try:
                if await self._is_cleared(partition, lease):
                    return
            except DomainError as error:
                if attempt:  # what was there before may have been taken away by an attempt that had no answer
                    raise outcome_unknown() from error
                raise
        raise outcome_unknown()

    async def _is_cleared(self, partition: Partition, lease: Lease) -> bool:
        """False if another state is there than the one that was read."""
        fields = await self._fields(partition)
        keys = [lease_key(partition.name), manifest_key(partition.name)]
        answer, *highest = await self._connection.run(
            scripts.CLEAR,
            [*keys, *await self._segment_keys(partition, fields)],
            [lease.owner, lease.fence, fields.get(b"history_digest", b"")],
            changes_state=True,
        )
        if answer == Answer.FENCED:
            raise lease_fenced(lease.fence, *highest)
        return bool(answer == Answer.DONE)

    async def _run_publish(
        self, publication: Publication, manifest: Manifest, previous: Manifest | None, history: str
    ) -> list[Any]:
        name = publication.partition.name
        listed = [entry.segment_id for entry in publication.segments]
        before = () if previous is None else previous.segments
        replaced = [entry.segment_id for entry in before if entry.segment_id not in set(listed)]
        arguments: list[Argument] = [
            publication.lease.owner,
            publication.lease.fence,
            publication.nonce,
            publication.expected_index_revision,
            history,
            descriptor_text(publication.descriptor),
            self._grace,
            len(listed),
        ]
        for entry in publication.segments:
            arguments += [entry.nbytes, bytes.fromhex(entry.checksum)]
        for field, value in manifest_fields(manifest).items():
            arguments += [field, value]
        keys = [lease_key(name), manifest_key(name)]
        keys += [segment_key(name, segment_id) for segment_id in (*listed, *replaced)]
        return await self._connection.run(scripts.PUBLISH, keys, arguments, changes_state=True)

    async def _require_own(self, partition: Partition, lease: Lease) -> None:
        """The script cannot be asked about a lease on another partition, because its key may live elsewhere."""
        if lease.name != partition.name:
            fields = await self._fields(partition)
            raise lease_fenced(lease.fence, int(fields.get(b"highest_fence", 0)))

    async def _fields(self, partition: Partition) -> Fields:
        key = manifest_key(partition.name)

        async def ask(client: Client) -> Fields:
            return cast("Fields", await client.hgetall(key))  # bytes, because the driver decodes nothing

        return await self._connection.call(key, ask)

    async def _segment_keys(self, partition: Partition, fields: Fields) -> list[str]:
        """Of all that the manifest lists; where it cannot be read, of all that are there, which takes longer."""
        try:
            manifest = parse_manifest(fields)
        except DomainError:
            return await self._found_segment_keys(partition)
        entries = () if manifest is None else manifest.segments
        return [segment_key(partition.name, entry.segment_id) for entry in entries]

    async def _found_segment_keys(self, partition: Partition) -> list[str]:
        """Page by page, each with a deadline of its own, for they are of all that the server has."""
        pattern, cursor = segment_pattern(partition.name), 0

        async def page(client: Client) -> tuple[int, list[bytes]]:
            return cast("tuple[int, list[bytes]]", await client.scan(cursor, match=pattern, count=_SCAN_COUNT))

        for _ in range(_MOST_READS_AGAIN):
            connections, found, is_last = self.connections, set[str](), False
            while not is_last:
                cursor, keys = await self._connection.call(pattern, page)
                found.update(key.decode() for key in keys)
                is_last = cursor == 0
            if connections == self.connections:  # else some pages may be of another server, which orders them anew
                return sorted(found)
        raise index_unavailable("the index kept changing while it was read")


def _repeated(details: Sequence[bytes]) -> Manifest:
    manifest = parse_manifest(dict(zip(details[::2], details[1::2], strict=True)))
    if manifest is None:
        raise manifest_unreadable()
    return manifest


def _refusal(publication: Publication, answer: int, details: Sequence[Any]) -> DomainError:
    match answer:
        case Answer.FENCED:
            return lease_fenced(publication.lease.fence, details[0])
        case Answer.OTHER_REVISION:
            return index_revision_conflict(publication.expected_index_revision, details[0])
        case Answer.OTHER_DESCRIPTOR:
            return another_descriptor(parse_descriptor(details[0]), publication.descriptor)
        case Answer.SEGMENT_MISSING:
            entry = publication.segments[details[0] - 1]
            return segment_missing(staged=entry.segment_id in publication.staged_ids)
    raise AssertionError(f"the script has no answer {answer}")
