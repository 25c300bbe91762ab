"""What happened, as the callers know it: each attempt of each command, what its answer promised, and what was found.

Nothing here holds a text: `digest_of` (traffic/wording.py) stands for each. All times are seconds of the monotonic
clock, which the processes of one machine share; `wall` is by the clock on the wall.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TypeAlias

Key: TypeAlias = tuple[str, str]
"""Method and request id: what identifies a command in its namespace."""

AFTERWARDS = "afterwards"
"""The caller of what is sent again when everything is over, so that it is known: nobody who was at work."""


AWAY = frozenset(
    {
        *("NOT_SERVING", "DEPENDENCY_UNAVAILABLE", "OUTCOME_UNKNOWN", "OVERLOADED", "RATE_LIMITED"),
        *("DEADLINE_EXCEEDED", "UNAVAILABLE", "CANCELLED"),
    }
)
"""Reasons, and statuses without one, that say where the service is and nothing of what it was asked."""

_AFTER_THE_LOOKUP = frozenset(
    {
        *("REVISION_CONFLICT", "REVISION_NOT_FOUND", "CHANGE_SET_EMPTY", "NAMESPACE_TOO_LARGE"),
        *("NODE_NOT_FOUND", "NODE_ALREADY_EXISTS", "NODE_FROZEN", "INVALID_TRANSITION", "RELATION_INVALID"),
        *("SESSION_NOT_FOUND", "SESSION_CLOSED", "BINDING_DRIFT"),
        *("RUN_NOT_FOUND", "RUN_ENDED", "RUN_IDENTITY_CONFLICT", "EVENT_ID_REUSED"),
        "IDEMPOTENCY_KEY_REUSED",
    }
)
"""Refusals of commands that the service decides on only when it has not found the request id, whatever the method.

Others may come before that: a field, a limit, evidence or a role is also looked at where the request is read, and a
recall by meaning is settled before its session is opened."""


class Outcome(Enum):
    """What the caller of one attempt knows about it."""

    OK = "ok"
    REFUSED = "refused"
    """This attempt certainly changed nothing."""
    UNKNOWN = "unknown"


class Fate(Enum):
    """What the caller knows about a command after all of its attempts."""

    APPLIED = "applied"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What a command does to one node, if it is applied."""

    node_id: str = ""
    """Empty: a new one, whose name the answer tells."""
    expected: int | None = None
    """The revision that it must be at; 0: it must not exist. None: not compared."""
    status: str = "ACTIVE"
    text: str | None = None
    """The digest of the text that it gets; None: it keeps its text."""


@dataclass(frozen=True, slots=True)
class Made:
    """A revision of a node, of which an answer says that its command made it."""

    node_id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an answer says for ever: a repetition has to say the same.

    `revision` is the namespace revision of the change set that the command made; None if it made none.
    """

    revision: int | None
    answer: str
    made: tuple[Made, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt. One that has not ended, or whose process was killed before, has no end (`math.inf`)."""

    method: str
    request_id: str
    began: float
    ended: float
    outcome: Outcome
    reason: str = ""
    effect: Effect | None = None
    history_id: str = ""
    token_revision: int | None = None
    wall: float = 0.0
    writes: tuple[Write, ...] = ()
    process: str = ""
    caller: str = ""
    """Who made the attempt; it does one thing at a time."""
    command: int = 0
    """The command's number in its process: another number is another command, or the same name given twice."""

    @property
    def key(self) -> Key:
        return (self.method, self.request_id)

    @property
    def is_verdict(self) -> bool:
        """Whether it was refused for a reason that is decided after the request id was looked up. So this speaks of the
        command: no attempt before it was applied."""
        return self.outcome is Outcome.REFUSED and self.reason in _AFTER_THE_LOOKUP

    @property
    def is_final(self) -> bool:
        """Whether it was refused for what it asked, whenever that was looked at: another attempt is refused as well.
        If an attempt before it is in doubt, the command stays so, but for a verdict."""
        return self.outcome is Outcome.REFUSED and self.reason not in AWAY


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A change token that was read."""

    began: float
    ended: float
    history_id: str
    revision: int
    process: str = ""
    caller: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledHit:
    """One hit: a node's revision by its citation, and the digest of the text that came with it."""

    node_id: str
    revision: int
    valid_from: int
    content_digest: str
    """As the citation says it."""
    text: str
    by_meaning: bool = False
    """Whether the search by meaning found it, with a score of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """One recall of a question that names one node, and what it answered for the namespace at `revision`."""

    began: float
    ended: float
    method: str
    asked_node: str
    """The node that the question is about, while it has the text that the question was made from."""
    asked_text: str
    mode_asked: str
    mode_used: str = ""
    degradation: str = ""
    history_id: str = ""
    revision: int = 0
    hits: tuple[RecalledHit, ...] = ()
    max_results: int = 0
    unindexed: int | None = None
    """How many ACTIVE nodes the semantic branch had no vector of; None if it was not asked."""
    reason: str = ""
    """Why there is no answer; empty if there is one."""
    definite: bool = True
    """Whether the reason is the service's own: else the answer was late, or lost."""
    session_id: str = ""
    process: str = ""
    caller: str = ""
    of_call: bool = False
    """Whether it admitted what it found in the same call, which the history has as a `Call` also."""

    @property
    def outcome(self) -> Outcome:
        """Unknown is whether there would have been an answer: nothing was to be done."""
        if not self.reason:
            return Outcome.OK
        return Outcome.REFUSED if self.definite else Outcome.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that began: the invocation `request_id` of the run `run_id`, and what tells it from all others."""

    at: float
    request_id: str
    session_id: str
    run_id: str
    incarnation: str
    context_id: str
    outcome: str
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunAgain:
    """A run id that its own process began again. Of the run that it named before it is known how that stood."""

    began: float
    ended: float
    session_id: str
    run_id: str
    before: str
    """The incarnation that it had, which its process knew of at `known`."""
    known: float
    is_open: bool
    """Whether that was open for certain; else it had ended for certain."""
    got: str = ""
    """The incarnation that it has now; empty if it was refused, or is not known."""
    outcome: str = ""
    reason: str = ""
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A memory that was admitted, or used: an access event that is acknowledged."""

    method: str
    request_id: str
    session_id: str
    run_id: str
    incarnation: str
    context_id: str
    node_id: str
    revision: int
    event_id: str
    used: bool = False
    process: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A session that was opened, or resumed with a binding: its own, or one that drifted."""

    began: float
    ended: float
    session_id: str
    asked: str
    """The digest of the binding that was expected; empty where it was opened."""
    drifted: bool
    got: str = ""
    """The digest of the binding that it has; empty if it was refused, or is not known."""
    reason: str = ""
    process: str = ""
    caller: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that made calls. All its times are after `began`."""

    process: str
    seed: str
    began: float
    wall: float
    pid: int


