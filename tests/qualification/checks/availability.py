"""How long nothing worked, as all the callers together saw it, and how long what worked took."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tests.qualification.recorder.history import History, Outcome, by_command, came_through
from tests.qualification.report.results import Distribution, distribution
from tests.qualification.report.timeline import Event, Lane


def writes(histories: Iterable[History]) -> list[float]:
    """When changes came through, of several namespaces: each once, when its caller first knew. A repetition is
    answered from what is on record, also where nobody can write anything new."""
    commands = (attempts for history in histories for attempts in by_command(history.calls).values())
    return sorted(call.ended for call in map(came_through, commands) if call is not None)


def recalls(history: History) -> list[float]:
    """When recalls were answered."""
    return sorted(recall.ended for recall in history.answered)


def worst_gap(successes: Sequence[float], began: float, ended: float) -> float:
    """The longest time in seconds without a success, of those that began in this window; `successes` are in order.

    The window is one in which callers wanted something all the time. A gap begins with the window at the earliest and
    ends with a success, also with one after the window; without one, with the window.
    """
    longest, last = 0.0, began
    for at in successes[bisect.bisect_left(successes, began) :]:
        if last > ended:
            break
        longest = max(longest, at - last)
        last = at
    if last <= ended and (not successes or successes[-1] < ended):
        longest = max(longest, ended - last)
    return longest


def by_fault(
    successes: Sequence[float], events: Iterable[Event], *, after: float, until: float
) -> Mapping[str, Sequence[float]]:
    """The worst gap from each fault's beginning to `after` seconds past its end, by the fault's label.

    What lasts into the next fault is its own from there on. `until` is when traffic stopped.
    """
    faults = _faults(events)
    gaps: dict[str, list[float]] = defaultdict(list)
    for event in faults:
        if event.began >= until:
            break
        gaps[event.label].append(_gap(successes, faults, event, event.began, _end(event), after, until))
    return gaps


def once_mended(
    successes: Sequence[float], events: Iterable[Event], *, after: float, until: float
) -> Mapping[str, Sequence[float]]:
    """The same from the time on at which everything was mended, the fault and those that it overlaps: how long that
    takes is the harness's doing, which starts processes and copies databases."""
    faults = _faults(events)
    gaps: dict[str, list[float]] = defaultdict(list)
    for place, event in enumerate(faults):
        mended = _end(event)
        for other in faults[place + 1 :]:
            if other.began >= mended:
                break
            mended = max(mended, _end(other))
        if mended >= until:
            continue
        gaps[event.label].append(_gap(successes, faults, event, mended, mended, after, until))
    return gaps


def _gap(
    successes: Sequence[float],
    faults: Sequence[Event],
    event: Event,
    began: float,
    ended: float,
    after: float,
    until: float,
) -> float:
    """From `began` to `after` seconds past `ended`, or to the next fault."""
    following = min((other.began for other in faults if other.began >= ended and other is not event), default=until)
    end = min(ended + after, until, following)
    cut = [*successes[: bisect.bisect_left(successes, end)], end] if end == following < until else successes
    return worst_gap(cut, began, end)


def _faults(events: Iterable[Event]) -> list[Event]:
    return sorted((event for event in events if event.lane is Lane.FAULT), key=lambda event: event.began)


def _end(event: Event) -> float:
    return event.began if event.ended is None else event.ended


def longer_than(bound: float, what: str, gaps: Mapping[str, Sequence[float]]) -> list[str]:
    """The faults after which nothing worked for longer than `bound` seconds."""
    return [
        f"no {what} for {gap:.1f} s after {label}, and {bound:.1f} s is the most"
        for label, of in gaps.items()
        for gap in of
        if gap > bound
    ]


def latencies(history: History) -> Mapping[str, Distribution]:
    """Of the attempts that succeeded, in seconds, by method."""
    return distributed(seconds_taken(history))


def distributed(seconds: Mapping[str, Sequence[float]]) -> Mapping[str, Distribution]:
    """Of what `seconds_taken` gives, of one history or of several together."""
    found = {method: distribution(values, "seconds") for method, values in sorted(seconds.items())}
    return {method: one for method, one in found.items() if one is not None}


def seconds_taken(history: History) -> Mapping[str, Sequence[float]]:
    """How long each attempt that succeeded took, by method."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for call in history.calls:
        if call.outcome is Outcome.OK:
            seconds[call.method].append(call.ended - call.began)
    for recall in history.recalls_alone:
        if recall.reason:
            continue
        seconds[f"{recall.method} {recall.mode_used}"].append(recall.ended - recall.began)
    return seconds
