"""How the row about leases goes about it, over a cluster and a clock that are made up."""

import math
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.processes.polling import WaitTimeoutError
from tests.processes.proxy import Rule, always
from tests.qualification.report.results import RowResult
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios import lease_life
from tests.qualification.scenarios.lease_life import LeaseLife, _Course
from tests.qualification.scenarios.stage import Stage


class _World:
    """Two servers, of which one holds a lease whenever there is something to remember. It is all places and lines, too.

    `taken_up_after`: so many seconds after a holder's death another one has the lease.
    """

    partition = "p"
    tenant = "killed"
    words: frozenset[bytes] = frozenset()

    def __init__(self, taken_up_after: float = 0.0) -> None:
        self.now = 0.0
        self.rule: Rule = always
        self.held: list[Any] = []
        self.did: list[str] = []
        self.servers = [_Server(self, index) for index in range(2)]
        self.embedding = self.redis = self
        self.proxy = self
        self.timeline = Timeline()
        self.latest = {"p": SimpleNamespace(lease=SimpleNamespace(fence=0), published=0)}
        self._taken_up_after = taken_up_after
        self._died_at: float | None = None

    async def find_primary(self) -> Any:
        return self

    async def remember(self, count: int) -> None:
        self.latest["p"].lease.fence += 1
        self.held.append(self)

    def let_go(self) -> None:
        paused = [server.index for server in self.servers if server.is_paused]
        answers = "answers pass" if self.rule is always else "answers are held"
        self.did.append(f"published while {paused} stand still, {answers}")
        self.latest["p"].published += 1
        self.held.clear()

    def mend(self) -> None:
        self.rule = always
        for held in list(self.held):
            held.let_go()

    async def refresh(self, server: int) -> Any:
        return SimpleNamespace(fence=self.latest["p"].lease.fence)

    refresh_when_free = refresh

    async def caught_up(self) -> None:
        return None

    def died(self) -> None:
        self._died_at = self.now

    async def wait(self, condition: Callable[[], object], timeout: float, *, what: str) -> None:
        """Time goes by while somebody waits, and only then."""
        ends_at = self.now + timeout
        while not condition():
            if self.now >= ends_at:
                raise WaitTimeoutError(what)
            self.now += 1.0
            if self._died_at is not None and self.now - self._died_at >= self._taken_up_after:
                self.latest["p"].lease.fence += 1


class _Server:
    def __init__(self, world: _World, index: int) -> None:
        self.index = index
        self.is_paused = False
        self._world = world

    def pause(self) -> None:
        self.is_paused = True

    async def kill9(self) -> None:
        self.is_paused = False
        self._world.did.append(f"server {self.index} dies")
        self._world.died()

    async def start(self) -> None:
        return None


@pytest.fixture
def course_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[_World], _Course]:
    def course(world: _World) -> _Course:
        async def place(self: _Course, name: str, *, by_hand: bool = True) -> _World:
            return world

        async def sender(held: Any, cluster: Any) -> _Server:
            return world.servers[0]

        monkeypatch.setattr(_Course, "place", place)
        monkeypatch.setattr(lease_life, "sender_of", sender)
        monkeypatch.setattr(lease_life, "wait_until_async", world.wait)
        monkeypatch.setattr(lease_life, "time", SimpleNamespace(monotonic=lambda: world.now))
        stage = Stage(
            cluster=cast(Any, world),
            rng=random.Random(1),
            seconds=0.0,
            prefix="q",
            result=RowResult(row=3, name="", promise=""),
        )
        return _Course(stage, cast(Any, world))

    return course


async def test_a_dead_holders_work_may_be_taken_up_late(course_in: Callable[[_World], _Course]):
    course = course_in(_World(taken_up_after=40.0))
    await LeaseLife()._killed(course)
    assert (course.picked_up, course.not_picked_up) == ([40.0, 40.0], [])


async def test_a_dead_holders_work_that_nobody_takes_up_is_found(course_in: Callable[[_World], _Course]):
    course = course_in(_World(taken_up_after=math.inf))
    await LeaseLife()._killed(course)
    assert course.picked_up == []
    assert course.not_picked_up == [f"nobody took the work of fence {fence} up within 180 s" for fence in (1, 2)]


async def test_a_holder_that_dies_when_it_has_published_stands_still_and_no_answer_is_kept_from_anybody_else(
    course_in: Callable[[_World], _Course],
):
    world = _World()
    course = course_in(world)
    await LeaseLife()._orphaned(course)
    assert world.did == [
        "published while [0] stand still, answers pass",
        "server 0 dies",
        "published while [1] stand still, answers pass",
        "server 1 dies",
    ]
    assert [one.fence for one in course.orphans] == [1, 2]
