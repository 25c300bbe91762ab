"""A namespace that has lost what was acknowledged is judged, although everything that followed it has broken off."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Self, cast

import grpc
import pytest

from durable_memory_client import (
    ChangeSet,
    ChangeToken,
    DurableMemoryError,
    IncompleteStreamError,
    MemoryServiceError,
    WatchedChange,
)
from tests.processes.polling import wait_until_async
from tests.qualification.checks.by_hand import Story
from tests.qualification.recorder.history import AFTERWARDS, Call, Outcome
from tests.qualification.recorder.recorder import Command
from tests.qualification.report.results import Verdict
from tests.qualification.traffic import judgement
from tests.qualification.traffic.callers import Caller
from tests.qualification.traffic.tenancy import Tenancy

GOES_ON, KEPT, WATCHES = "a watch goes on", "acknowledged writes are kept", "watches tell whole change sets"


LOST = MemoryServiceError("3; it is at 2", code=grpc.StatusCode.NOT_FOUND, definite=True, attempts=1)
GAP = IncompleteStreamError("the watch skipped a revision")


class _Watch:
    """Tells of these changes, and then ends with an error, if there is one, or never tells more if it `stands`."""

    def __init__(
        self, changes: Sequence[ChangeSet], error: DurableMemoryError | None = None, *, stands: bool = False
    ) -> None:
        self._changes = changes
        self._error = error
        self._stands = stands

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
        if self._error is not None:
            raise self._error
        if self._stands:
            await asyncio.Event().wait()

    async def close(self) -> None:
        return None


class _Snapshot:
    async def all(self) -> list[Any]:
        return []


class _Memory:
    """A service that has `there`, and whose watches are these, one after the other."""

    def __init__(self, there: Sequence[ChangeSet], *watches: _Watch) -> None:
        self._there = there
        self._watches = list(watches)

    def watch(self, after: int, include_nodes: bool) -> _Watch:
        return self._watches.pop(0)

    async def get_change_token(self, timeout: float | None = None) -> ChangeToken:
        return ChangeToken("h", len(self._there))

    async def list_change_sets(
        self, page_size: int, after_namespace_revision: int = 0, timeout: float | None = None
    ) -> AsyncIterator[ChangeSet]:
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


def tenancy(calls: Sequence[Call], there: Sequence[ChangeSet], *watches: _Watch) -> Tenancy:
    made = Tenancy([cast(Any, _Memory(there, *watches))], seed="1", kinds=[])
    made.history.calls += calls
    return made


@pytest.mark.parametrize(
    ("lost", "error"), [(0, None), (1, LOST), (0, GAP)], ids=["all is there", "the last is lost", "a gap"]
)
async def test_a_watch_that_broke_off_is_a_finding_and_what_is_there_is_judged_all_the_same(
    lost: int, error: DurableMemoryError | None
):
    written = story()
    there = written.changes[: len(written.changes) - lost]
    told = written.changes[:1] if error is GAP else written.changes
    one = tenancy(written.calls, there, _Watch(told, error), _Watch(there))
    findings, kept = await one.findings()
    await one.close()
    by_check = {finding.check: finding for finding in findings}
    assert [len(by_check[check].problems) for check in (GOES_ON, KEPT)] == [error is not None, lost]
    assert by_check[GOES_ON].looked_at == 1
    assert (by_check[GOES_ON].verdict is Verdict.FAIL) is (error is not None)
    assert [change.change_set for change in kept.watched] == there
    assert kept.unwatched == ""


@pytest.mark.parametrize("stands", [False, True], ids=["breaks off", "stands still"])
async def test_a_watch_that_gets_no_further_a_second_time_either_keeps_nothing_from_being_judged(
    stands: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(judgement, "_WATCHED_SECONDS", 0.01)
    written = story()
    again = _Watch(written.changes[:2], None if stands else GAP, stands=stands)
    one = tenancy(written.calls, written.changes, _Watch(written.changes[:1], GAP), again)
    findings, kept = await one.findings()
    await one.close()
    by_check = {finding.check: finding for finding in findings}
    assert [len(by_check[check].problems) for check in (GOES_ON, KEPT)] == [1, 0]
    assert by_check[WATCHES].problems[0] == kept.unwatched
    assert kept.unwatched.startswith("after 2 change sets the watch got no further")
    assert len(kept.watched) == 2


async def test_every_caller_is_done_before_it_is_raised_what_one_of_them_did_not_expect():
    one, done = tenancy([], [], _Watch([])), list[str]()

    class Caller:
        def __init__(self, name: str, error: Exception | None = None) -> None:
            self.name = name
            self._error = error

        async def run(self, stopping: asyncio.Event) -> None:
            if self._error is not None:
                raise self._error
            await stopping.wait()
            await asyncio.sleep(0)
            done.append(self.name)

    one.callers = cast(Any, [Caller("a", LOST), Caller("b")])
    one.start()
    with pytest.raises(MemoryServiceError, match="it is at 2"):
        await one.stop()
    assert done == ["b"]
    await one.close()


async def test_who_rests_begins_nothing_until_it_goes_on_or_is_stopped():
    one = tenancy([], [], _Watch([]))
    steps = 0

    class Steps(Caller):
        async def step(self) -> None:
            nonlocal steps
            steps += 1
            one.rest()
            await asyncio.sleep(0)

    one.callers = [Steps("a", [one.memory], one.recorder, one._reach, seed="4", timeout=None)]
    one.start()
    await wait_until_async(lambda: steps == 1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert steps == 1
    one.go_on()
    await wait_until_async(lambda: steps == 2)
    await one.stop()
    assert steps == 2
    await one.close()


async def test_a_namespace_that_is_behind_what_it_listed_is_found_while_its_callers_go_on():
    written = story()
    one = tenancy(written.calls, written.changes, _Watch(written.changes))
    assert await one.problems_so_far() == []
    one.memory = cast(Any, _Memory(written.changes[:1]))
    assert await one.problems_so_far() == ["3 change sets were listed, and now the namespace is at 1"]
    await one.close()


async def test_what_is_sent_again_afterwards_is_known_as_that():
    async def send(timeout: float | None) -> Any:
        raise MemoryServiceError("no", code=grpc.StatusCode.ABORTED, definite=True, attempts=1)

    one = tenancy([], [], _Watch([]))
    one.recorder.acknowledged.append(Command(method="Remember", request_id="r", send=send, caller="c"))
    await one.repeat(random.Random(1), 1, strict=False)
    await one.close()
    assert [(call.caller, call.outcome) for call in one.history.calls] == [(AFTERWARDS, Outcome.REFUSED)]
