"""Refusals of a change set that the caller never saw: the RPC made it, so the paths have to be those of the request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from durable_memory.domain.errors import DomainError

_OPERATION: Final = re.compile(r"operations\[[0-9]+\]\.(?:create|activate|corroborate|revise|set_status)\.")


@contextmanager
def paths_of_request() -> Iterator[None]:
    """For RPCs that state one memory: `operations[0].create.memory.occurred_at` is `memory.occurred_at` to them.

    The index of the operation goes too: such a request has no operations.
    """
    try:
        yield
    except DomainError as error:
        raise restated(error) from None


def restated(error: DomainError) -> DomainError:
    metadata = {name: value for name, value in error.metadata.items() if name != "operation_index"}
    field = metadata.get("field")
    if field is None:
        return DomainError(error.reason, error.message, **metadata)
    metadata["field"] = _OPERATION.sub("", field)
    return DomainError(error.reason, error.message.replace(field, metadata["field"]), **metadata)
