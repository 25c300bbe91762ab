"""What must hold of recalls and admissions. Each check returns what is wrong, by ids, revisions and digests.

A recall answers for one namespace revision, which is not behind what was acknowledged before the recall began and not
ahead of what had been sent when it ended. What it returns was ACTIVE and current at that revision, and it misses
nothing that its question names.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from durable_memory_client import ChangeSet, NodeRevision, UsageSummary
from tests.qualification.checks.kernel import stale_readings
from tests.qualification.model.nodes import ACTIVE, NodesModel, State
from tests.qualification.model.replay import Replay
from tests.qualification.recorder.history import (
    Call,
    Fate,
    History,
    Recalled,
    Recorded,
    by_command,
    fate,
)

_BY_WORDS = frozenset({"LEXICAL", "HYBRID"})
_BY_MEANING = frozenset({"SEMANTIC", "HYBRID"})


def wrong_items(recalls: Iterable[Recalled], replay: Replay) -> list[str]:
    """Every hit was an ACTIVE node's current revision, with its text, at the revision that the recall is for."""
    found = []
    for recall in recalls:
        for hit in recall.hits:
            kept = replay.at(hit.node_id, recall.revision)
            said = f"{_said(recall)} returned revision {hit.revision} of {hit.node_id}"
            if kept is None:
                found.append(f"{said}, and there was no such node")
            elif kept.status != ACTIVE:
                found.append(f"{said}, and it was {kept.status} (revision {kept.revision})")
            elif (kept.revision, kept.valid_from) != (hit.revision, hit.valid_from):
                found.append(f"{said} (of {hit.valid_from}), and it was at {kept.revision} (of {kept.valid_from})")
            elif kept.content_digest != hit.content_digest or kept.text not in (None, hit.text):
                found.append(f"{said} with another text ({hit.text}) than that revision's ({kept.text})")
    return found


def impossible_items(recalls: Iterable[Recalled], model: NodesModel) -> list[str]:
    """Every hit is one that the callers' own knowledge allows, whatever the service says of its history."""
    return [
        f"{_said(recall)} returned {hit.node_id} at revision {hit.revision} with text {hit.text}, which it cannot have "
        f"been from {recall.began:.3f} to {recall.ended:.3f}"
        for recall in recalls
        for hit in recall.hits
        if not model.may_have(hit.node_id, State(hit.revision, ACTIVE, hit.text), recall.began, recall.ended)
    ]


def missing_items(recalls: Iterable[Recalled], model: NodesModel, replay: Replay) -> list[str]:
    """What a question names by its own word is found, if it was there for certain: by the callers' knowledge, or at
    that revision."""
    return [problem for recall in recalls if is_by_words(recall) for problem in _missing(recall, "", model, replay)]


def missing_meanings(recalls: Iterable[Recalled], model: NodesModel, replay: Replay) -> list[str]:
    """The same of those whose vectors all are there: the search by meaning finds it, whatever its words found."""
    return [
        problem
        for recall in recalls
        if is_by_meaning(recall)
        for problem in _missing(_by_meaning(recall), " by meaning", model, replay)
    ]


def is_by_words(recall: Recalled) -> bool:
    """Whether what the question names had to be found by its words."""
    return bool(recall.asked_node) and not recall.reason and recall.mode_used in _BY_WORDS


def is_by_meaning(recall: Recalled) -> bool:
    """Whether what the question names had to be found by its meaning: vectors were searched, and every node had one."""
    searched = recall.mode_used in _BY_MEANING and not recall.degradation and recall.unindexed == 0
    return bool(recall.asked_node) and not recall.reason and searched


def hits_by_meaning(recalls: Iterable[Recalled]) -> list[Recalled]:
    """The recalls with those of their hits that the search by meaning found; without the recalls that have none."""
    found = map(_by_meaning, recalls)
    return [recall for recall in found if recall.hits]


def other_modes(recalls: Iterable[Recalled]) -> list[str]:
    """A mode that was asked for is never turned into another; AUTO is HYBRID, or says why it is LEXICAL."""
    found = []
    for recall in recalls:
        of_auto = "LEXICAL" if recall.degradation else "HYBRID"
        expected = of_auto if recall.mode_asked == "AUTO" else recall.mode_asked
        if recall.mode_asked and recall.mode_used != expected:
            found.append(f"{_said(recall)} was answered by {recall.mode_used} ({recall.degradation or 'not degraded'})")
    return found


