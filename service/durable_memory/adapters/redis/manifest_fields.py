"""A manifest as the fields of its hash. `highest_fence` stands beside them, and belongs to the leases."""

from __future__ import annotations

from collections.abc import Mapping

from durable_memory.adapters.manifest_codec import descriptor_text, parse_descriptor, parse_segments, segments_text
from durable_memory.domain.semantic.manifest import MANIFEST_FORMAT, Manifest
from durable_memory.domain.semantic.refusals import manifest_unreadable

Fields = Mapping[bytes, bytes]


def manifest_fields(manifest: Manifest) -> dict[str, str | int]:
    """What the hash is given. The counts are for people who look."""
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
        "live_count": manifest.live_count,
        "dead_count": manifest.dead_count,
        "bytes": manifest.nbytes,
    }


def parse_manifest(fields: Fields) -> Manifest | None:
    """`None` where nothing is published. Raises: DATA_CORRUPTED."""
    if b"index_revision" not in fields:
        return None
    try:
        if int(fields[b"format"]) != MANIFEST_FORMAT:
            raise manifest_unreadable()
        return Manifest(
            descriptor=parse_descriptor(fields[b"descriptor"]),
            index_revision=int(fields[b"index_revision"]),
            history_digest=fields[b"history_digest"].decode(),
            fence=int(fields[b"fence"]),
            nonce=fields[b"nonce"].decode(),
            source_history_id=fields[b"source_history_id"].decode(),
            source_revision=int(fields[b"source_revision"]),
            segments=parse_segments(fields[b"segments"]),
        )
    except (KeyError, ValueError) as error:
        raise manifest_unreadable() from error
