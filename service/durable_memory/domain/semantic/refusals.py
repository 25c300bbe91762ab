"""Why an index or a lease store says no: one form of each refusal for all adapters."""

from __future__ import annotations

import math

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.manifest import Descriptor


def lease_held(remaining_seconds: float) -> DomainError:
    """LEASE_HELD: somebody's grant lives for so long, unless it is renewed."""
    return DomainError(
        Reason.LEASE_HELD,
        "another grant of the lease lives",
        retry_after_ms=max(1, math.ceil(remaining_seconds * 1000)),
    )


def lease_fenced(fence: int, highest_fence: int) -> DomainError:
    """LEASE_FENCED: the grant with `fence` has ended. `highest_fence` is the highest that the store knows."""
    return DomainError(
        Reason.LEASE_FENCED,
        f"the lease with fence {fence} is not the live one",
        fence=fence,
        highest_fence=highest_fence,
    )


def stage_expired() -> DomainError:
    """LEASE_FENCED: what was staged under the lease is gone, so the work took longer than it may."""
    return DomainError(Reason.LEASE_FENCED, "a staged segment expired before it was renewed")


def index_revision_conflict(expected: int, actual: int) -> DomainError:
    return DomainError(
        Reason.INDEX_REVISION_CONFLICT,
        f"the index is at revision {actual}, not {expected}",
        expected=expected,
        actual=actual,
    )


def another_descriptor(expected: Descriptor, actual: Descriptor) -> DomainError:
    """DIMENSION_MISMATCH: `expected` is that of the vectors that are there. `field` says what differs first."""
    field = next(
        (
            name
            for name in ("dimension", "width", "metric", "normalization")
            if _of(expected, name) != _of(actual, name)
        ),
        "dimension",
    )
    return DomainError(
        Reason.DIMENSION_MISMATCH,
        f"the partition holds vectors with another {field}",
        field=field,
        expected=_of(expected, field),
        actual=_of(actual, field),
    )


def segment_missing(*, staged: bool) -> DomainError:
    """DATA_CORRUPTED: a listed segment is not there as it is listed. `staged`: it was new, and may have expired."""
    problem = (
        "a staged segment is gone or is not the one listed" if staged else "a published segment is damaged or gone"
    )
    return DomainError(Reason.DATA_CORRUPTED, problem, what="segment", staged=staged)


def manifest_unreadable() -> DomainError:
    return DomainError(Reason.DATA_CORRUPTED, "the manifest of a partition cannot be read", what="manifest")


def segment_id_reused() -> DomainError:
    """INTERNAL: ids of segments are fresh, so this is a defect."""
    return DomainError(Reason.INTERNAL, "a segment id was used for another segment")


def _of(descriptor: Descriptor, name: str) -> str:
    value = getattr(descriptor, name)
    return value if isinstance(value, str) else str(int(value))