def stale_recalls(history: History) -> list[str]:
    """A recall is for a revision that is not behind what anybody knew before it began, by answers or by recalls."""
    known = history.revisions_read
    return [f"{problem} (tokens and recalls)" for problem in stale_readings(history.calls, known)]


def recalls_from_the_future(
    recalls: Iterable[Recalled], calls: Iterable[Call], changes: Iterable[ChangeSet]
) -> list[str]:
    """A recall is for a revision that exists, and whose command had been sent when the recall ended."""
    sent = {key: attempts[0].began for key, attempts in by_command(calls).items()}
    began = [0.0, *(sent.get((change.method, change.idempotency_key), math.inf) for change in changes)]
    return [
        f"{_said(recall)} is for a revision that cannot have been there by {recall.ended:.3f}"
        for recall in recalls
        if recall.revision >= len(began) or began[recall.revision] > recall.ended
    ]


def miscounted(recorded: Iterable[Recorded], calls: Iterable[Call], usage: Iterable[UsageSummary]) -> list[str]:
    """What was admitted and used is on record, once. Commands that are in doubt may have added to it."""
    events: dict[bool, dict[NodeRevision, set[str]]] = {False: defaultdict(set), True: defaultdict(set)}
    for one in recorded:
        events[one.used][NodeRevision(one.node_id, one.revision)].add(one.event_id)
    fates = {key: fate(attempts) for key, attempts in by_command(calls).items()}
    doubtful = Counter(method for (method, _), known in fates.items() if known is Fate.UNKNOWN)
    spare = {False: doubtful["ActiveRecall"] + doubtful["AdmitMemories"], True: doubtful["RecordUse"]}
    counted = {one.node_revision: one for one in usage}
    found = []
    for revision in {*counted, *events[False], *events[True]}:
        summary = counted.get(revision)
        for used, what in ((False, "admissions"), (True, "uses")):
            kept = 0 if summary is None else (summary.use_count if used else summary.admission_count)
            known = len(events[used].get(revision, ()))
            if not known <= kept <= known + spare[used]:
                of = f"revision {revision.revision} of {revision.node_id}"
                found.append(f"{of} has {kept} {what}, and {known} were acknowledged")
    return sorted(found)


def shared_events(recorded: Iterable[Recorded]) -> list[str]:
    """An access event is one node revision's, in one assembly, of one invocation of a run."""
    places: dict[str, set[tuple[str, str, str, str, str, int]]] = defaultdict(set)
    contexts: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for one in recorded:
        run = one.session_id, one.run_id, one.incarnation
        places[one.event_id].add((*run, one.context_id, one.node_id, one.revision))
        contexts[one.context_id].add(run)
    return [
        *(f"event {event_id} is of several: {sorted(of)}" for event_id, of in places.items() if len(of) > 1),
        *(
            f"context {context_id} is of several runs: {sorted(of)}"
            for context_id, of in contexts.items()
            if len(of) > 1
        ),
    ]


def _missing(recall: Recalled, how: str, model: NodesModel, replay: Replay) -> list[str]:
    returned = {(hit.node_id, hit.revision) for hit in recall.hits}
    node_id = recall.asked_node
    known = model.certain(node_id, recall.began, recall.ended)
    if known is not None and _is_asked(recall, known.status, known.text):
        if (node_id, known.revision) in returned:
            return []
        return [f"{_said(recall)} misses {node_id}{how}, which was ACTIVE at revision {known.revision}"]
    kept = replay.at(node_id, recall.revision)
    if kept is None or not _is_asked(recall, kept.status, kept.text) or (node_id, kept.revision) in returned:
        return []
    return [f"{_said(recall)} misses {node_id}{how}, which was ACTIVE at revision {kept.revision} by the history"]


def _by_meaning(recall: Recalled) -> Recalled:
    return replace(recall, hits=tuple(hit for hit in recall.hits if hit.by_meaning))


def _is_asked(recall: Recalled, status: str, text: str | None) -> bool:
    return status == ACTIVE and text == recall.asked_text


def _said(recall: Recalled) -> str:
    return f"{recall.method} {recall.mode_asked} of {recall.caller} at {recall.revision}"
