"""A service that lives through months in a minute: its clock, its ends and beginnings, and the namespaces in it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from zoneinfo import ZoneInfo

from durable_memory_client import MemoryClient, MemoryRun, MemoryServiceError, NodeRevision, NodeStatus, RecallMode
from durable_memory_client.errors import RunEndedError
from tests.processes.polling import wait_until_async
from tests.qualification.recorder.history import Fate, Outcome
from tests.qualification.recorder.recorder import Command, Recorder
from tests.qualification.report.timeline import Lane, Timeline
from tests.qualification.scenarios.clocked_server import ClockedServer, MovedClock
from tests.qualification.scenarios.horizon_hosts import Host, Notes

START: Final = datetime(2027, 10, 25, 7, tzinfo=UTC)
"""The half year from here has the ends and beginnings of summer time on both halves of the earth, and a leap day."""

DAYS: Final = 180
SILENCE: Final = timedelta(days=30)
INTERVAL: Final = timedelta(hours=12)
"""Of the namespace whose index is refreshed by the clock alone."""

SESSION: Final = "standing"
QUESTIONS: Final = ("where is the boiler room", "who waters the plants", "zebra")
MODES: Final = (RecallMode.LEXICAL, RecallMode.SEMANTIC, RecallMode.HYBRID)
_UNTOUCHED: Final = (
    "the boiler room is behind the stairs",
    "the plants are watered by whoever comes first",
    "the key of the archive hangs in the kitchen",
    "the lift is inspected in spring",
    "deliveries go to the back door",
)
_NEW_YORK, _BERLIN = ZoneInfo("America/New_York"), ZoneInfo("Europe/Berlin")
_ZONES: Final[Sequence[tzinfo]] = (
    *(UTC, _NEW_YORK, _BERLIN, ZoneInfo("Asia/Kolkata"), ZoneInfo("Pacific/Chatham")),
    *(ZoneInfo("Australia/Lord_Howe"), timezone(timedelta(hours=14))),
)
_DATES: Final[Sequence[datetime]] = (
    datetime(1600, 2, 29, 12, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59, 59, 1, tzinfo=timezone(timedelta(hours=14))),
    datetime(2027, 10, 31, 2, 30, tzinfo=_BERLIN),
    datetime(2027, 10, 31, 2, 30, tzinfo=_BERLIN, fold=1),
    datetime(2027, 11, 7, 1, 30, tzinfo=_NEW_YORK),
    datetime(2027, 11, 7, 1, 30, tzinfo=_NEW_YORK, fold=1),
    datetime(2027, 12, 31, 23, 59, 59, 999_999, tzinfo=ZoneInfo("Pacific/Chatham")),
    datetime(2028, 2, 29, 0, 0, tzinfo=timezone(timedelta(hours=14))),
    datetime(2028, 2, 29, 23, 59, 59, 999_999, tzinfo=_NEW_YORK),
    datetime(2028, 3, 12, 2, 30, tzinfo=_NEW_YORK),
    datetime(2028, 3, 26, 2, 30, tzinfo=_BERLIN),
    datetime(2028, 4, 2, 1, 45, tzinfo=ZoneInfo("Australia/Lord_Howe"), fold=1),
)
"""Hours that there are twice or not at all, the leap day at both ends of the earth, and before all epochs."""

_PAGE: Final = 20
_REPEATED_MONTHLY: Final = 20
_ALWAYS_REPEATED: Final = 5
_WAIT_SECONDS: Final = 180.0
_JUMP: Final = timedelta(days=1)
_SLOW_SECONDS: Final = 2.5
"""How long the provider takes for an answer while the clock jumps under the refresh that waits for it."""

_RECONNECT_AT_ONCE: Final = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where such a service stands: its settings by their name in lower case, and a folder for its log and clock."""

    settings: Mapping[str, object]
    folder: Path
    service_root: Path | None = None


@dataclass(slots=True)
class Account:
    """What was seen on the way, and what was wrong with it."""

    done: Counter[str] = field(default_factory=Counter)
    """What was done to the service and looked at, by its name."""
    sessions: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    schedule: list[str] = field(default_factory=list)
    digests: dict[int, str] = field(default_factory=dict)
    """Of snapshots, by the namespace revision that was then the present."""
    admitted: Counter[NodeRevision] = field(default_factory=Counter)
    used: Counter[NodeRevision] = field(default_factory=Counter)
    baseline: dict[str, list[object]] = field(default_factory=dict)
    oldest_repeat: timedelta = timedelta(0)


