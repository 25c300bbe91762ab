"""Grants, fences and their ends."""

import asyncio

import pytest

from durable_memory.domain.errors import DomainError, Reason
from durable_memory.ports.leases import Lease, LeaseStore
from tests.conformance.index_samples import GROWING_SECONDS, LONG_SECONDS, SHORT_SECONDS, fresh
from tests.processes.polling import wait_until_async


async def acquire(
    leases: LeaseStore,
    name: str,
    owner: str = "owner-1",
    *,
    ttl: float = LONG_SECONDS,
    floor: int = 0,
    nonce: str | None = None,
) -> Lease:
    return await leases.acquire(name, owner, ttl_seconds=ttl, floor=floor, nonce=nonce or fresh("nonce"))


async def refusal(call) -> DomainError:
    with pytest.raises(DomainError) as refused:
        await call
    return refused.value


async def free(leases: LeaseStore, name: str) -> None:
    """Wait until nobody holds the lease."""

    async def is_free() -> bool:
        return (await leases.inspect(name)).owner is None

    await wait_until_async(is_free, what="the lease ran out")


async def test_a_lease_that_lives_is_refused_to_everybody_else_with_the_time_to_wait(leases, unique):
    await acquire(leases, unique, ttl=30)
    for owner in ("owner-1", "owner-2"):  # the same owner with another nonce is somebody else
        error = await refusal(acquire(leases, unique, owner))
        assert error.reason is Reason.LEASE_HELD
        assert 0 < int(error.metadata["retry_after_ms"]) <= 30_000
    assert (await leases.inspect(unique)).fence == 1


async def test_of_many_who_ask_at_once_one_is_granted_the_lease(leases, unique):
    async def ask(number: int) -> Lease | Reason:
        try:
            return await acquire(leases, unique, f"owner-{number}")
        except DomainError as error:
            return error.reason

    answers = await asyncio.gather(*(ask(number) for number in range(32)))
    granted = [answer for answer in answers if isinstance(answer, Lease)]
    assert len(granted) == 1
    assert answers.count(Reason.LEASE_HELD) == 31
    state = await leases.inspect(unique)
    assert (state.owner, state.fence) == (granted[0].owner, granted[0].fence) == (granted[0].owner, 1)


async def test_a_lease_that_ran_out_is_granted_to_the_next(leases, unique):
    longer = await acquire(leases, f"longer {unique}", "owner-1")
    first = await acquire(leases, unique, "owner-1", ttl=SHORT_SECONDS)

    async def next_one() -> Lease | None:
        try:
            return await acquire(leases, unique, "owner-2")
        except DomainError as error:
            if error.reason is Reason.LEASE_HELD:
                return None
            raise

    lease = await wait_until_async(next_one, what="the lease is granted to the next")
    assert lease is not None
    assert (lease.owner, lease.fence) == ("owner-2", 2)
    assert (await refusal(leases.renew(first))).reason is Reason.LEASE_FENCED
    await leases.renew(longer)  # which was granted before, and for longer


async def test_leases_with_other_names_never_meet(leases, unique):
    granted = await asyncio.gather(*(acquire(leases, f"{unique} {number}") for number in range(200)))
    assert {lease.fence for lease in granted} == {1}


@pytest.mark.parametrize(
    "suffix", ["}", "{", "}:lease", "}:manifest", ":lease", "{}", "\n", " ", "*", "\u00e9", "e\u0301"]
)
async def test_names_that_look_alike_are_leases_of_their_own(leases, unique, suffix):
    plain = await acquire(leases, unique)
    alike = await acquire(leases, unique + suffix, "owner-2", floor=7)
    assert (plain.fence, alike.fence) == (1, 8)
    await leases.release(alike)
    await leases.renew(plain)
    assert (await leases.inspect(unique + suffix)).owner is None


async def test_the_fence_rises_with_every_grant(leases, unique):
    fences = []
    for number in range(5):
        lease = await acquire(leases, unique, f"owner-{number}")
        await leases.release(lease)
        fences.append(lease.fence)
    assert fences == [1, 2, 3, 4, 5]


async def test_a_renewal_keeps_the_fence(leases, unique):
    lease = await acquire(leases, unique)
    for _ in range(3):
        await leases.renew(lease)
    state = await leases.inspect(unique)
    assert (state.owner, state.fence) == (lease.owner, lease.fence)


async def test_the_fence_is_above_the_floor(leases, unique):
    fences = []
    for floor in (41, 7, 1_000_000_000_000_000, 0):
        lease = await acquire(leases, unique, floor=floor)
        await leases.release(lease)
        fences.append(lease.fence)
    assert fences == [42, 43, 1_000_000_000_000_001, 1_000_000_000_000_002]


async def test_the_fence_goes_on_after_the_lease_ran_out(leases, unique):
    await acquire(leases, unique, ttl=SHORT_SECONDS, floor=4)
    await free(leases, unique)
    assert (await leases.inspect(unique)).fence == 5
    assert (await acquire(leases, unique, "owner-2")).fence == 6


