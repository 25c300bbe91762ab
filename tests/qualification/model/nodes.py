"""What a node may be, by what the callers alone know: every state that some world consistent with their calls has.

Each node is a register. A revision is made by one command: an acknowledged one made exactly the revisions that its
answer names, one in doubt made what it asked for in one world and nothing in another, a refused one made nothing. The
history of the service is not asked, so that it cannot vouch for itself; `resolved` may say what became of commands in
doubt, for those who trust it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from tests.qualification.recorder.history import Call, Fate, Key, Made, Outcome, by_command, fate

ACTIVE = "ACTIVE"


@dataclass(frozen=True, slots=True)
class State:
    """Of a node: its revision, its status, and the digest of its text. `ABSENT` before its first revision."""

    revision: int
    status: str
    text: str | None


ABSENT = State(0, "", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """Something that made, or may have made, a revision of a node, between these times."""

    key: Key
    began: float
    ended: float
    expected: int | None
    status: str
    text: str | None


class NodesModel:
    """The nodes of one namespace, from all its calls."""

    def __init__(self, calls: Iterable[Call], resolved: Mapping[Key, tuple[Made, ...]] | None = None) -> None:
        """`resolved`: what commands in doubt have made; one that is not in it has made nothing."""
        self._made: dict[str, dict[int, _Step]] = defaultdict(dict)
        self._maybe: dict[str, list[_Step]] = defaultdict(list)
        self._nameless: dict[str, list[_Step]] = defaultdict(list)
        self.contradictions: list[str] = []
        """Two commands whose answers say that they made the same revision."""
        for key, attempts in by_command(calls).items():
            known = fate(attempts)
            if known is Fate.APPLIED:
                answered = next(call for call in attempts if call.outcome is Outcome.OK)
                began = min(call.began for call in attempts)
                made = () if answered.effect is None else answered.effect.made
                self._add_made(key, made, attempts[0], began, answered.ended)
            elif known is Fate.UNKNOWN and resolved is None:
                self._add_maybe(key, attempts[0])
            elif known is Fate.UNKNOWN and resolved is not None and key in resolved:
                self._add_made(key, resolved[key], attempts[0], attempts[0].began, math.inf)

    @property
    def nodes(self) -> Set[str]:
        """Those with a name that some caller knows."""
        return self._made.keys() | self._maybe.keys()

    def possible(self, node_id: str, began: float, ended: float) -> set[State]:
        """What a read that began and ended then may have found."""
        made = self._made.get(node_id, {})
        # What was acknowledged before the read began had happened, and so had everything before it.
        least = max((revision for revision, step in made.items() if step.ended < began), default=0)
        states = {ABSENT} if least == 0 else set()
        for revision in range(max(1, least), self._most(node_id) + 1):
            for step in self._steps(node_id, revision):
                if step.began <= ended:
                    states |= {State(revision, step.status, text) for text in self._texts(node_id, revision, step)}
        return states

    def may_have(self, node_id: str, state: State, began: float, ended: float) -> bool:
        """Whether such a read may have found this."""
        if node_id not in self.nodes:
            return state.revision == 1 and any(
                step.began <= ended and step.status == state.status for step in self._nameless.get(state.text or "", ())
            )
        return state in self.possible(node_id, began, ended)

    def certain(self, node_id: str, began: float, ended: float) -> State | None:
        """What such a read must have found; None if the callers cannot know."""
        states = self.possible(node_id, began, ended)
        return next(iter(states)) if len(states) == 1 else None

    def may_be_written(self, node_id: str, revision: int) -> bool:
        """Whether any command may have made this revision."""
        return bool(self._steps(node_id, revision))

    def _add_made(self, key: Key, made: Iterable[Made], call: Call, began: float, ended: float) -> None:
        writes = {write.node_id: write for write in call.writes}
        for one in made:
            write = writes.get(one.node_id, writes.get(""))
            if write is None:
                continue
            step = _Step(
                key=key, began=began, ended=ended, expected=one.revision - 1, status=write.status, text=write.text
            )
            other = self._made[one.node_id].setdefault(one.revision, step)
            if other is not step:
                self.contradictions.append(
                    f"{_name(other.key)} and {_name(key)} were both told that they made revision {one.revision} of "
                    f"{one.node_id}"
                )

    def _add_maybe(self, key: Key, call: Call) -> None:
        for write in call.writes:
            step = _Step(
                key=key,
                began=call.began,
                ended=math.inf,
                expected=write.expected,
                status=write.status,
                text=write.text,
            )
            if write.node_id:
                self._maybe[write.node_id].append(step)
            elif write.text is not None:
                self._nameless[write.text].append(step)

    def _steps(self, node_id: str, revision: int) -> list[_Step]:
        """What may have made a revision: the one that is known to have, or each that may."""
        made = self._made.get(node_id, {}).get(revision)
        if made is not None:
            return [made]
        return [step for step in self._maybe.get(node_id, ()) if step.expected in (None, revision - 1)]

    def _texts(self, node_id: str, revision: int, step: _Step) -> set[str | None]:
        """The texts that a revision may have: its own, or those of the one before it."""
        while step.text is None and revision > 1:
            revision -= 1
            before = self._steps(node_id, revision)
            if len(before) != 1:
                return {text for one in before for text in self._texts(node_id, revision, one)}
            step = before[0]
        return {step.text}

    def _most(self, node_id: str) -> int:
        """The highest revision that there may be: known ones, and as many more as commands in doubt can add."""
        known = max(self._made.get(node_id, {}), default=0)
        compared = [step.expected + 1 for step in self._maybe.get(node_id, ()) if step.expected is not None]
        free = sum(step.expected is None for step in self._maybe.get(node_id, ()))
        return max([known, *compared]) + free


def _name(key: Key) -> str:
    return f"{key[0]} {key[1]}"