class Life:
    """The service over one database of its own, with three namespaces: one with hosts, one whose index only the clock
    refreshes, and one that nobody touches after the first day. Open it as an asynchronous context manager.

    `activity` is the share of its days on which a host does something.
    """

    def __init__(
        self,
        ground: Ground,
        *,
        rng: random.Random,
        tenant: str,
        canary: str,
        hosts: int,
        activity: float,
        timeline: Timeline,
    ) -> None:
        self.clock = MovedClock.starting(ground.folder / f"{tenant}.clock", START)
        self.recorder = Recorder(timeline=timeline, namespace=tenant)
        self.notes = Notes()
        self.account = Account()
        self.rng = rng
        self._activity = activity
        self._timeline = timeline
        self.log = ground.folder / f"{tenant}.log"
        self._server = ClockedServer(self.clock, self.log, ground.settings, service_root=ground.service_root)
        self.memory, self.quiet, self.untouched = (
            MemoryClient(
                self._server.address,
                tenant=tenant,
                principal="user-1",
                scope=scope,
                channel_options=_RECONNECT_AT_ONCE,
            )
            for scope in ("hosts", "by-the-clock", "untouched")
        )
        self._canary = canary
        self._hosts = [
            Host(
                f"host{chr(ord('a') + number)}",
                self.memory,
                self.recorder,
                self.notes,
                self.clock.now,
                rng=random.Random(rng.random()),
                zones=_ZONES,
                canary=canary,
            )
            for number in range(hosts)
        ]
        self._hosts[0].dates = sorted(_DATES, key=lambda date: date.astimezone(UTC), reverse=True)
        self._binding_digest = ""
        self._last_run: MemoryRun | None = None
        self._incarnations: set[str] = set()
        self._old_page: tuple[str, datetime] | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.callback(self.clock.close)
            stack.push_async_callback(self._server.kill9)
            for client in (self.memory, self.quiet, self.untouched):
                stack.push_async_callback(client.close)
            await self._server.start(_WAIT_SECONDS)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def begin(self) -> None:
        """The first day: what is never touched again, the sessions, a schedule, and what a rule is to end."""
        for number, text in enumerate(_UNTOUCHED):
            await self.untouched.remember(f"{self._canary} {text}", node_id=f"untouched-{number}")
            await self.quiet.remember(f"{self._canary} {text}", node_id=f"quiet-{number}")
        for memory in (self.untouched, self.quiet, self.memory):
            session = await memory.open_session(SESSION, max_results=5)
            self._binding_digest = session.info.binding_digest
            await wait_until_async(lambda: covered(memory), _WAIT_SECONDS, what="the index covers the first day")  # noqa: B023 - waited for here
        await self.quiet.set_schedule(interval=INTERVAL)
        await self._hosts[0].begin()
        self.account.baseline = await self.recalls()

    async def recalls(self) -> dict[str, list[object]]:
        """What the untouched namespace answers: per question and mode the hits with all their scores."""
        answers: dict[str, list[object]] = {}
        for mode in MODES:
            for number, question in enumerate(QUESTIONS):
                recall = await self.untouched.preview(f"{self._canary} {question}", mode=mode, max_results=10)
                answers[f"{mode.value} {number}"] = [
                    (str(hit.citation), hit.score, hit.lexical, hit.semantic) for hit in recall
                ]
        return answers

    async def live(self, day: int, *, kill: bool, restart: bool) -> None:
        """One day of all hosts; on some days the service ends while they are at it, or between them."""
        self.clock.move_to(START + timedelta(days=day, minutes=self.rng.randrange(120)))
        busy = [host for host in self._hosts if kill or self.rng.random() < self._activity]
        work = [host.day(day // 30) for host in busy]
        if kill:
            await asyncio.gather(self._kill(after=self.rng.randint(2, 5)), *work)
        else:
            await asyncio.gather(*work)
        if restart:
            with self._timeline.span(Lane.PROCESS, "restart", key="clocked-server"):
                await self._server.terminate(_WAIT_SECONDS)
                await self._server.start(_WAIT_SECONDS)
            self.account.done["restarts"] += 1
        if kill or restart:
            await self._resume()
        self.clock.move(timedelta(hours=4))
        if day % 7 == 0:
            await asyncio.gather(*(host.week(day // 30) for host in self._hosts))
            await self._assemble()
        if day % 42 == 0:
            # Otherwise time jumps on under every refresh there is.
            await wait_until_async(lambda: covered(self.memory), _WAIT_SECONDS, what="the index covers six weeks")
        if day % 30 == 0:
            await asyncio.gather(*(host.month() for host in self._hosts))
            await self._remember_the_present()
            await self._page_through(day)
            await self.repeat(_REPEATED_MONTHLY)
        elif day % 30 == 4:
            await self._take_up_old_page()

    async def jump_under_refresh(self) -> None:
        """Move the clock by a day while a scheduled refresh waits for the provider: its lease has run out unseen."""
        self._timeline.mark(Lane.FAULT, "the clock jumps under a refresh", key="clocked-server")
        self.clock.provider_seconds = _SLOW_SECONDS
        asked = self.clock.provider_asked
        try:
            await self._hosts[0].day(DAYS // 30)
            await wait_until_async(
                lambda: self.clock.provider_asked > asked, _WAIT_SECONDS, what="a refresh waits for the provider"
            )
            jumped_at = self.clock.now()
            self.clock.move(_JUMP)
        finally:
            self.clock.provider_seconds = 0.0
        self.account.done["jumps under a refresh"] += 1
        await wait_until_async(lambda: covered(self.memory), _WAIT_SECONDS, what="the index covers all after a jump")
        runs = (await self.memory.get_maintenance_health()).runs
        self.account.done["refreshes fenced"] += sum(
            run.error.startswith("LEASE_FENCED") and run.started_at <= jumped_at < run.ended_at for run in runs
        )

    def set_back(self, by: timedelta) -> None:
        """The clock on the wall was wrong, and is set right."""
        self._timeline.mark(Lane.FAULT, "the clock is set back", key="clocked-server")
        self.clock.move(-by)
        self.account.done["clock set back"] += 1

    async def keep_silent(self) -> None:
        """A month in which nobody calls: the refresh by the clock that is due is run, once."""
        # What the last days made due is run before.
        await wait_until_async(self._is_on_time, _WAIT_SECONDS, what="the refresh by the clock is not due")
        before = self.clock.now()
        self.clock.move(SILENCE)
        self._timeline.mark(Lane.FAULT, "a month of silence", key="clocked-server")
        await wait_until_async(self._is_on_time, _WAIT_SECONDS, what="the refresh by the clock has run")
        # Were it run once more for each time that it was missed, it would be within a few looks for due work.
        await asyncio.sleep(1.0)
        runs = (await self.quiet.get_maintenance_health()).runs
        late = [run.started_at for run in runs if run.started_at > before]
        if len(late) != 1:
            self.account.schedule.append(f"after a month of silence the refresh by the clock ran {len(late)} times")

    async def repeat(self, most: int) -> None:
        """Send again what was answered months ago: some of everything, the very first always."""
        for command in _to_repeat(self.recorder.with_fate(Fate.APPLIED), most, self.rng):
            call, _ = await self.recorder.attempt(command)
            self.account.done["requests repeated"] += 1
            age = self.clock.now() - self.notes.asked_at[command.key]
            self.account.oldest_repeat = max(self.account.oldest_repeat, age)
            if call.outcome is not Outcome.OK:
                self.account.repeats.append(f"{command.method} {command.request_id} after {age}: {call.reason}")

    async def reuse_first_request(self) -> None:
        """The request id of the first command does not let another one through, however old it is."""
        first = next(one for one in self.recorder.with_fate(Fate.APPLIED) if one.method == "Remember")
        try:
            await self.memory.remember(f"{self._canary} something else", request_id=first.request_id)
        except MemoryServiceError as error:
            if error.reason == "IDEMPOTENCY_KEY_REUSED":
                return
            self.account.repeats.append(f"another command by an old request id is refused with {error.reason}")
        else:
            self.account.repeats.append("another command by an old request id is let through")

    async def _kill(self, after: int) -> None:
        # Not `wait_for`, which makes a task of its own: it would begin to count when hosts have sent something already.
        async with asyncio.timeout(_WAIT_SECONDS):
            await self.recorder.sent(after)
        with self._timeline.span(Lane.FAULT, "kill -9 under the hosts of a day", key="clocked-server"):
            await self._server.kill9()
            await self._server.start(_WAIT_SECONDS)
        self.account.done["kills"] += 1

    async def _resume(self) -> None:
        self.account.done["sessions resumed"] += 1
        try:
            await self.memory.resume_session(SESSION, self._binding_digest)
        except MemoryServiceError as error:
            self.account.sessions.append(f"the binding of months ago does not resume: {error.reason}")

    async def _assemble(self) -> None:
        """A turn of an agent: recall for a model and use the best. Its run is left open, and the id used again."""
        session = await self.memory.resume_session(SESSION, self._binding_digest)
        if self._last_run is not None:
            await self._expect_ended(self._last_run)
        run = session.run("turn")
        info = await run.begin()
        if info.incarnation in self._incarnations:
            self.account.sessions.append("a run id that is used again is the run that it was a week ago")
        self._incarnations.add(info.incarnation)
        recall = await run.recall(f"{self._canary} {self.rng.choice(QUESTIONS)} on Friday", admit=True)
        self.account.admitted.update(one.node_revision for one in recall.admissions if one.admitted)
        if recall.hits:
            best = recall.hits[0].citation
            await run.record_use([best])
            self.account.used[NodeRevision(best.node_id, best.node_revision)] += 1
        self._last_run = run
        self.account.done["assemblies"] += 1

    async def _expect_ended(self, run: MemoryRun) -> None:
        try:
            await run.recall(self._canary, admit=True)
        except RunEndedError:
            return
        except MemoryServiceError as error:
            self.account.sessions.append(f"a run that was left a week ago is refused with {error.reason}")
        else:
            self.account.sessions.append("a run that was left a week ago still takes admissions")

    async def _remember_the_present(self) -> None:
        snapshot = self.memory.snapshot()
        await snapshot.all()
        assert snapshot.change_token is not None
        assert snapshot.digest is not None
        self.account.digests[snapshot.change_token.namespace_revision] = snapshot.digest

    async def _page_through(self, day: int) -> None:
        """A listing that takes hours, while hosts write, is of the revision at which it began."""
        listing = self.memory.list_nodes(omit_content=True, page_size=_PAGE)
        page = await listing.page()
        assert page.change_token is not None
        at = page.change_token.namespace_revision
        seen = [node.citation for node in page.items]
        self._old_page = (page.next_page_token, self.clock.now())
        while page.next_page_token:
            self.clock.move(timedelta(minutes=10))
            if len(seen) == _PAGE:
                await self._hosts[-1].day(day // 30)
            page = await listing.page(page.next_page_token)
            seen += [node.citation for node in page.items]
        then = [node.citation async for node in self.memory.list_nodes(omit_content=True, at_namespace_revision=at)]
        self.account.done["listings that took hours"] += 1
        if seen != then:
            self.account.pages.append(
                f"a listing of revision {at} that took hours has {len(seen)} of {len(then)} nodes"
            )

    async def _take_up_old_page(self) -> None:
        """A page token of days ago is refused as one, so that its holder begins again."""
        if self._old_page is None or not self._old_page[0]:
            return
        token, since = self._old_page
        try:
            await self.memory.list_nodes(omit_content=True, page_size=_PAGE).page(token)
        except MemoryServiceError as error:
            if error.reason != "INVALID_PAGE_TOKEN":
                self.account.pages.append(f"an old page token is refused with {error.reason}")
        else:
            self.account.pages.append(f"a page token of {self.clock.now() - since} ago is taken")
        self.account.done["old page tokens"] += 1

    async def _is_on_time(self) -> bool:
        runs = (await self.quiet.get_maintenance_health()).runs
        return bool(runs) and self.clock.now() - runs[0].started_at < INTERVAL


def _to_repeat(commands: Sequence[Command], most: int, rng: random.Random) -> list[Command]:
    """The first that there are, and so many of the others at most."""
    first, others = commands[:_ALWAYS_REPEATED], commands[_ALWAYS_REPEATED:]
    return [*first, *rng.sample(others, min(most, len(others)))]


async def covered(memory: MemoryClient) -> bool:
    """Whether each ACTIVE memory of the namespace has its vector in the index, and nothing else has one."""
    status = await memory.get_index_status()
    if status.unindexed_active_count or status.published is None:
        return status.change_token.namespace_revision == 0
    active = await memory.snapshot(statuses=[NodeStatus.ACTIVE], omit_content=True).all()
    return status.published.live_count == len(active)
