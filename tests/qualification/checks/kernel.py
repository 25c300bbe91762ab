"""What must hold between what callers know and what the service has kept. Each check returns what is wrong.

`calls` and `readings` are one namespace's, all of them; `changes` is its whole history as it was listed after them.
Where commands go on while the history is listed, the checks of what must not be there take the calls after it, those
under way as unknown.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from durable_memory_client import ChangeSet, WatchedChange
from tests.qualification.model.nodes import NodesModel
from tests.qualification.model.replay import sent_texts
from tests.qualification.recorder.history import Call, Fate, Key, Outcome, Reading, by_command, fate
from tests.qualification.traffic.wording import digest_of

_CHAIN_START = "0" * 64
_DEFECTS = frozenset({"INTERNAL", "DATA_CORRUPTED", "IDEMPOTENCY_KEY_REUSED", "UNIMPLEMENTED"})


def problems(
    calls: Sequence[Call],
    changes: Sequence[ChangeSet],
    readings: Sequence[Reading] = (),
    *,
    later: Sequence[Call] | None = None,
) -> list[str]:
    """Everything that is wrong. `later`: the calls after the listing, if there were more."""
    later = calls if later is None else later
    return [
        *gaps(changes),
        *broken_chain(changes),
        *applied_twice(changes),
        *lost_acknowledgements(calls, changes),
        *lost_revisions(calls, changes),
        *skipped_revisions(changes),
        *several_winners(calls),
        *defects(calls),
        *nobody_won(later),
        *resurrected(later, changes),
        *unexplained(later, changes),
        *changed_answers(calls),
        *out_of_order(calls),
        *stale_readings(calls, readings),
        *vanished_readings([*readings, *tokens_of_no_change(calls)], changes),
        *several_histories(calls, readings),
    ]


def gaps(changes: Sequence[ChangeSet]) -> list[str]:
    """Namespace revisions are 1, 2, 3 and so on."""
    return [
        f"change set {place} has namespace revision {change.namespace_revision}"
        for place, change in enumerate(changes, start=1)
        if change.namespace_revision != place
    ]


def broken_chain(changes: Sequence[ChangeSet]) -> list[str]:
    """Each chain digest is over the one before it, the revision and the digest of the change set."""
    found = []
    previous = _CHAIN_START
    for change in changes:
        if change.chain_digest != chained(previous, change.namespace_revision, change.digest):
            found.append(f"the chain breaks at namespace revision {change.namespace_revision}")
        previous = change.chain_digest
    return found


def chained(previous: str, namespace_revision: int, digest: str) -> str:
    """The chain digest by its definition, written a second time: SHA-256 over parts with their lengths before them."""
    hasher = hashlib.sha256()
    for part in ("durablememory.dev/change-set-chain/v1", previous, str(namespace_revision), digest):
        hasher.update(len(part.encode()).to_bytes(8, "big") + part.encode())
    return hasher.hexdigest()


def applied_twice(changes: Sequence[ChangeSet]) -> list[str]:
    """A command makes one change set at most."""
    counts = Counter(map(_key, changes))
    return [f"{_name(key)} was applied {count} times" for key, count in counts.items() if count > 1]


def lost_acknowledgements(calls: Sequence[Call], changes: Sequence[ChangeSet]) -> list[str]:
    """What was acknowledged is there, where the answer said; what was acknowledged as no change made none."""
    made = {_key(change): change.namespace_revision for change in changes}
    found = []
    for call in calls:
        if call.effect is None or made.get(call.key) == call.effect.revision:
            continue
        there = f"is at {made[call.key]}" if call.key in made else "is not there"
        found.append(f"{_name(call.key)} was acknowledged at namespace revision {call.effect.revision}, and {there}")
    return found


def lost_revisions(calls: Sequence[Call], changes: Sequence[ChangeSet]) -> list[str]:
    """The node revisions that an answer names are those of its change set, no more and no fewer."""
    made = {
        _key(change): {(one.citation.node_id, one.citation.node_revision) for one in change.changes}
        for change in changes
    }
    return [
        f"{_name(call.key)} was told that it made {sorted(told)}, and its change set has {sorted(made[call.key])}"
        for call in calls
        if call.effect is not None
        and call.key in made
        and (told := {(one.node_id, one.revision) for one in call.effect.made}) != made[call.key]
        and told
    ]


def skipped_revisions(changes: Sequence[ChangeSet]) -> list[str]:
    """Each node is at 1, 2, 3 and so on: a revision has one command that made it."""
    found = []
    latest: dict[str, int] = {}
    for change in changes:
        for one in change.changes:
            node_id, revision = one.citation.node_id, one.citation.node_revision
            if revision != latest.get(node_id, 0) + 1:
                at = change.namespace_revision
                found.append(f"{node_id} went from revision {latest.get(node_id, 0)} to {revision} at {at}")
            latest[node_id] = revision
    return found


def several_winners(calls: Sequence[Call]) -> list[str]:
    """Of the commands that compare with one revision of a node, one is told that it was applied."""
    return list(NodesModel(calls).contradictions)


def nobody_won(calls: Sequence[Call]) -> list[str]:
    """A command that was refused because a node had moved on was right: there is one that may have moved it."""
    model = NodesModel(calls)
    return [
        f"{_name(call.key)} was refused because {node_id} had left revision {expected}, which nobody did"
        for call, node_id, expected in conflicts(calls)
        if not model.may_be_written(node_id, expected + 1)
    ]


def conflicts(calls: Iterable[Call]) -> list[tuple[Call, str, int]]:
    """The refusals of commands whose node had moved on, and which node had left which revision: where it is certain,
    because the command compares one alone."""
    found = []
    for call in calls:
        compared = [write for write in call.writes if write.expected]
        if call.reason == "REVISION_CONFLICT" and call.outcome is Outcome.REFUSED and len(compared) == 1:
            (write,) = compared
            if write.node_id and write.expected:
                found.append((call, write.node_id, write.expected))
    return found


def defects(calls: Sequence[Call]) -> list[str]:
    """There are errors that no caller may ever get, whatever happens to the servers and to what they depend on."""
    return [f"{_name(call.key)} got {call.reason}" for call in calls if call.reason in _DEFECTS]


def resurrected(calls: Sequence[Call], changes: Sequence[ChangeSet]) -> list[str]:
    """What was refused for certain is not there."""
    commands = refused(calls)
    return [
        f"{_name(_key(change))} was refused ({commands[_key(change)][-1].reason}), and is there at namespace revision "
        f"{change.namespace_revision}"
        for change in changes
        if _key(change) in commands
    ]


def refused(calls: Iterable[Call]) -> Mapping[Key, Sequence[Call]]:
    """The attempts of the commands that were refused for certain."""
    return {key: attempts for key, attempts in by_command(calls).items() if fate(attempts) is Fate.REFUSED}


def unexplained(calls: Sequence[Call], changes: Sequence[ChangeSet]) -> list[str]:
    """Nobody else writes to the namespace."""
    sent = {call.key for call in calls}
    return [f"{_name(_key(change))} was never sent" for change in changes if _key(change) not in sent]


def changed_answers(calls: Sequence[Call]) -> list[str]:
    """A repeated command gets the first answer, and once it has been applied it is not refused any more."""
    found = []
    for key, attempts in by_command(calls).items():
        answers = list(dict.fromkeys(call.effect.answer for call in attempts if call.effect is not None))
        if len(answers) > 1:
            found.append(f"{_name(key)} was answered differently: {answers}")
        found += [
            f"{_name(key)} was acknowledged, and then refused ({call.reason})"
            for call in _repeated(attempts)
            if call.is_final
        ]
    return found


def repetitions(calls: Iterable[Call]) -> list[Call]:
    """The attempts at what had been acknowledged before, of which the service decided."""
    return [
        call
        for attempts in by_command(calls).values()
        for call in _repeated(attempts)
        if call.is_final or call.outcome is Outcome.OK
    ]


def _repeated(attempts: Sequence[Call]) -> list[Call]:
    acknowledged_at = min((call.ended for call in attempts if call.outcome is Outcome.OK), default=math.inf)
    return [call for call in attempts if call.began > acknowledged_at]


def out_of_order(calls: Sequence[Call]) -> list[str]:
    """What was answered before another command was first sent has the lower namespace revision."""
    spans = []
    for key, attempts in by_command(calls).items():
        answered = [call for call in attempts if call.effect is not None and call.effect.revision is not None]
        if answered:
            effect = answered[0].effect
            assert effect is not None
            assert effect.revision is not None
            spans.append((attempts[0].began, min(call.ended for call in answered), effect.revision, key))
    found = []
    by_end = sorted(spans, key=lambda span: span[1])
    highest: tuple[int, Key | None] = (0, None)
    done = 0
    for began, _, revision, key in sorted(spans):
        while done < len(by_end) and by_end[done][1] < began:
            highest = max(highest, (by_end[done][2], by_end[done][3]), key=lambda seen: seen[0])
            done += 1
        if highest[1] is not None and revision < highest[0]:
            found.append(f"{_name(key)} got {revision} after {_name(highest[1])} had got {highest[0]}")
    return found


def stale_readings(calls: Sequence[Call], readings: Sequence[Reading]) -> list[str]:
    """A change token that is read after an answer is not behind it, nor behind its token; an answer's own token is not
    behind its change set, nor behind what was known before its command was first sent."""
    found = [
        f"{_name(call.key)} made {call.effect.revision}, and its change token is {call.token_revision}"
        for call in calls
        if call.effect is not None and (call.effect.revision or 0) > (call.token_revision or 0)
    ]
    told = [*readings, *tokens(calls)]
    known = sorted(
        [(call.ended, call.effect.revision or 0) for call in calls if call.effect is not None]
        + [(reading.ended, reading.revision) for reading in told]
    )
    done = highest = 0
    for reading in sorted(told, key=lambda reading: reading.began):
        while done < len(known) and known[done][0] < reading.began:
            highest = max(highest, known[done][1])
            done += 1
        if reading.revision < highest:
            found.append(f"change token {reading.revision} was read after {highest} was known")
    return found


def tokens(calls: Iterable[Call]) -> list[Reading]:
    """What answers say of where the namespace stood when their command was done, which was after it was first sent: a
    repetition says it again."""
    return [
        Reading(
            began=attempts[0].began,
            ended=call.ended,
            history_id=call.history_id,
            revision=call.token_revision,
            process=call.process,
            caller=call.caller,
        )
        for attempts in by_command(calls).values()
        for call in attempts
        if call.history_id and call.token_revision is not None
    ]


def tokens_of_no_change(calls: Iterable[Call]) -> list[Reading]:
    """Those of commands that changed nothing: the others name the change set that they made, which is looked for."""
    return tokens([call for call in calls if call.effect is not None and call.effect.revision is None])


def vanished_readings(readings: Iterable[Reading], changes: Sequence[ChangeSet]) -> list[str]:
    """A change token that was read is of a revision that is there, and stays there."""
    return [
        f"change token {reading.revision} was read, and there are {len(changes)} change sets"
        for reading in readings
        if reading.revision > len(changes)
    ]


def several_histories(calls: Sequence[Call], readings: Sequence[Reading]) -> list[str]:
    """The history id stays what it was."""
    ids = {call.history_id for call in calls if call.history_id} | {one.history_id for one in readings}
    return [f"there are several histories: {sorted(ids)}"] if len(ids) > 1 else []


def torn(watched: Iterable[WatchedChange]) -> list[str]:
    """Each change set has exactly the node revisions that it names, and each node is at 1, 2, 3 and so on."""
    found = []
    latest: dict[str, int] = {}
    for change in watched:
        at = change.change_set.namespace_revision
        named = {(one.citation.node_id, one.citation.node_revision) for one in change.change_set.changes}
        carried = {(node.id, node.revision) for node in change.nodes}
        if named != carried or any(node.valid_from != at for node in change.nodes):
            found.append(f"namespace revision {at} names {sorted(named)}, and carries {sorted(carried)}")
        for node_id, revision in sorted(named):
            if revision != latest.get(node_id, 0) + 1:
                found.append(f"node {node_id} went from revision {latest.get(node_id, 0)} to {revision}")
            latest[node_id] = revision
    return found


def mixed_up(watched: Iterable[WatchedChange], texts: Mapping[Key, str]) -> list[str]:
    """Each content that a change set brought is its command's; `texts` has what it begins with."""
    found = []
    for change in watched:
        key = _key(change.change_set)
        brought = {one.citation.node_id for one in change.change_set.changes if one.content_changed}
        found += [
            f"{_name(key)} brought node {node.id} another text ({digest_of(node.content)})"
            for node in change.nodes
            if node.id in brought and not node.content.startswith(texts.get(key, ""))
        ]
    return found


def other_texts(watched: Iterable[WatchedChange], calls: Iterable[Call]) -> list[str]:
    """The same by digests, which is all that is left of what another process wrote; and the whole text."""
    found = []
    texts = sent_texts(calls)
    for change in watched:
        key = _key(change.change_set)
        sent = texts.get(key, {})
        brought = {one.citation.node_id for one in change.change_set.changes if one.content_changed}
        for node in change.nodes:
            expected = sent.get(node.id, sent.get(""))
            if node.id in brought and expected is not None and digest_of(node.content) != expected:
                found.append(f"{_name(key)} brought node {node.id} text {digest_of(node.content)}, not {expected}")
    return found


def _key(change: ChangeSet) -> Key:
    return (change.method, change.idempotency_key)


def _name(key: Key) -> str:
    return f"{key[0]} {key[1]}"