Record: TypeAlias = Process | Call | Reading | Recalled | Begun | BegunAgain | Recorded | Resumed


@dataclass(slots=True, kw_only=True)
class History:
    """All that is known of one namespace."""

    processes: list[Process] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    recalls: list[Recalled] = field(default_factory=list)
    begun: list[Begun] = field(default_factory=list)
    begun_again: list[BegunAgain] = field(default_factory=list)
    recorded: list[Recorded] = field(default_factory=list)
    resumed: list[Resumed] = field(default_factory=list)

    def add(self, record: Record) -> None:
        match record:
            case Process():
                self.processes.append(record)
            case Call():
                self.calls.append(record)
            case Reading():
                self.readings.append(record)
            case Recalled():
                self.recalls.append(record)
            case Begun():
                self.begun.append(record)
            case BegunAgain():
                self.begun_again.append(record)
            case Recorded():
                self.recorded.append(record)
            case Resumed():
                self.resumed.append(record)

    def copy(self) -> History:
        """What is known now, in lists that stay as they are."""
        return History(**{one.name: list(getattr(self, one.name)) for one in fields(self)})

    @property
    def answered(self) -> list[Recalled]:
        """The recalls that got an answer."""
        return [recall for recall in self.recalls if not recall.reason]

    @property
    def recalls_alone(self) -> list[Recalled]:
        """The recalls that are not among the calls: with these, all that was asked of the service is there once."""
        return [recall for recall in self.recalls if not recall.of_call]

    @property
    def revisions_read(self) -> list[Reading]:
        """Every time that somebody was told where the namespace stands: change tokens, and those of recalls."""
        of_recalls = (
            Reading(began=one.began, ended=one.ended, history_id=one.history_id, revision=one.revision)
            for one in self.answered
        )
        return [*self.readings, *of_recalls]


def merged(histories: Iterable[History]) -> History:
    """One namespace's history out of those of several processes, calls in the order in which they began."""
    together = History()
    for history in histories:
        for one in fields(History):
            getattr(together, one.name).extend(getattr(history, one.name))
    together.calls.sort(key=lambda call: call.began)
    return together


def fate(attempts: Iterable[Call]) -> Fate:
    """What the attempts of one command, in order, say together."""
    known = Fate.REFUSED
    for call in attempts:
        if call.outcome is Outcome.OK:
            return Fate.APPLIED
        if call.outcome is Outcome.UNKNOWN:
            known = Fate.UNKNOWN
        elif call.is_verdict:
            known = Fate.REFUSED
    return known


def came_through(attempts: Iterable[Call]) -> Call | None:
    """The attempt of one command by which somebody at work learned that it had changed something; None if nobody did.

    It is the first that was answered. What is sent again after that is answered from what is on record, and says
    nothing of whether changes come through.
    """
    answered = next((call for call in attempts if call.outcome is Outcome.OK), None)
    if answered is None or answered.caller == AFTERWARDS:
        return None
    return answered if answered.effect is not None and answered.effect.revision is not None else None


def by_command(calls: Iterable[Call]) -> Mapping[Key, Sequence[Call]]:
    """The attempts of each command, in order."""
    attempts: dict[Key, list[Call]] = {}
    for call in calls:
        attempts.setdefault(call.key, []).append(call)
    return attempts
