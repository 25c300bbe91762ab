"""Every record of the index lies in its own namespace's partition, and nothing lies there unaccounted for."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.qualification.observers.receipts import partition_name
from tests.qualification.observers.stored_keys import StoredKey

_KEY: Final = re.compile(r"dm:\{([0-9a-f]{64})\}:(manifest|lease|seg:(.+))")
_HEAD: Final = struct.Struct("<4sHHII")
_CHECKSUM_BYTES: Final = 32
_FOR_EVER: Final = -1


@dataclass(frozen=True, slots=True)
class Belongings:
    """What the repository knows of one namespace: the ids of its nodes, and its cached vectors by text digest."""

    namespace_key: bytes
    node_ids: frozenset[str]
    vectors: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    node_id: str
    text_digest: str
    vector: bytes


class UnreadableError(Exception):
    """Bytes that are no segment."""


def problems(
    keys: Sequence[StoredKey], namespaces: Iterable[Belongings], authorities: Mapping[bytes, Iterable[str]]
) -> list[str]:
    """Everything that is wrong. `authorities`: by namespace key, the generations that it has been indexed in."""
    by_name = {
        partition_name(owner.namespace_key, authority): owner
        for owner in namespaces
        for authority in authorities.get(owner.namespace_key, ())
    }
    return [*strangers(keys, by_name), *foreign_records(keys, by_name), *unaccounted(keys)]


def strangers(keys: Iterable[StoredKey], owners: Mapping[str, Belongings]) -> list[str]:
    """Every key is of a known form, and of a partition whose name is the digest of some namespace and generation."""
    found = []
    for key in keys:
        parts = _KEY.fullmatch(key.name)
        if parts is None:
            found.append(f"{key.name}: no key of an index has such a name")
        elif parts.group(1) not in owners:
            found.append(f"{key.name}: no namespace has this partition")
    return found


def foreign_records(keys: Iterable[StoredKey], owners: Mapping[str, Belongings]) -> list[str]:
    """Each record's node is its namespace's, and its vector is the one that the namespace has of that text."""
    found = []
    for key in keys:
        parts = _KEY.fullmatch(key.name)
        if parts is None or parts.group(3) is None or parts.group(1) not in owners:
            continue
        owner, place = owners[parts.group(1)], f"{parts.group(1)[:8]} segment {parts.group(3)}"
        try:
            records = decode(key.data)
        except UnreadableError as error:
            found.append(f"{place}: {error}")
            continue
        for record in records:
            if record.node_id not in owner.node_ids:
                found.append(f"{place}: node {record.node_id} is of another namespace")
            elif record.text_digest not in owner.vectors:
                found.append(f"{place}: node {record.node_id} has a text that its namespace never had")
            elif not _same(owner.vectors[record.text_digest], record.vector):
                found.append(f"{place}: node {record.node_id} has another vector than its text")
    return found


def unaccounted(keys: Iterable[StoredKey]) -> list[str]:
    """A segment that is listed has no end; one that is not has an end; none that is listed is missing."""
    segments: dict[str, dict[str, StoredKey]] = {}
    listed: dict[str, dict[str, str]] = {}
    for key in keys:
        parts = _KEY.fullmatch(key.name)
        if parts is None:
            continue
        if parts.group(3) is not None:
            segments.setdefault(parts.group(1), {})[parts.group(3)] = key
        elif parts.group(2) == "manifest" and key.data:
            listed[parts.group(1)] = {row[0]: row[1] for row in json.loads(key.data)}
    found = []
    for partition in sorted({*segments, *listed}):
        there, wanted = segments.get(partition, {}), listed.get(partition, {})
        for name, key in there.items():
            if name not in wanted and key.ttl_ms == _FOR_EVER:
                found.append(f"{partition[:8]}: segment {name} is listed nowhere, and stays for ever")
            if name in wanted and key.ttl_ms != _FOR_EVER:
                found.append(f"{partition[:8]}: segment {name} is listed, and goes away in {key.ttl_ms} ms")
            if name in wanted and key.data[-_CHECKSUM_BYTES:].hex() != wanted[name]:
                found.append(f"{partition[:8]}: segment {name} is not the one that is listed")
        found += [f"{partition[:8]}: segment {name} is listed, and gone" for name in wanted if name not in there]
    return found


def decode(encoded: bytes) -> list[SegmentRecord]:
    """A segment's records by the layout in its definition, written a second time. Raises: UnreadableError."""
    body, checksum = encoded[:-_CHECKSUM_BYTES], encoded[-_CHECKSUM_BYTES:]
    if len(body) < _HEAD.size or hashlib.sha256(body).digest() != checksum:
        raise UnreadableError("it is not what its checksum says")
    magic, width, dimension, count, table_bytes = _HEAD.unpack_from(body)
    table = body[_HEAD.size : _HEAD.size + table_bytes]
    start = (_HEAD.size + table_bytes + 7) // 8 * 8
    size = dimension * width // 8
    if magic != b"DMS1" or len(body) != start + count * size:
        raise UnreadableError("its vectors are not as many as its head says")
    lines = table.split(b"\n") if count else []
    if len(lines) != count:
        raise UnreadableError("its records are not as many as its head says")
    return [
        SegmentRecord(node_id, text_digest, body[start + row * size : start + (row + 1) * size])
        for row, (node_id, _, text_digest) in enumerate(map(json.loads, lines))
    ]


def vectors_of(keys: Iterable[StoredKey]) -> dict[str, dict[str, bytes]]:
    """By partition and text digest, the vectors that count. Raises: UnreadableError."""
    return {
        partition: {record.text_digest: record.vector for record in records}
        for partition, records in records_of(keys).items()
    }


def records_of(keys: Iterable[StoredKey]) -> dict[str, list[SegmentRecord]]:
    """By partition, the records that count: of listed segments, without removed ones. Raises: UnreadableError."""
    held = {key.name: key for key in keys}
    found: dict[str, list[SegmentRecord]] = {}
    for key in held.values():
        parts = _KEY.fullmatch(key.name)
        if parts is None or parts.group(2) != "manifest" or not key.data:
            continue
        records = found.setdefault(parts.group(1), [])
        for segment_id, _, _, _, removed in json.loads(key.data):
            segment = held.get(f"dm:{{{parts.group(1)}}}:seg:{segment_id}")
            if segment is None:
                raise UnreadableError(f"segment {segment_id} is listed, and gone")
            bits = int.from_bytes(bytes.fromhex(removed), "little")
            records += [record for row, record in enumerate(decode(segment.data)) if not bits >> row & 1]
    return found


def _same(cached: bytes, stored: bytes) -> bool:
    """A partition may store half the bits of what is cached; then it is rounded, and not compared here."""
    return cached == stored or len(cached) != len(stored)
