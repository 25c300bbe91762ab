"""Everything that can be known of one namespace afterwards, held against everything that its callers know."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from durable_memory_client import ChangeSet, DurableMemoryError, MemoryNamespace, Node, UsageSummary, WatchedChange
from tests.qualification.checks import contention, kernel, sessions
from tests.qualification.checks import recall as recalls
from tests.qualification.model.nodes import NodesModel
from tests.qualification.model.replay import Replay
from tests.qualification.recorder.history import History, Key, Outcome
from tests.qualification.report.results import Finding

Found: TypeAlias = Callable[[str, int, Iterable[str]], None]
"""Takes what a check found: its name, how many things it looked at, what is wrong (`Stage.found`)."""

_PAGE_SIZE = 500
_WATCHED_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A namespace as the service has it, when nobody writes any more."""

    changes: Sequence[ChangeSet]
    watched: Sequence[WatchedChange]
    nodes: Sequence[Node]
    usage: Sequence[UsageSummary]
    unwatched: str = ""
    """What kept a watch from telling all of it, if something did."""

    @property
    def committed(self) -> Mapping[Key, float]:
        """When each change set was committed, in seconds by the clock on the wall."""
        return {(one.method, one.idempotency_key): one.committed_at.timestamp() for one in self.changes}


async def read_all(memory: MemoryNamespace, watched: Sequence[WatchedChange] | None = None) -> Kept:
    """Read it whole. `watched` is what a watch was told while it happened; None: it is watched now, from its start, as
    far as that goes."""
    changes = [change async for change in memory.list_change_sets(page_size=_PAGE_SIZE)]
    unwatched = ""
    if watched is None:
        watched = seen = list[WatchedChange]()
        try:
            async with asyncio.timeout(_WATCHED_SECONDS):
                await _watch(memory, changes, seen)
        except (DurableMemoryError, TimeoutError) as error:
            unwatched = f"after {len(seen)} change sets the watch got no further: {type(error).__name__}: {error}"
    return Kept(
        changes=changes,
        watched=watched,
        nodes=await memory.snapshot().all(),
        usage=[one async for one in memory.usage(page_size=_PAGE_SIZE)],
        unwatched=unwatched,
    )


async def _watch(memory: MemoryNamespace, changes: Sequence[ChangeSet], seen: list[WatchedChange]) -> None:
    """Watch all of these changes."""
    if not changes:
        return
    async with memory.watch(after=0, include_nodes=True) as watch:
        async for change in watch:
            seen.append(change)
            if change.change_token.namespace_revision >= changes[-1].namespace_revision:
                return


def judge(
    history: History,
    kept: Kept,
    texts: Mapping[Key, str] | None = None,
    *,
    restarts: Sequence[sessions.Restart] = (),
) -> list[Finding]:
    """What each check finds. A check of something that there was none of is left out.

    `texts` has what each command's text begins with, of those who have still got them. `restarts` of servers happened
    meanwhile; where somebody resumes sessions, what is to hold across them has to have been tried.
    """
    calls, changes = history.calls, kept.changes
    acknowledged = sum(call.outcome is Outcome.OK for call in calls)
    told = [*history.readings, *kernel.tokens(calls)]
    stale = [
        *kernel.stale_readings(calls, history.readings),
        *kernel.vanished_readings([*history.readings, *kernel.tokens_of_no_change(calls)], changes),
    ]
    found = [
        _finding("acknowledged writes are kept", acknowledged, kernel.lost_acknowledgements(calls, changes)),
        _finding("acknowledged node revisions are kept", acknowledged, kernel.lost_revisions(calls, changes)),
        _finding("no write is applied twice", len(changes), kernel.applied_twice(changes)),
        _finding("refused writes are not there", len(kernel.refused(calls)), kernel.resurrected(calls, changes)),
        _finding("nobody else wrote", len(changes), kernel.unexplained(calls, changes)),
        _finding("repetitions get the first answer", len(kernel.repetitions(calls)), kernel.changed_answers(calls)),
        _finding("namespace revisions rise by one", len(changes), kernel.gaps(changes)),
        _finding("node revisions rise by one", len(changes), kernel.skipped_revisions(changes)),
        _finding("the chain of digests is whole", len(changes), kernel.broken_chain(changes)),
        _finding("revisions follow real time", acknowledged, kernel.out_of_order(calls)),
        _finding("change tokens are not stale", len(told), stale),
        _finding("one compare-and-set winner", len(contention.contests(calls)), kernel.several_winners(calls)),
        _finding(
            "what is named is what is compared",
            contention.compared(calls, changes),
            contention.compared_with_another(calls, changes),
        ),
        _finding("conflicts have a cause", len(kernel.conflicts(calls)), kernel.nobody_won(calls)),
        _finding("no defect was reported", len(calls), kernel.defects(calls)),
        _finding("one history", len(calls), kernel.several_histories(calls, history.revisions_read)),
        _finding("watches tell whole change sets", len(kept.watched), _watch_problems(kept)),
        _finding("texts are their commands'", len(kept.watched), _text_problems(history, kept, texts or {})),
        _finding("a snapshot is the last state", len(kept.nodes), _snapshot_problems(kept)),
    ]
    if history.answered:
        found += _recall_findings(history, kept)
    if history.recorded:
        found += [
            _finding(
                "admissions and uses are on record once",
                len(history.recorded),
                recalls.miscounted(history.recorded, calls, kept.usage),
            ),
            _finding("access events are of one run", len(history.recorded), recalls.shared_events(history.recorded)),
        ]
    if history.begun:
        found.append(_finding("runs are never taken for others", len(history.begun), _run_problems(history)))
    if history.resumed:
        found += _session_findings(history, restarts)
    return found


