"""A lease that is lost while work is done under it is counted, and one that is given back is not."""

import asyncio

import pytest

from durable_memory.app.semantic.lease_holder import LeaseHolder
from durable_memory.domain.errors import DomainError, Reason
from durable_memory.domain.semantic.refusals import lease_fenced
from durable_memory.ports.observing import Unobserved
from tests.unit.app.semantic.semantic_world import Backing


class _Counting(Unobserved):
    lost = 0

    def lease_lost(self) -> None:
        self.lost += 1


@pytest.fixture
def counting():
    return _Counting()


@pytest.fixture
def holder(backing: Backing, semantic, counting):
    """Renews every 20 milliseconds."""
    return LeaseHolder(
        backing.leases, backing.records, backing.clock, semantic.ids, owner="one", ttl_seconds=0.06, observer=counting
    )


async def test_a_lost_lease_is_counted(holder, semantic, backing, counting, monkeypatch):
    async def renew(lease):
        raise lease_fenced(lease.fence, lease.fence + 1)

    monkeypatch.setattr(backing.leases, "renew", renew)
    with pytest.raises(DomainError) as lost:
        async with holder.hold(semantic.partition):
            await asyncio.Event().wait()
    assert lost.value.reason is Reason.LEASE_FENCED
    assert counting.lost == 1


async def test_a_lease_that_is_given_back_is_not_lost(holder, semantic, counting):
    async with holder.hold(semantic.partition):
        pass
    assert counting.lost == 0