async def test_a_store_that_lost_everything_grants_above_the_floor(index_backend, unique):
    async with index_backend.opened() as opened:
        for _ in range(3):
            lease = await acquire(opened.leases, unique)
            await opened.leases.release(lease)
        held = await acquire(opened.leases, unique)
    await index_backend.lose_everything()
    async with index_backend.opened() as opened:
        assert (await opened.leases.inspect(unique)).fence == 0
        assert (await acquire(opened.leases, unique, "owner-2", floor=held.fence)).fence == held.fence + 1
        assert (await refusal(opened.leases.renew(held))).reason is Reason.LEASE_FENCED


async def test_a_repeat_with_the_same_nonce_gets_the_same_fence(leases, unique):
    lease = await acquire(leases, unique, nonce="nonce")
    assert await acquire(leases, unique, nonce="nonce") == lease
    assert await acquire(leases, unique, nonce="nonce") == lease
    assert (await refusal(acquire(leases, unique, "owner-2", nonce="nonce"))).reason is Reason.LEASE_HELD


async def test_a_repeat_after_the_end_of_the_grant_is_a_new_one(leases, unique):
    lease = await acquire(leases, unique, nonce="nonce")
    await leases.release(lease)
    assert (await acquire(leases, unique, nonce="nonce")).fence == lease.fence + 1


async def test_a_repeat_that_knows_of_a_higher_fence_is_refused(leases, unique):
    lease = await acquire(leases, unique, nonce="nonce")
    assert (await refusal(acquire(leases, unique, nonce="nonce", floor=lease.fence))).reason is Reason.LEASE_HELD


async def test_a_renewed_lease_outlives_its_first_ttl(leases, unique):
    for ttl in GROWING_SECONDS:
        name = f"{unique} {ttl}"
        lease = await acquire(leases, name, ttl=ttl)
        other = await acquire(leases, f"other {name}", ttl=ttl)  # and nobody renews that one

        async def first_ttl_is_over(lease: Lease = lease, other: Lease = other) -> bool:
            await leases.renew(lease)
            return (await leases.inspect(other.name)).owner is None

        try:
            await wait_until_async(first_ttl_is_over, what="the first TTL is over")
        except DomainError as error:
            if error.reason is Reason.LEASE_FENCED and ttl != GROWING_SECONDS[-1]:
                continue  # no renewal came in time
            raise
        await leases.renew(lease)
        state = await leases.inspect(name)
        assert state.owner == lease.owner
        assert 0 < state.remaining_seconds <= ttl
        return


async def test_a_lease_that_ran_out_cannot_be_renewed(leases, unique):
    lease = await acquire(leases, unique, ttl=SHORT_SECONDS)
    await free(leases, unique)
    error = await refusal(leases.renew(lease))
    assert error.reason is Reason.LEASE_FENCED
    assert error.metadata == {"fence": "1", "highest_fence": "1"}
    successor = await acquire(leases, unique, "owner-2")
    error = await refusal(leases.renew(lease))
    assert error.metadata == {"fence": "1", "highest_fence": "2"}
    assert (await leases.inspect(unique)).owner == successor.owner


async def test_nobody_else_renews_or_releases(leases, unique):
    lease = await acquire(leases, unique, ttl=30)
    others = [
        Lease(name=unique, owner="owner-2", fence=lease.fence, ttl_seconds=LONG_SECONDS),
        Lease(name=unique, owner=lease.owner, fence=lease.fence - 1, ttl_seconds=LONG_SECONDS),
        Lease(name=unique, owner=lease.owner, fence=lease.fence + 1, ttl_seconds=LONG_SECONDS),
    ]
    for other in others:
        assert (await refusal(leases.renew(other))).reason is Reason.LEASE_FENCED
        await leases.release(other)
    state = await leases.inspect(unique)
    assert (state.owner, state.fence) == (lease.owner, lease.fence)
    assert state.remaining_seconds <= 30


async def test_a_released_lease_is_free_at_once(leases, unique):
    lease = await acquire(leases, unique)
    await leases.release(lease)
    assert (await refusal(leases.renew(lease))).reason is Reason.LEASE_FENCED
    assert (await acquire(leases, unique, "owner-2")).fence == lease.fence + 1


async def test_releasing_again_changes_nothing(leases, unique):
    first = await acquire(leases, unique)
    await leases.release(first)
    await leases.release(first)
    second = await acquire(leases, unique, first.owner)
    await leases.release(first)
    await leases.renew(second)


async def test_a_lease_can_be_looked_at_without_changing_it(leases, unique):
    state = await leases.inspect(unique)
    assert (state.owner, state.fence, state.remaining_seconds) == (None, 0, 0.0)
    lease = await acquire(leases, unique, ttl=30)
    for _ in range(2):
        state = await leases.inspect(unique)
        assert (state.owner, state.fence) == (lease.owner, lease.fence)
        assert 0 < state.remaining_seconds <= 30
    await leases.release(lease)
    state = await leases.inspect(unique)
    assert (state.owner, state.fence, state.remaining_seconds) == (None, lease.fence, 0.0)