def together(findings: Iterable[Sequence[Finding]]) -> list[Finding]:
    """The findings of several namespaces, check by check."""
    looked_at: dict[str, int] = {}
    problems: dict[str, list[str]] = {}
    for of_one in findings:
        for finding in of_one:
            looked_at[finding.check] = looked_at.get(finding.check, 0) + finding.looked_at
            problems.setdefault(finding.check, []).extend(finding.problems)
    return [Finding(check=check, looked_at=count, problems=problems[check]) for check, count in looked_at.items()]


def _recall_findings(history: History, kept: Kept) -> list[Finding]:
    answered = history.answered
    model, replay = NodesModel(history.calls), Replay(kept.changes, history.calls)
    hits = sum(len(recall.hits) for recall in answered)
    named = sum(map(recalls.is_by_words, answered))
    found = [
        _finding("no recall returns a wrong item", hits, recalls.wrong_items(answered, replay)),
        _finding("no recall returns the impossible", hits, recalls.impossible_items(answered, model)),
        _finding("no recall misses what it names", named, recalls.missing_items(answered, model, replay)),
        _finding("recalls are not stale", len(answered), recalls.stale_recalls(history)),
        _finding(
            "recalls are not from the future",
            len(answered),
            recalls.recalls_from_the_future(answered, history.calls, kept.changes),
        ),
        _finding("no mode turns into another", len(answered), recalls.other_modes(answered)),
    ]
    by_meaning = recalls.hits_by_meaning(answered)
    if by_meaning:
        hits = sum(len(recall.hits) for recall in by_meaning)
        wrong = recalls.wrong_items(by_meaning, replay)
        found.append(_finding("no recall by meaning returns a wrong item", hits, wrong))
    covered = sum(map(recalls.is_by_meaning, answered))
    if covered:
        missing = recalls.missing_meanings(answered, model, replay)
        found.append(_finding("no recall by meaning misses what it names", covered, missing))
    return found


def _run_problems(history: History) -> list[str]:
    return [*sessions.collapsed_runs(history.begun), *sessions.wrong_runs(history.begun_again, history.recorded)]


def _session_findings(history: History, restarts: Sequence[sessions.Restart]) -> list[Finding]:
    own, drifted = sessions.own_ones(history.resumed), sessions.drifted_ones(history.resumed)
    found = [
        _finding("own bindings resume exactly", len(own), sessions.wrong_bindings(history.resumed)),
        _finding("a binding that drifted is refused as that", len(drifted), sessions.drift_accepted(history.resumed)),
    ]
    if restarts:
        again = sessions.after_a_restart(history.begun_again, restarts)
        problems = sessions.wrong_runs(again, history.recorded)
        found.append(_finding("run ids begun again after a restart are runs of their own", len(again), problems))
    return found


def _watch_problems(kept: Kept) -> list[str]:
    found = [*filter(None, [kept.unwatched]), *kernel.torn(kept.watched)]
    if [change.change_set for change in kept.watched] != list(kept.changes):
        found.append(f"{len(kept.watched)} change sets were watched, and others are listed ({len(kept.changes)})")
    return found


def _text_problems(history: History, kept: Kept, texts: Mapping[Key, str]) -> list[str]:
    return [*kernel.mixed_up(kept.watched, texts), *kernel.other_texts(kept.watched, history.calls)]


def _snapshot_problems(kept: Kept) -> list[str]:
    """The snapshot has each node at its last revision, and no other."""
    last = {one.citation.node_id: one.citation for change in kept.changes for one in change.changes}
    held = {node.id: node.citation for node in kept.nodes}
    return [
        f"{node_id} is {last.get(node_id, 'not there')}, and {held.get(node_id, 'not there')} in the snapshot"
        for node_id in sorted(last.keys() | held.keys())
        if last.get(node_id) != held.get(node_id)
    ]


def _finding(check: str, looked_at: int, problems: Sequence[str]) -> Finding:
    return Finding(check=check, looked_at=looked_at, problems=tuple(problems))
