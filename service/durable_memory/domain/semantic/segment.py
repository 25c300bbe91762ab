"""Segments: immutable blocks of vectors, in a form that tells when it is damaged.

Layout, little-endian: magic `DMS1` (4), float width in bits (u16), dimension (u16), record count (u32), length of the
record table (u32), the record table (UTF-8 JSON lines: [node id, node revision, text digest]), padding to 8 bytes, the
vectors row by row, SHA-256 of all of it (32).
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from durable_memory.domain.errors import DomainError, Reason

_HEAD: Final = struct.Struct("<4sHHII")
_MAGIC: Final = b"DMS1"
_CHECKSUM_BYTES: Final = 32


class FloatWidth(IntEnum):
    """Bits of a stored float. 16 halves memory and bytes for about three digits of a cosine."""

    FLOAT16 = 16
    FLOAT32 = 32

    @property
    def nbytes(self) -> int:
        return self.value // 8


@dataclass(frozen=True, slots=True)
class VectorRecord:
    """Which text a vector is of. The node's id and revision say where it was found; the digest decides."""

    node_id: str
    revision: int
    text_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Records and their vectors: `vectors` has `len(records)` rows of `dimension` little-endian floats."""

    dimension: int
    width: FloatWidth
    records: tuple[VectorRecord, ...]
    vectors: bytes

    def encode(self) -> bytes:
        """The stored form."""
        table = b"\n".join(
            json.dumps([item.node_id, item.revision, item.text_digest], ensure_ascii=False).encode()
            for item in self.records
        )
        head = _HEAD.pack(_MAGIC, self.width, self.dimension, len(self.records), len(table))
        body = b"".join((head, table, b"\0" * _padding(len(head) + len(table)), self.vectors))
        return body + hashlib.sha256(body).digest()


def checksum(encoded: bytes) -> str:
    """The checksum that a stored segment ends with, as 64 hexadecimal digits."""
    return encoded[-_CHECKSUM_BYTES:].hex()


def decode_segment(encoded: bytes) -> Segment:
    """The inverse of `Segment.encode`.

    Raises: DATA_CORRUPTED if a single bit differs from what was encoded.
    """
    body, stored = encoded[:-_CHECKSUM_BYTES], encoded[-_CHECKSUM_BYTES:]
    if len(body) < _HEAD.size or hashlib.sha256(body).digest() != stored:
        raise _corrupted()
    magic, width, dimension, count, table_size = _HEAD.unpack_from(body)
    start = _HEAD.size + table_size
    start += _padding(start)
    vectors = body[start:]
    try:
        lines = body[_HEAD.size : _HEAD.size + table_size].split(b"\n") if count else []
        records = tuple(VectorRecord(*json.loads(line)) for line in lines)
        floats = FloatWidth(width)
    except (ValueError, TypeError) as error:
        raise _corrupted() from error
    if magic != _MAGIC or len(records) != count or len(vectors) != count * dimension * floats.nbytes:
        raise _corrupted()
    return Segment(dimension=dimension, width=floats, records=records, vectors=vectors)


def _padding(size: int) -> int:
    return -size % 8


def _corrupted() -> DomainError:
    return DomainError(Reason.DATA_CORRUPTED, "a vector segment does not match its checksum", what="segment")
