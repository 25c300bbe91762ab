"""The parts of a manifest that index adapters keep as text, in one form."""

from __future__ import annotations

import json
from collections.abc import Iterable

from durable_memory.domain.canonical import canonical_json
from durable_memory.domain.semantic.manifest import Descriptor, SegmentEntry
from durable_memory.domain.semantic.refusals import manifest_unreadable
from durable_memory.domain.semantic.segment import FloatWidth


def descriptor_text(descriptor: Descriptor) -> str:
    """Canonical JSON: equal descriptors have equal texts, which is how stores compare them."""
    return canonical_json(
        {
            "dimension": descriptor.dimension,
            "metric": descriptor.metric,
            "normalization": descriptor.normalization,
            "width": int(descriptor.width),
        }
    ).decode()


def parse_descriptor(text: str | bytes) -> Descriptor:
    """Raises: DATA_CORRUPTED."""
    try:
        fields = json.loads(text)
        return Descriptor(
            dimension=int(fields["dimension"]),
            metric=str(fields["metric"]),
            normalization=str(fields["normalization"]),
            width=FloatWidth(fields["width"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise manifest_unreadable() from error


def segments_text(segments: Iterable[SegmentEntry]) -> str:
    """JSON: of each segment, in order, its id, checksum, bytes, record count, and removed records in hexadecimal."""
    rows = [[item.segment_id, item.checksum, item.nbytes, item.record_count, item.removed.hex()] for item in segments]
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def parse_segments(text: str | bytes) -> tuple[SegmentEntry, ...]:
    """Raises: DATA_CORRUPTED."""
    try:
        return tuple(
            SegmentEntry(
                segment_id=segment_id,
                checksum=checksum,
                nbytes=nbytes,
                record_count=record_count,
                removed=bytes.fromhex(removed),
            )
            for segment_id, checksum, nbytes, record_count, removed in json.loads(text)
        )
    except (ValueError, TypeError) as error:
        raise manifest_unreadable() from error
