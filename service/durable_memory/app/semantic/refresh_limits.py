"""What one partition may take, and in which form it is stored."""

from __future__ import annotations

from dataclasses import dataclass

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.segment import FloatWidth


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshLimits:
    """Bounds of one partition, and the width of the floats in which a new one, or one written anew, is stored."""

    max_records: int = 100_000
    max_bytes: int = 512 * 1024 * 1024
    width: FloatWidth = FloatWidth.FLOAT32

    def require(self, *, records: int, nbytes: int) -> None:
        """Raises: QUOTA_EXCEEDED (quota, limit, actual) for more than the bounds allow."""
        for quota, actual, limit in (
            ("index_records", records, self.max_records),
            ("index_bytes", nbytes, self.max_bytes),
        ):
            if actual > limit:
                raise DomainError(
                    Reason.QUOTA_EXCEEDED,
                    f"the index would have {actual} {quota}; the limit is {limit}",
                    quota=quota,
                    limit=limit,
                    actual=actual,
                )
