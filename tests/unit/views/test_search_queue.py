"""Searches that wait together: each gets its own answer, whatever becomes of the others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from durable_memory.app.views.index import LexicalIndex, LexicalRanking, Search
from durable_memory.app.views.search_queue import SearchQueue
from durable_memory.domain.lexical.document import IndexedDocument
from durable_memory.domain.lexical.profiles import BM25F_PROFILE, COVERAGE_PROFILE
from durable_memory.domain.lexical.query import LexicalFilter, LexicalHit

START = datetime(2024, 1, 1, tzinfo=UTC)
WORDS = [f"{first}{second}a" for first in "bdfgklmn" for second in "aeiou"]


class CountingIndex(LexicalIndex):
    """An index that knows how many searches it was given at once."""

    __slots__ = ("at_once",)
    at_once: list[int]

    def rank_all(self, searches: Sequence[Search]) -> list[LexicalRanking]:
        self.at_once.append(len(searches))
        return super().rank_all(searches)


def index_of(count: int) -> CountingIndex:
    chance = random.Random(count)
    index = CountingIndex.build(
        IndexedDocument(
            node_id=f"node-{number}",
            revision=1,
            kind=1 + number % 2,
            content=" ".join(chance.choices(WORDS, k=12)),
            surroundings=(" ".join(chance.choices(WORDS, k=5)),) if number % 3 else (),
            updated_at=START + timedelta(hours=number % 7),
        )
        for number in range(count)
    )
    assert isinstance(index, CountingIndex)
    index.at_once = []
    return index


def searches(count: int) -> list[Search]:
    chance = random.Random(7)
    return [
        Search(
            query=" ".join(chance.choices([*WORDS, "absent"], k=chance.randint(1, 9))),
            profile=chance.choice([BM25F_PROFILE, COVERAGE_PROFILE]),
            limit=chance.choice([1, 3, 50]),
            filter=LexicalFilter(kinds=frozenset({1})) if chance.random() < 0.3 else LexicalFilter(),
            min_score=chance.choice([0.0, 0.0, 0.4]),
            min_relative_score=chance.choice([0.0, 0.0, 0.6]),
        )
        for _ in range(count)
    ]


def alone(index: LexicalIndex, search: Search) -> list[LexicalHit]:
    return index.search_all([search])[0]


async def queued(queue: SearchQueue, index: LexicalIndex, search: Search) -> list[LexicalHit]:
    return index.hits(await queue.search(index, search))


@pytest.mark.parametrize("documents", [0, 1, 40, 30_000])
def test_searches_together_find_what_each_finds_alone(documents: int) -> None:
    index = index_of(documents)
    many = searches(40)
    assert index.search_all(many) == [alone(index, search) for search in many]


async def test_searches_that_arrive_together_are_answered_together() -> None:
    index, queue, many = index_of(200), SearchQueue(), searches(40)
    expected = [alone(index, search) for search in many]
    index.at_once.clear()
    assert await asyncio.gather(*(queued(queue, index, search) for search in many)) == expected
    assert index.at_once == [16, 16, 8]


async def test_searches_wait_for_others_while_they_do_not_come_alone() -> None:
    index, queue, (one, other, *_) = index_of(200), SearchQueue(), searches(9)

    async def later() -> list[LexicalHit]:
        for _ in range(3):
            await asyncio.sleep(0)
        return await queued(queue, index, other)

    async def sizes() -> list[int]:
        index.at_once.clear()
        await asyncio.gather(queued(queue, index, one), later())
        return list(index.at_once)

    assert await sizes() == [2]
    await queued(queue, index, one)
    assert await sizes() == [1, 1]
    for _ in range(13):
        await queued(queue, index, one)
    assert await sizes() == [2], "the sixteenth looks whether others come by now"
    assert await sizes() == [2]


async def test_searches_of_different_indexes_do_not_mix() -> None:
    small, large, queue, (search, *_) = index_of(20), index_of(200), SearchQueue(), searches(1)
    found = await asyncio.gather(queued(queue, small, search), queued(queue, large, search))
    assert list(found) == [alone(small, search), alone(large, search)]


async def test_a_search_that_fails_fails_alone() -> None:
    index, queue, (good, *_) = index_of(20), SearchQueue(), searches(1)
    bad = Search(query="bada", profile="unknown", limit=1)
    first, second, third = await asyncio.gather(
        queued(queue, index, good), queued(queue, index, bad), queued(queue, index, good), return_exceptions=True
    )
    assert first == third == alone(index, good)
    assert isinstance(second, KeyError)


async def test_a_caller_that_left_is_not_waited_for() -> None:
    index, queue, (one, other, *_) = index_of(200), SearchQueue(), searches(9)
    leaving = asyncio.create_task(queued(queue, index, one))
    staying = asyncio.create_task(queued(queue, index, other))
    await asyncio.sleep(0)
    leaving.cancel()
    assert await staying == alone(index, other)
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert index.at_once[0] == 1
