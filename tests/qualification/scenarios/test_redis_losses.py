"""How publications are lost and leases are met by faults, over a cluster that is made up."""

import asyncio
import math
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.processes.proxy import Rule, Way, always
from tests.qualification.cluster.redis_group import REPLICAS_WAIT_SECONDS, RedisGroup
from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios import redis_losses
from tests.qualification.scenarios.redis_losses import PUBLISHED_SECONDS, AmidRefresh, PublicationLost, never_amid


class _Cluster:
    """`seen` is what happened, each with whether a fault was under way by the timeline."""

    def __init__(self) -> None:
        self.timeline = Timeline()
        self.redis = self
        self.primary = None
        self.seen: list[tuple[str, bool]] = []

    def note(self, what: str) -> None:
        self.seen.append((what, any(event.ended is None for event in self.timeline.events)))

    async def wait_settled(self) -> None:
        self.note("settled")

    async def promote_losing_writes(self, during: Callable[[], Awaitable[None]]) -> None:
        await during()
        self.note("promoted")

    async def rejoin(self, node: None) -> None:
        self.note("rejoined")


async def test_a_publication_is_lost_from_when_the_primary_is_to_be_killed_until_the_group_is_whole(
    monkeypatch: pytest.MonkeyPatch,
):
    cluster = _Cluster()

    class Lost(PublicationLost):
        async def _publish(self, place: Any) -> Any:
            cluster.note("published")

        async def _publications(self) -> None:
            await self._publish(None)

    async def status(place: Any) -> Any:
        return SimpleNamespace(state=SimpleNamespace(name="BEHIND"))

    monkeypatch.setattr(redis_losses, "_published_at", lambda node, partition: 0)
    monkeypatch.setattr(redis_losses, "status_of", status)
    place, nobody = cast(Any, SimpleNamespace(partition="p")), cast(Any, None)
    assert await Lost(place, place, nobody).inject(cast(Any, cluster), random.Random(1)) == 1
    assert cluster.seen == [
        ("published", False),
        ("settled", False),
        ("published", False),
        ("promoted", True),
        ("rejoined", True),
        ("published", False),
    ]


def test_replicas_that_hear_nothing_wait_for_longer_than_the_publications_take_that_they_are_not_to_get():
    assert REPLICAS_WAIT_SECONDS > 3 * PUBLISHED_SECONDS


async def test_where_nothing_comes_to_be_lost_the_replicas_get_everything_after_all(monkeypatch: pytest.MonkeyPatch):
    did: list[str] = []
    line = SimpleNamespace(swallow=lambda ports: did.append("swallowed"), mend=lambda: did.append("mended"))
    primary = SimpleNamespace(proxy=line, kill9=lambda: did.append("killed"))

    async def find_primary() -> Any:
        return primary

    async def never() -> None:
        raise TimeoutError

    monkeypatch.setattr("tests.qualification.cluster.redis_group._ports_of_replicas", lambda node: {1, 2})
    group = cast(Any, SimpleNamespace(find_primary=find_primary))
    with pytest.raises(TimeoutError):
        await RedisGroup.promote_losing_writes(group, never)
    assert did == ["swallowed", "mended"]


class _Resting:
    """A place whose schedule rests, with its line to the provider, the observer of its lease, and a fault.

    Whoever asks for a refresh gets the lease, and waits for the provider.
    """

    name = "a fault"
    partition = "p"
    words = frozenset({b"word"})

    def __init__(self) -> None:
        self.rule: Rule = always
        self.held: list[bytes] = []
        self.latest: dict[str, Any] = {}
        self.embedding = self
        self.proxy = self
        self.struck_amid = False
        self.let_go = asyncio.Event()
        self.refreshing = 0

    async def remember(self, count: int) -> None:
        return None

    async def refresh(self, server: int) -> None:
        text = b"passage: word"
        self.refreshing += 1
        try:
            if self.rule(Way.TO_SERVER, text) is not always(Way.TO_SERVER, text):
                self.held.append(text)
                self.latest["p"] = SimpleNamespace(lease=SimpleNamespace(is_live=lambda now: now < math.inf))
                await self.let_go.wait()
        finally:
            self.refreshing -= 1

    def mend(self) -> None:
        self.rule = always
        self.held.clear()

    async def inject(self, cluster: Any, rng: random.Random) -> int:
        self.struck_amid = bool(self.held) and self.refreshing == 1
        return 1


async def test_a_fault_strikes_amid_a_refresh_although_the_schedule_rests():
    resting, amid = cast(Any, _Resting()), Counter[str]()
    assert await AmidRefresh(resting, resting, resting, amid).inject(resting, random.Random(1)) == 1
    assert resting.struck_amid
    assert never_amid(amid) == []
    assert (resting.held, resting.refreshing) == ([], 0)
