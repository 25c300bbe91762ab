"""What has been done to an index is on record when its caller hears of it, or its caller hears that nobody can tell.

An error that says "it did not happen" is a promise. Once a publication may have happened, none of the errors that come
after it can keep that promise any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.generation import Partition
from durable_memory.domain.semantic.manifest import Manifest
from durable_memory.ports.semantic_records import Receipt, SemanticRecords
from durable_memory.ports.vector_index import Publication, VectorIndex
from durable_memory.tasks import completed

_ATTEMPTS: Final = 3
_UNANSWERED: Final = frozenset({Reason.DEPENDENCY_UNAVAILABLE, Reason.OUTCOME_UNKNOWN})

_T = TypeVar("_T")


class CancelledTooLateError(asyncio.CancelledError):
    """A cancellation that came while something was done that cannot be taken back; it has ended since."""


async def published(index: VectorIndex, publication: Publication) -> Manifest:
    """Publish; a lost answer is asked for again with the same nonce, which gives the first result.

    Raises: as `VectorIndex.publish`; after an attempt without an answer OUTCOME_UNKNOWN, unless what is listed is gone,
    which says that it did not happen.
    """
    unknown = False
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return await index.publish(publication)
        except DomainError as error:
            unknown = unknown or error.reason is Reason.OUTCOME_UNKNOWN
            if error.reason in _UNANSWERED and attempt < _ATTEMPTS:
                continue
            if unknown and error.reason is not Reason.DATA_CORRUPTED:
                raise not_known("whether the index was changed is not known") from error
            raise
    raise AssertionError("every attempt returns or raises")


async def put_on_record(records: SemanticRecords, partition: Partition, receipt: Receipt) -> Receipt:
    """The receipt of what was done to the index. Raises: OUTCOME_UNKNOWN, for that cannot be taken back."""
    try:
        await records.write_receipt(partition, receipt)
    except DomainError as error:
        raise not_known("the index was changed, and its receipt is not on record yet") from error
    return receipt


async def to_its_end(work: Coroutine[Any, Any, _T]) -> _T:
    """What `work` returns. A cancellation is obeyed when it has ended: what it does cannot be taken back, and what has
    happened has to be on record.

    Raises: CancelledTooLateError in place of a cancellation.
    """
    try:
        return await completed(work)
    except asyncio.CancelledError:
        raise CancelledTooLateError from None


def not_known(problem: str) -> DomainError:
    """OUTCOME_UNKNOWN."""
    return DomainError(Reason.OUTCOME_UNKNOWN, problem)
