"""Makes calls through the public client, and keeps what their caller learns from them."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from durable_memory_client import (
    Activated,
    Admission,
    ChangeSet,
    ChangeToken,
    MemoryServiceError,
    MemoryUnavailableError,
    Proposed,
    Put,
    Reactivated,
    Recall,
    Rejected,
    Remembered,
    Retired,
    Revised,
    Superseded,
    UseOutcome,
)
from tests.qualification.recorder.history import Call, Effect, Fate, Key, Outcome, Reading, by_command, fate

Answer: TypeAlias = (
    ChangeSet
    | Remembered
    | Put
    | Revised
    | Retired
    | Reactivated
    | Superseded
    | Proposed
    | Activated
    | Rejected
    | Recall
    | Admission
    | list[UseOutcome]
)

_DEFECTS = frozenset({"INTERNAL", "DATA_CORRUPTED", "IDEMPOTENCY_KEY_REUSED"})
_CHANGED = frozenset({"CREATED", "REVISED", "REACTIVATED", "ACTIVATED", "REJECTED", "CORROBORATED"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something to do once. `send` makes one attempt, always with the same request id; it is given its deadline.

    `text` is what the content that it brings begins with.
    """

    method: str
    request_id: str
    send: Callable[[float | None], Awaitable[Answer]]
    text: str = ""

    @property
    def key(self) -> Key:
        return (self.method, self.request_id)


class Recorder:
    """The calls of one namespace, of any number of callers."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._under_way: dict[int, Call] = {}
        self.readings: list[Reading] = []
        self.errors: dict[Key, MemoryServiceError] = {}
        """The last error of each command that got one."""
        self.defects: list[MemoryServiceError] = []
        """Errors that no caller may ever get, whatever happens to the servers and to the database."""
        self._commands: dict[Key, Command] = {}
        self._sent = 0
        self._waiting: list[tuple[int, asyncio.Event]] = []

    async def attempt(self, command: Command, timeout: float | None = None) -> tuple[Call, Answer | None]:
        """Make one attempt. `timeout` is its deadline in seconds, by default the client's.

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
        )
        place = self._sent
        self._under_way[place] = call
        self._count()
        answer: Answer | None = None
        outcome, reason = Outcome.UNKNOWN, "CANCELLED"
        try:
            answer = await command.send(timeout)
            outcome, reason = Outcome.OK, ""
        except MemoryServiceError as error:
            outcome = Outcome.REFUSED if error.definite else Outcome.UNKNOWN
            reason = error.reason or error.code.name
            self.errors[command.key] = error
            if error.reason in _DEFECTS:
                self.defects.append(error)
        finally:
            history_id, token_revision = _stands(answer)
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
            self.calls.append(call)
        return call, answer

    async def read(self, read: Callable[[], Awaitable[ChangeToken]]) -> ChangeToken | None:
        """Read a change token; None if the service is not there."""
        began = time.monotonic()
        try:
            token = await read()
        except MemoryUnavailableError:
            return None
        self.readings.append(
            Reading(
                began=began,
                ended=time.monotonic(),
                history_id=token.history_id,
                revision=token.namespace_revision,
            )
        )
        return token

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
        attempts_of = by_command(self.calls_so_far())
        return [self._commands[key] for key, attempts in attempts_of.items() if fate(attempts) is wanted]

    def _count(self) -> None:
        self._sent += 1
        for target, event in self._waiting:
            if target <= self._sent:
                event.set()
        self._waiting = [(target, event) for target, event in self._waiting if target > self._sent]


def _stands(answer: Answer | None) -> tuple[str, int | None]:
    """Where the namespace stood, as far as the answer says so."""
    match answer:
        case None | list():
            return "", None
        case ChangeSet():
            return "", answer.namespace_revision
        case _:
            token = answer.change_token
            return ("", None) if token is None else (token.history_id, token.namespace_revision)


def effect_of(answer: Answer) -> Effect:
    """All of an answer that a repetition has to say again: everything but where the namespace stands now."""
    match answer:
        case ChangeSet():
            return Effect(revision=answer.namespace_revision, answer=repr(answer))
        case list():
            return Effect(revision=None, answer=repr(answer))
        case Recall():
            return Effect(revision=None, answer=repr((answer.admissions, answer.context_id)))
        case Admission():
            return Effect(revision=None, answer=repr((answer.outcomes, answer.context_id)))
        case Superseded():
            said = f"{answer.citation} for {answer.superseded_citation}"
            return Effect(revision=answer.citation.namespace_revision, answer=said)
        case Revised() | Retired():
            return Effect(revision=answer.citation.namespace_revision, answer=str(answer.citation))
        case _:
            changed = answer.outcome in _CHANGED
            revision = answer.citation.namespace_revision if changed else None
            return Effect(revision=revision, answer=f"{answer.outcome} {answer.citation}")


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
