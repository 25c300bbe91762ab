"""A namespace that has lost what was acknowledged is judged, although everything that followed it has broken off."""

import random
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Self, cast

import grpc
import pytest

from durable_memory_client import ChangeSet, ChangeToken, MemoryServiceError, WatchedChange
from tests.qualification.checks.by_hand import Story
from tests.qualification.recorder.history import AFTERWARDS, Call, Outcome
from tests.qualification.recorder.recorder import Command
from tests.qualification.report.results import Verdict
from tests.qualification.traffic.tenancy import Tenancy

GOES_ON, KEPT = "a watch goes on", "acknowledged writes are kept"


class _Watch:
    """Tells of these changes, and then that what it was told of is not there, if that is so."""

    def __init__(self, changes: Sequence[ChangeSet], *, lost: bool) -> None:
        self._changes = changes
        self._lost = lost

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[WatchedChange]:
        for change in self._changes:
            token = ChangeToken("h", change.namespace_revision)
            yield WatchedChange(change_token=token, change_set=change, nodes=())
        if self._lost:
            raise MemoryServiceError("3; it is at 2", code=grpc.StatusCode.NOT_FOUND, definite=True, attempts=1)

    async def close(self) -> None:
        return None


class _Snapshot:
    async def all(self) -> list[Any]:
        return []


class _Memory:
    """A service that told a watch of `told`, and has `there`."""

    def __init__(self, told: Sequence[ChangeSet], there: Sequence[ChangeSet]) -> None:
        self._there = there
        self._watches = [_Watch(told, lost=len(there) < len(told)), _Watch(there, lost=False)]

    def watch(self, after: int, include_nodes: bool) -> _Watch:
        return self._watches.pop(0)

    async def get_change_token(self) -> ChangeToken:
        return ChangeToken("h", len(self._there))

    async def list_change_sets(self, page_size: int, after_namespace_revision: int = 0) -> AsyncIterator[ChangeSet]:
        for change in self._there[after_namespace_revision:]:
            yield change

    async def usage(self, page_size: int) -> AsyncIterator[Any]:
        for one in list[Any]():
            yield one

    def snapshot(self) -> _Snapshot:
        return _Snapshot()


def story() -> Story:
    written = Story()
    for name in ("a", "b", "c"):
        written.remember(name, name)
    return written


def tenancy(calls: Sequence[Call], told: Sequence[ChangeSet], there: Sequence[ChangeSet]) -> Tenancy:
    made = Tenancy([cast(Any, _Memory(told, there))], seed="1", kinds=[])
    made.history.calls += calls
    return made


@pytest.mark.parametrize("lost", [0, 1], ids=["all is there", "the last is lost"])
async def test_a_watch_that_broke_off_is_a_finding_and_what_is_there_is_judged_all_the_same(lost: int):
    written = story()
    there = written.changes[: len(written.changes) - lost]
    one = tenancy(written.calls, written.changes, there)
    findings, kept = await one.findings()
    await one.close()
    by_check = {finding.check: finding for finding in findings}
    assert [len(by_check[check].problems) for check in (GOES_ON, KEPT)] == [lost, lost]
    assert by_check[GOES_ON].looked_at == 1
    assert (by_check[GOES_ON].verdict is Verdict.FAIL) is bool(lost)
    assert [change.change_set for change in kept.watched] == there


async def test_a_namespace_that_is_behind_what_it_listed_is_found_while_its_callers_go_on():
    written = story()
    one = tenancy(written.calls, written.changes, written.changes)
    assert await one.problems_so_far() == []
    one.memory = cast(Any, _Memory(written.changes, written.changes[:1]))
    assert await one.problems_so_far() == ["3 change sets were listed, and now the namespace is at 1"]
    await one.close()


async def test_what_is_sent_again_afterwards_is_known_as_that():
    async def send(timeout: float | None) -> Any:
        raise MemoryServiceError("no", code=grpc.StatusCode.ABORTED, definite=True, attempts=1)

    one = tenancy([], [], [])
    one.recorder.acknowledged.append(Command(method="Remember", request_id="r", send=send, caller="c"))
    await one.repeat(random.Random(1), 1, strict=False)
    await one.close()
    assert [(call.caller, call.outcome) for call in one.history.calls] == [(AFTERWARDS, Outcome.REFUSED)]
