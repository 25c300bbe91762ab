"""The loss of a publication is on the timeline for as long as Redis is not well, over a cluster that is made up."""

import random
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.qualification.report.timeline import Timeline
from tests.qualification.scenarios import redis_losses
from tests.qualification.scenarios.redis_losses import PublicationLost


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
    monkeypatch.setattr(redis_losses, "_status", status)
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
