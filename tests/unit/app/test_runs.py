"""Runs: two real invocations never collapse into one, and a crashed host is never locked out."""

from __future__ import annotations

from datetime import timedelta

from durable_memory.app.sessions import BeginOutcome
from durable_memory.domain.errors import Reason
from durable_memory.domain.limits import RUN_IDLE_MAX
from durable_memory.domain.session import RunState
from tests.unit.app.world import World, items, refused

INSTANT = timedelta(microseconds=1)


async def test_a_run_begins_with_its_first_context(world: World) -> None:
    await world.open()
    begun = await world.begin()
    assert begun.outcome is BeginOutcome.BEGUN
    assert (begun.run.state, begun.run.sequence, begun.run.begun_by) == (RunState.OPEN, 0, "owner")
    assert len(begun.run.context_id) == 64


async def test_the_same_host_cannot_begin_an_open_run_again(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    with refused(
        Reason.RUN_IDENTITY_CONFLICT,
        run_id="turn-1",
        incarnation=run.incarnation,
        opened_at=run.opened_at.isoformat(),
    ):
        await world.begin()
    assert (await world.begin(run_id="turn-2")).outcome is BeginOutcome.BEGUN


async def test_another_host_takes_over_and_the_old_incarnation_has_ended(world: World, replica: World) -> None:
    await world.open()
    old = (await world.begin()).run
    taken = await replica.begin(host="host-2")
    assert taken.outcome is BeginOutcome.TAKEN_OVER
    assert taken.run.incarnation != old.incarnation
    assert taken.run.context_id != old.context_id
    with refused(Reason.RUN_ENDED, run_id="turn-1", incarnation=old.incarnation):
        await world.app.access.admit(world.request("AdmitMemories"), "assistant", old.context_id, items())
    await world.app.access.admit(world.request("AdmitMemories"), "assistant", taken.run.context_id, items())


async def test_the_newest_incarnation_is_the_last_one_that_was_begun_whatever_the_clocks_say(world: World) -> None:
    await world.open()
    first = (await world.begin()).run
    world.clock.advance(timedelta(minutes=-2))
    second = (await world.begin(host="host-2")).run
    assert second.opened_at == first.opened_at + INSTANT
    with refused(Reason.RUN_IDENTITY_CONFLICT, incarnation=second.incarnation):
        await world.begin(host="host-2")
    await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", second.incarnation)
    third = await world.begin(host="host-2")
    assert third.outcome is BeginOutcome.BEGUN
    with refused(Reason.RUN_IDENTITY_CONFLICT, incarnation=third.run.incarnation):
        await world.begin(host="host-2")


async def test_a_run_that_was_idle_for_an_hour_has_ended(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    world.clock.advance(RUN_IDLE_MAX)
    await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items())
    world.clock.advance(RUN_IDLE_MAX + INSTANT)
    with refused(Reason.RUN_ENDED, incarnation=run.incarnation):
        await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items())
    begun = await world.begin()
    assert begun.outcome is BeginOutcome.BEGUN
    ended = await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", run.incarnation)
    assert ended.state is RunState.IDLE_ENDED
    assert ended.ended_at == run.active_at + 2 * RUN_IDLE_MAX


async def test_ending_an_idle_run_says_when_it_ended(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    world.clock.advance(3 * RUN_IDLE_MAX)
    ended = await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", run.incarnation)
    assert (ended.state, ended.ended_at) == (RunState.IDLE_ENDED, run.opened_at + RUN_IDLE_MAX)


async def test_using_a_run_keeps_it_from_being_idle(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    node = await world.remember("tea")
    world.clock.advance(RUN_IDLE_MAX)
    await world.app.access.record_use(world.request("RecordUse"), "assistant", run.context_id, items(node.ref))
    world.clock.advance(RUN_IDLE_MAX)
    await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items(node.ref))


async def test_a_host_whose_clock_is_behind_does_not_make_a_run_look_idle(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    world.clock.advance(-RUN_IDLE_MAX / 2)
    await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items())
    world.clock.advance(RUN_IDLE_MAX / 2 + RUN_IDLE_MAX)
    await world.app.access.admit(world.request("AdmitMemories"), "assistant", run.context_id, items())


async def test_ending_twice_is_no_error_and_changes_nothing(world: World) -> None:
    await world.open()
    run = (await world.begin()).run
    world.clock.advance(timedelta(minutes=1))
    ended = await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", run.incarnation)
    assert (ended.state, ended.ended_at) == (RunState.ENDED, world.clock.now())
    world.clock.advance(timedelta(minutes=1))
    again = await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", run.incarnation)
    assert again == ended


async def test_only_an_incarnation_of_this_session_can_be_ended(world: World) -> None:
    await world.open()
    await world.open("other")
    run = (await world.begin()).run
    with refused(Reason.RUN_NOT_FOUND, run_id="turn-1"):
        await world.app.sessions.end_run(world.request("EndRun"), "other", "turn-1", run.incarnation)
    with refused(Reason.RUN_NOT_FOUND, run_id="turn-1"):
        await world.app.sessions.end_run(world.request("EndRun"), "assistant", "turn-1", "unknown")
    with refused(Reason.SESSION_NOT_FOUND, session_id="missing"):
        await world.app.sessions.end_run(world.request("EndRun"), "missing", "turn-1", run.incarnation)


async def test_a_repeated_begin_tells_of_the_run_that_it_began(world: World) -> None:
    await world.open()
    call = world.request("BeginRun", "k")
    first = await world.app.sessions.begin_run(call, "assistant", None, "host-1")
    await world.app.access.admit(world.request("AdmitMemories"), "assistant", first.run.context_id, items())
    await world.app.sessions.begin_run(world.request("BeginRun"), "assistant", first.run.run_id, "host-2")
    assert await world.app.sessions.begin_run(call, "assistant", None, "host-1") == first
