"""What the harness itself must have done before anything else is worth looking at.

A run without traffic, with clocks that jump or with two commands under one name shows nothing, however green it is.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tests.qualification.recorder.history import (
    AFTERWARDS,
    Call,
    History,
    Key,
    Outcome,
    Reading,
    Recalled,
    by_command,
    came_through,
)

_CLOCK_DRIFT_SECONDS = 2.0


def problems(
    history: History,
    *,
    seconds: float,
    least_rate: float,
    last_fault: float | None = None,
    callers: Iterable[str] = (),
) -> list[str]:
    """Everything that makes a history prove too little.

    `seconds` is how long there was traffic, `least_rate` how many answers it must have had per second, `last_fault`
    when the last fault had been mended, if there was one, `callers` who must have done something.
    """
    return [
        *nothing_happened(history),
        *too_little_traffic(history, seconds, least_rate),
        *nothing_after(history, last_fault),
        *idle_callers(history, callers),
        *clocks_that_jump(history),
        *names_given_twice(history.calls),
        *out_of_turn(history),
    ]


def nothing_happened(history: History) -> list[str]:
    """Something was acknowledged."""
    if not history.calls:
        return ["nothing was called"]
    if not any(call.effect is not None and call.effect.revision for call in history.calls):
        return [f"of {len(history.calls)} calls none changed anything"]
    return []


def too_little_traffic(history: History, seconds: float, least_rate: float) -> list[str]:
    """There were as many answers as the rate asks for: writes and recalls that succeeded while there was traffic."""
    answered = [call for call in history.calls if call.outcome is Outcome.OK and call.caller != AFTERWARDS]
    answers = len(answered) + sum(not recall.reason for recall in history.recalls_alone)
    wanted = seconds * least_rate
    if answers >= wanted:
        return []
    return [f"too little traffic: {answers} answers in {seconds:.1f} s, and {wanted:.0f} were to be"]


def nothing_after(history: History, last_fault: float | None) -> list[str]:
    """A change came through that nobody had asked for before the last fault had been mended."""
    if last_fault is None:
        return []
    later = (attempts for attempts in by_command(history.calls).values() if attempts[0].began > last_fault)
    return [] if any(map(came_through, later)) else ["nothing new succeeded after the last fault"]


def idle_callers(history: History, callers: Iterable[str]) -> list[str]:
    """Everybody who was to do something got an answer."""
    busy = {call.caller.partition("/")[0] for call in history.calls if call.outcome is Outcome.OK}
    busy |= {one.caller for one in history.answered} | {one.caller for one in history.readings}
    busy |= {one.caller for one in history.resumed if one.got}
    return [f"{caller} got no answer" for caller in sorted(set(callers) - busy)]


def clocks_that_jump(history: History) -> list[str]:
    """No end is before its beginning, nothing before its process, and both clocks of a process keep step."""
    found = []
    spans: list[Call | Reading | Recalled] = [*history.calls, *history.readings, *history.recalls]
    started = {one.process: one for one in history.processes}
    for one in spans:
        if one.ended < one.began:
            found.append(f"something of {one.caller} ended {one.began - one.ended:.3f} s before it began")
        process = started.get(one.process)
        if process is not None and one.began < process.began:
            found.append(f"something of {one.caller} began before its process did")
    for call in history.calls:
        process = started.get(call.process)
        if process is not None:
            drift = (call.wall - process.wall) - (call.began - process.began)
            if abs(drift) > _CLOCK_DRIFT_SECONDS:
                found.append(f"the clock on the wall of {call.process} went {drift:.1f} s away from the other")
                break
    return found


def names_given_twice(calls: Iterable[Call]) -> list[str]:
    """A method and request id name one command, of one process."""
    commands: dict[Key, set[tuple[str, int]]] = defaultdict(set)
    for call in calls:
        commands[call.key].add((call.process, call.command))
    return [
        f"{key[0]} {key[1]} is the name of {len(of)} commands: {sorted(of)}"
        for key, of in commands.items()
        if len(of) > 1
    ]


def out_of_turn(history: History) -> list[str]:
    """Each caller does one thing at a time, and its records are in the order in which it did them."""
    found = []
    by_caller: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    spanned: list[Call | Recalled] = [*history.calls, *history.recalls_alone]
    for one in spanned:
        if one.caller:
            by_caller[one.process, one.caller].append((one.began, one.ended))
    for (_, caller), spans in by_caller.items():
        spans.sort()
        for (_, earlier_end), (began, _) in itertools.pairwise(spans):
            if began < earlier_end:
                found.append(f"{caller} began something {earlier_end - began:.3f} s before it was done with the last")
    return found


def counted(history: History) -> Mapping[str, int]:
    """How much there is of what, for reports."""
    return {
        "calls": len(history.calls),
        "recalls": len(history.recalls),
        "change_tokens": len(history.readings),
        "admissions_and_uses": len(history.recorded),
        "sessions_resumed": len(history.resumed),
        "runs_begun_again": len(history.begun_again),
        "processes": len(history.processes),
    }
