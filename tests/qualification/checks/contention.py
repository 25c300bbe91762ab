"""Who wanted the same revision of the same node, in whatever process, and who got it, by the service's own history."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from durable_memory_client import ChangeSet
from tests.qualification.recorder.history import Call, Key, Outcome, by_command

_MOVED_ON = frozenset({"REVISION_CONFLICT", "NODE_ALREADY_EXISTS"})
"""Why a command is refused whose node is not at the revision that it names."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node at a revision; at 0 it does not exist yet."""

    node_id: str
    revision: int


@dataclass(frozen=True, slots=True)
class Contest:
    """What several commands compared with, and the attempts of each of them."""

    place: Place
    contenders: Mapping[Key, Sequence[Call]]

    @property
    def is_race(self) -> bool:
        """Whether two processes were at it at the same time."""
        calls = sorted(itertools.chain.from_iterable(self.contenders.values()), key=lambda call: call.began)
        return any(
            later.began < earlier.ended and later.process != earlier.process
            for earlier, later in itertools.combinations(calls, 2)
        )


def contests(calls: Iterable[Call]) -> list[Contest]:
    """The revisions of nodes with which several commands compared, in the order in which that began."""
    places: dict[Place, dict[Key, Sequence[Call]]] = defaultdict(dict)
    for key, attempts in by_command(calls).items():
        for write in attempts[0].writes:
            if write.node_id and write.expected is not None:
                places[Place(write.node_id, write.expected)][key] = attempts
    return [Contest(place, contenders) for place, contenders in places.items() if len(contenders) > 1]


def winners_that_are_not_one(contested: Iterable[Contest], changes: Iterable[ChangeSet]) -> list[str]:
    """One of them moves the node on. None does only if somebody else has, or if some of them never got that far."""
    made = _made(changes)
    reached = {place for places in made.values() for place in places}
    found = []
    for contest in contested:
        place = contest.place
        after = Place(place.node_id, place.revision + 1)
        won = [key for key in contest.contenders if after in made.get(key, ())]
        if len(won) > 1:
            found.append(f"{_named(place)} was left by {len(won)} commands: {', '.join(map(_name, won))}")
        elif after not in reached and all(map(_lost, contest.contenders.values())):
            found.append(
                f"{_named(place)} was left by none of {len(contest.contenders)} commands, and all had conflicts"
            )
    return found


def compared_with_another(calls: Iterable[Call], changes: Iterable[ChangeSet]) -> list[str]:
    """A command that names the revision of a node makes the next one, and never one after it."""
    return [
        f"{_name(key)} named revision {named} of {place.node_id}, and made {place.revision}"
        for key, named, place in _named_and_made(calls, changes)
        if place.revision != named + 1
    ]


def compared(calls: Iterable[Call], changes: Iterable[ChangeSet]) -> int:
    """How many revisions were made by commands that name the one before it."""
    return len(_named_and_made(calls, changes))


def _named_and_made(calls: Iterable[Call], changes: Iterable[ChangeSet]) -> list[tuple[Key, int, Place]]:
    """Of each command the revision of a node that it named, and the one that it made."""
    made = _made(changes)
    found = []
    for key, attempts in by_command(calls).items():
        named = {write.node_id: write.expected for write in attempts[0].writes if write.node_id and write.expected}
        found += [(key, named[place.node_id], place) for place in made.get(key, ()) if place.node_id in named]
    return found


def winners(contested: Iterable[Contest], changes: Iterable[ChangeSet]) -> Counter[str]:
    """How many of them each process won."""
    made = _made(changes)
    return Counter(
        attempts[0].process
        for contest in contested
        for key, attempts in contest.contenders.items()
        if Place(contest.place.node_id, contest.place.revision + 1) in made.get(key, ())
    )


def absent(races: Sequence[Contest], changes: Iterable[ChangeSet], processes: Collection[str]) -> list[str]:
    """Each process takes part in a race, and it is not always the same one that wins."""
    present = {attempts[0].process for race in races for attempts in race.contenders.values()}
    found = [f"{process} took part in no race" for process in sorted(set(processes) - present)]
    won = winners(races, changes)
    if len(won) < 2:
        found.append(f"of {len(races)} races all that were won were won by {', '.join(won) or 'nobody'}")
    return found


def _made(changes: Iterable[ChangeSet]) -> Mapping[Key, Collection[Place]]:
    """What each command made."""
    return {
        (change.method, change.idempotency_key): [
            Place(one.citation.node_id, one.citation.node_revision) for one in change.changes
        ]
        for change in changes
    }


def _lost(attempts: Sequence[Call]) -> bool:
    """Whether the last attempt says that somebody else was there before."""
    return attempts[-1].outcome is Outcome.REFUSED and attempts[-1].reason in _MOVED_ON


def _named(place: Place) -> str:
    return f"revision {place.revision} of {place.node_id}"


def _name(key: Key) -> str:
    return f"{key[0]} {key[1]}"
