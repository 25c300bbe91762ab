"""What the answers of a server say of a lease."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from durable_memory.adapters.redis.leases import RedisLeaseStore
from durable_memory.ports.leases import LeaseState


class _Connection:
    def __init__(self, *answers: Any) -> None:
        self._answers = answers

    async def each(self, commands: Sequence[Sequence[Any]]) -> Sequence[Any]:
        assert len(commands) == len(self._answers)
        return self._answers


@pytest.mark.parametrize(
    ("owner", "left", "fence", "state"),
    [
        (b"owner-1", 1_500, b"7", LeaseState(owner="owner-1", fence=7, remaining_seconds=1.5)),
        # In its last millisecond it lives, and whoever asks for it is refused.
        (b"owner-1", 0, b"7", LeaseState(owner="owner-1", fence=7, remaining_seconds=0.0)),
        # It ran out between the two questions.
        (b"owner-1", -2, b"7", LeaseState(owner=None, fence=7, remaining_seconds=0.0)),
        (None, -2, b"7", LeaseState(owner=None, fence=7, remaining_seconds=0.0)),
        (None, -2, None, LeaseState(owner=None, fence=0, remaining_seconds=0.0)),
    ],
)
async def test_a_lease_is_held_as_long_as_nobody_else_is_granted_it(
    owner: bytes | None, left: int, fence: bytes | None, state: LeaseState
):
    store = RedisLeaseStore(cast(Any, _Connection(owner, left, fence)))
    assert await store.inspect("lease") == state
