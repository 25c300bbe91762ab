"""Makes calls through the public client, and keeps what their caller learns from them."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from durable_memory_client import ChangeToken, MemoryServiceError, MemoryUnavailableError, Recall
from tests.qualification.recorder.answers import Answer, effect_of, hits_of, stands
from tests.qualification.recorder.history import (
    Begun,
    BegunAgain,
    Call,
    Fate,
    History,
    Key,
    Outcome,
    Process,
    Reading,
    Recalled,
    Record,
    Recorded,
    Resumed,
    Write,
    by_command,
    came_through,
    fate,
)
from tests.qualification.recorder.journal import Journal
from tests.qualification.recorder.operations import sample_call, sample_recall
from tests.qualification.report.timeline import Timeline
from tests.qualification.traffic.wording import digest_of

_MEMORABLE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something to do once. `send` makes one attempt, always with the same request id; it is given its deadline.

    `text` is what the content that it brings, or makes ACTIVE, begins with. `writes`: what it does to which nodes.
    """

    method: str
    request_id: str
    send: Callable[[float | None], Awaitable[Answer]]
    text: str = ""
    caller: str = ""
    writes: tuple[Write, ...] = ()

    @property
    def key(self) -> Key:
        return (self.method, self.request_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A memory that was acknowledged, and a text by which nothing else is found first."""

    node_id: str
    digest: str
    """Of the memory's whole text."""
    text: str


class Recorder:
    """The calls of one namespace, of any number of callers of this process.

    `process` names it among those whose histories are merged. `journal` is told everything as it happens. Latencies
    and revisions go to `timeline`, these under the key `namespace`.
    """

    def __init__(
        self,
        *,
        process: str = "",
        seed: str = "",
        journal: Journal | None = None,
        timeline: Timeline | None = None,
        namespace: str = "",
    ) -> None:
        self.history = History()
        self.errors: dict[Key, MemoryServiceError] = {}
        """The last error of each command that got one."""
        self.acknowledged: list[Command] = []
        self.came_through: list[Call] = []
        """The attempts by which callers at work got changes through (`history.came_through`), as they ended."""
        self.questions: list[Question] = []
        """About what was acknowledged as ACTIVE at some time, the newest last."""
        self._process = process
        self._journal = journal
        self._timeline = timeline
        self._namespace = namespace
        self._under_way: dict[int, Call] = {}
        self._commands: dict[Key, Command] = {}
        self._numbers: dict[int, tuple[int, Command]] = {}
        self._repeatable: set[Key] = set()
        self._sent = 0
        self._waiting: list[tuple[int, asyncio.Event]] = []
        self._keep(Process(process=process, seed=seed, began=time.monotonic(), wall=time.time(), pid=os.getpid()))

    @property
    def calls(self) -> list[Call]:
        """The attempts that have ended."""
        return self.history.calls

    @property
    def readings(self) -> list[Reading]:
        return self.history.readings

    @property
    def under_way(self) -> list[Call]:
        """The attempts that have not ended."""
        return list(self._under_way.values())

    async def attempt(
        self, command: Command, timeout: float | None = None, *, by: str | None = None
    ) -> tuple[Call, Answer | None]:
        """Make one attempt. `timeout` is its deadline in seconds, by default the client's. `by` makes it, by default
        the command's caller.

        The client's own repetitions count as part of it: its errors say whether they are definite all the same.
        """
        self._commands.setdefault(command.key, command)
        call = Call(
            method=command.method,
            request_id=command.request_id,
            began=time.monotonic(),
            ended=math.inf,
            outcome=Outcome.UNKNOWN,
            wall=time.time(),
            writes=command.writes,
            process=self._process,
            caller=command.caller if by is None else by,
            command=self._numbers.setdefault(id(command), (len(self._numbers) + 1, command))[0],
        )
        place = self._sent
        self._under_way[place] = call
        if self._journal is not None:
            self._journal.write(call)
        self._count()
        answer: Answer | None = None
        outcome, reason = Outcome.UNKNOWN, "CANCELLED"
        try:
            answer = await command.send(timeout)
            outcome, reason = Outcome.OK, ""
        except MemoryServiceError as error:
            outcome = Outcome.REFUSED if error.definite else Outcome.UNKNOWN
            reason = str(error.reason or error.code.name)
            self.errors[command.key] = error
        finally:
            history_id, token_revision = stands(answer)
            call = replace(
                call,
                ended=time.monotonic(),
                outcome=outcome,
                reason=reason,
                effect=None if answer is None else effect_of(answer),
                history_id=history_id,
                token_revision=token_revision,
            )
            del self._under_way[place]
            self._keep(call)
            if outcome is Outcome.OK:
                self._remember(command, call)
        return call, answer

    async def recall(
        self,
        recalling: Callable[[], Awaitable[Recall]],
        *,
        question: Question,
        method: str,
        mode: str,
        max_results: int,
        session_id: str = "",
        caller: str = "",
    ) -> Recall | None:
        """Ask; None if there was no answer. Pure: an attempt that failed is over."""
        recalled = Recalled(
            began=time.monotonic(),
            ended=math.inf,
            method=method,
            asked_node=question.node_id,
            asked_text=question.digest,
            mode_asked=str(mode),
            max_results=max_results,
            session_id=session_id,
            process=self._process,
            caller=caller,
        )
        answer: Recall | None = None
        reason, definite = "CANCELLED", False
        try:
            answer = await recalling()
        except MemoryServiceError as error:
            reason, definite = str(error.reason or error.code.name), error.definite
        finally:
            recalled = replace(recalled, ended=time.monotonic(), reason=reason, definite=definite)
            if answer is not None:
                recalled = _answered(recalled, answer)
            self._keep(recalled)
        return answer

    def keep_admitted(self, answer: Recall, call: Call, *, session_id: str, max_results: int) -> None:
        """Note what a recall returned that admits in the same call: all of it was current when it was answered."""
        self._keep(
            _answered(
                Recalled(
                    began=call.began,
                    ended=call.ended,
                    method=call.method,
                    asked_node="",
                    asked_text="",
                    mode_asked="AUTO",
                    max_results=max_results,
                    session_id=session_id,
                    process=self._process,
                    caller=call.caller,
                    of_call=True,
                ),
                answer,
            )
        )

    async def read(self, read: Callable[[], Awaitable[ChangeToken]], *, caller: str = "") -> ChangeToken | None:
        """Read a change token; None if the service is not there."""
        began = time.monotonic()
        try:
            token = await read()
        except MemoryUnavailableError:
            return None
        self._keep(
            Reading(
                began=began,
                ended=time.monotonic(),
                history_id=token.history_id,
                revision=token.namespace_revision,
                process=self._process,
                caller=caller,
            )
        )
        return token

    def keep(self, record: Begun | BegunAgain | Recorded | Resumed) -> None:
        """Note something else that a caller was told."""
        self._keep(replace(record, process=self._process))

    async def sent(self, more: int) -> None:
        """Return when `more` further attempts have been started."""
        event = asyncio.Event()
        self._waiting.append((self._sent + more, event))
        await event.wait()

    @property
    def texts(self) -> Mapping[Key, str]:
        """What each command brings."""
        return {key: command.text for key, command in self._commands.items()}

    def calls_so_far(self) -> Sequence[Call]:
        """All calls, those under way as unknown."""
        return [*self.calls, *self._under_way.values()]

    def with_fate(self, wanted: Fate) -> Sequence[Command]:
        """The commands of which this is known."""
        return [self._commands[key] for key in _keys_with(self.calls_so_far(), wanted)]

    async def in_doubt(self) -> Sequence[Command]:
        """The commands of which nobody knows what became of them. Looked for beside the event loop, which may carry
        what others wait for."""
        keys = await asyncio.to_thread(_keys_with, self.calls_so_far(), Fate.UNKNOWN)
        return [self._commands[key] for key in keys]

    def _count(self) -> None:
        self._sent += 1
        for target, event in self._waiting:
            if target <= self._sent:
                event.set()
        self._waiting = [(target, event) for target, event in self._waiting if target > self._sent]

    def _keep(self, record: Record) -> None:
        self.history.add(record)
        if self._journal is not None:
            self._journal.write(record)
        if self._timeline is None:
            return
        if isinstance(record, Call):
            sample_call(self._timeline, record, self._namespace)
        elif isinstance(record, Recalled):
            sample_recall(self._timeline, record)

    def _remember(self, command: Command, call: Call) -> None:
        """Keep what can be repeated and asked about."""
        if command.key not in self._repeatable:
            self._repeatable.add(command.key)
            self.acknowledged.append(command)
            if came_through([call]) is not None:
                self.came_through.append(call)
        if call.effect is None or not command.text:
            return
        digest = digest_of(command.text)
        named = {write.node_id: write for write in command.writes}
        for made in call.effect.made:
            write = named.get(made.node_id, named.get(""))
            if write is not None and write.status == "ACTIVE" and write.text in (None, digest):
                self.questions.append(Question(node_id=made.node_id, digest=digest, text=command.text))
        del self.questions[:-_MEMORABLE]


def _keys_with(calls: Iterable[Call], wanted: Fate) -> Sequence[Key]:
    return [key for key, attempts in by_command(calls).items() if fate(attempts) is wanted]


def _answered(recalled: Recalled, answer: Recall) -> Recalled:
    token = answer.change_token
    return replace(
        recalled,
        reason="",
        definite=True,
        mode_used=str(answer.mode_used or ""),
        degradation="" if answer.degradation is None else str(answer.degradation.reason),
        history_id="" if token is None else token.history_id,
        revision=0 if token is None else token.namespace_revision,
        hits=hits_of(answer),
        unindexed=None if answer.semantic is None else answer.semantic.unindexed_active_count,
    )


def unknown_and_applied(
    calls: Sequence[Call], committed: dict[Key, float], *, but_for: Collection[str] = ()
) -> tuple[int, list[Call]]:
    """How many commands had a first attempt of unknown outcome, for a reason that is not named; and those applied.

    `calls` are all attempts. `committed` is when each change set was committed, by the clock on the wall: before the
    next attempt began, if the unknown one did it.
    """
    in_doubt, applied = 0, []
    for key, attempts in by_command(calls).items():
        first = attempts[0]
        if first.outcome is Outcome.UNKNOWN and first.reason not in but_for:
            in_doubt += 1
            following = [call.wall for call in itertools.islice(attempts, 1, None)]
            if key in committed and committed[key] < min(following, default=float("inf")):
                applied.append(first)
    return in_doubt, applied
