"""How head queries are shared."""

import asyncio

import pytest

from durable_memory.adapters.postgres.heads import Heads
from durable_memory.domain.errors import DomainError, dependency_unavailable
from durable_memory.domain.state import Head


class Source:
    """Answers queries when it is told to, with how many it has begun as the revision."""

    def __init__(self):
        self.queries = []
        self.go = asyncio.Semaphore(0)
        self.error = None

    async def __call__(self, keys):
        self.queries.append(set(keys))
        revision = len(self.queries)
        await self.go.acquire()
        if self.error is not None:
            raise self.error
        return {key: Head(history_id="h", revision=revision) for key in keys if key != b"absent"}


def revision(head):
    return None if head is None else head.revision


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_one_query_answers_all_that_began_before_it_and_none_that_began_after():
    source = Source()
    heads = Heads(source)
    first = [asyncio.ensure_future(heads.of(key)) for key in (b"a", b"b", b"a")]
    await turns()
    late = [asyncio.ensure_future(heads.of(b"a")) for _ in range(10)]
    await turns()
    assert source.queries == [{b"a", b"b"}]
    source.go.release()
    assert [revision(head) for head in await asyncio.gather(*first)] == [1, 1, 1]
    source.go.release()
    assert {revision(head) for head in await asyncio.gather(*late)} == {2}
    assert source.queries == [{b"a", b"b"}, {b"a"}]
    await heads.close()


async def test_a_namespace_that_was_never_written_to_has_no_head():
    source = Source()
    source.go.release()
    assert await Heads(source).of(b"absent") is None


async def test_a_caller_that_goes_away_stops_nobody():
    source = Source()
    heads = Heads(source)
    gone, staying = [asyncio.ensure_future(heads.of(b"a")) for _ in range(2)]
    await turns()
    gone.cancel()
    source.go.release()
    assert revision(await staying) == 1
    assert gone.cancelled()


async def test_a_failure_reaches_every_caller_and_the_next_query_is_a_new_one():
    source = Source()
    heads = Heads(source)
    callers = [asyncio.ensure_future(heads.of(b"a")) for _ in range(2)]
    source.error = dependency_unavailable("gone")
    source.go.release()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert all(isinstance(answer, DomainError) for answer in answers)
    assert answers[0] is not answers[1]
    source.error = None
    source.go.release()
    assert revision(await heads.of(b"a")) == 2


async def test_an_unexpected_failure_reaches_every_caller_too():
    source = Source()
    source.error = RuntimeError("a defect")
    source.go.release()
    with pytest.raises(RuntimeError):
        await Heads(source).of(b"a")
