"""Hosts that live with their memories for months, and note what they mean before they ask for it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

from durable_memory_client import (
    Activated,
    AddRelation,
    ChangeSet,
    Citation,
    Corroborate,
    Create,
    Decision,
    Draft,
    Evidence,
    EvidenceKind,
    MemoryClient,
    Node,
    NodeStatus,
    Operation,
    Proposed,
    Reactivated,
    Rejected,
    Relation,
    RelationKind,
    Remembered,
    Retired,
    Revised,
    SetStatus,
    relate,
)
from tests.qualification.recorder.answers import Answer
from tests.qualification.recorder.history import Key
from tests.qualification.recorder.recorder import Command, Recorder

KEPT_FOR: Final = timedelta(days=60)
"""The retention of these hosts: what is labelled `keep=60d` is retired when it is older."""

ATTEMPT_SECONDS: Final = 3.0
_READY_SECONDS: Final = 180.0
_MOST_ATTEMPTS: Final = 60
_TOPICS: Final = ("heating", "printer", "invoice", "garden", "office", "travel")
_PASS: Final = "visitor pass"
"""A topic that no host merges or doubts: nothing but their rule ends what they remember of it."""

_SAYINGS: Final = (
    "the {topic} is looked after by the team of the second floor",
    "questions about the {topic} go to the help desk before noon",
    "the {topic} was paid for a year in advance",
    "nobody changes the {topic} on a Friday",
)

Send = Callable[[dict[str, Any]], Awaitable[Answer]]


@dataclass(slots=True, kw_only=True)
class Held:
    """A memory as its host knows it."""

    citation: Citation
    status: NodeStatus
    topic: str
    since: datetime
    importance: float
    kept_for: timedelta | None


@dataclass(slots=True)
class Notes:
    """What all hosts of a namespace know and mean, for the checks at the end."""

    endings: dict[Key, dict[str, NodeStatus]] = field(default_factory=dict)
    stated: dict[tuple[str, int], datetime] = field(default_factory=dict)
    """When it happened, by node id and the revision that said so."""
    evidence: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """By node id and URI."""
    words: dict[str, str] = field(default_factory=dict)
    """By node id, what only it says."""
    held: dict[str, Held] = field(default_factory=dict)
    cited: list[Citation] = field(default_factory=list)
    """Every citation that an answer gave."""
    asked_at: dict[Key, datetime] = field(default_factory=dict)
    """When each command was first sent."""
    refused: list[str] = field(default_factory=list)
    """Commands of hosts are in order: none of them may be refused."""
    merged: int = 0
    retired_by_rule: int = 0
    decayed: int = 0


class Host:
    """One agent's host, with memories of its own in a namespace that it shares. One task at a time."""

    def __init__(
        self,
        name: str,
        memory: MemoryClient,
        recorder: Recorder,
        notes: Notes,
        now: Callable[[], datetime],
        *,
        rng: random.Random,
        zones: Sequence[tzinfo],
        canary: str,
    ) -> None:
        self.name = name
        self.dates: list[datetime] = []
        """Times that are to be stated once they have passed, earliest last."""
        self._memory = memory
        self._recorder = recorder
        self._notes = notes
        self._now = now
        self._rng = rng
        self._zones = zones
        self._canary = canary
        self._number = 0
        self._mine: list[str] = []

    async def begin(self) -> None:
        """Remember what is to be retired by the rule, whatever this host does on which days from now on."""
        await self._remember(0, topic=_PASS)

    async def day(self, batch: int) -> None:
        """Remember, propose, decide on what was proposed, corroborate and revise.

        `batch` becomes a label, so that the end can look at the memories by lots that fit into one recall.
        """
        await self._remember(batch)
        for candidate in self._with_status(NodeStatus.CANDIDATE):
            await self._decide_on(candidate)
        await self._propose(batch)
        if active := self._with_status(NodeStatus.ACTIVE):
            if self._rng.random() < 0.5:
                await self._corroborate(self._rng.choice(active))
            await self._revise(self._rng.choice(active))

    async def week(self, batch: int) -> None:
        """Consolidate, and let what nobody needed count less."""
        by_topic: dict[str, list[str]] = {}
        for node_id in self._at_hand():
            by_topic.setdefault(self._notes.held[node_id].topic, []).append(node_id)
        topic = max(by_topic, key=lambda topic: len(by_topic[topic]), default="")
        if len(by_topic.get(topic, ())) >= 2:
            count = min(len(by_topic[topic]), self._rng.randint(2, 5))
            await self._consolidate(self._rng.sample(by_topic[topic], count), topic, batch)
        if active := self._with_status(NodeStatus.ACTIVE):
            await self._decay(self._rng.choice(active))
        for node_id in self._with_status(NodeStatus.CONFLICTED):
            await self._bring_back(node_id)

    async def month(self) -> None:
        """Retire by the rule, bring one memory back, and find two that disagree."""
        archived = self._with_status(NodeStatus.ARCHIVED)
        for node_id in self._with_status(NodeStatus.ACTIVE):
            held = self._notes.held[node_id]
            if held.kept_for is not None and self._now() - held.since > held.kept_for:
                await self._retire(node_id)
        if archived:
            await self._bring_back(self._rng.choice(archived))
        if len(active := self._at_hand()) >= 3:
            one, other, doubted = self._rng.sample(active, 3)
            await self._disagree(one, other)
            await self._doubt(doubted)

    async def _remember(self, batch: int, *, topic: str = "") -> None:
        node_id, request_id = self._new_node(), self._new_id()
        happened = self._happened()
        told = Evidence.user_statement(f"chat:{node_id}", node_id, occurred_at=happened)
        self._notes.evidence[node_id, told.uri] = happened
        # Where the memory itself says nothing, the earliest evidence says when it was.
        draft = self._draft(node_id, batch, [told], happened if self._rng.random() < 0.5 else None, topic=topic)
        answer = await self._do(
            "Remember", request_id, lambda options: self._memory.remember(draft, node_id=node_id, **options)
        )
        if isinstance(answer, Remembered):
            self._notes.stated[node_id, answer.citation.node_revision] = happened
            self._hold(node_id, answer.citation, NodeStatus.ACTIVE, draft)

    async def _propose(self, batch: int) -> None:
        node_id, request_id = self._new_node(), self._new_id()
        happened = self._happened()
        turn = Evidence.session_turn(f"{self.name}-{batch}", request_id, node_id, occurred_at=happened)
        self._notes.evidence[node_id, turn.uri] = happened
        draft = self._draft(node_id, batch, [turn], happened)
        answer = await self._do(
            "ProposeCandidates", request_id, lambda options: self._memory.propose(draft, node_id=node_id, **options)
        )
        if isinstance(answer, Proposed):
            self._notes.stated[node_id, answer.citation.node_revision] = happened
            self._hold(node_id, answer.citation, NodeStatus.CANDIDATE, draft)

    async def _decide_on(self, node_id: str) -> None:
        candidate, request_id = self._notes.held[node_id].citation, self._new_id()
        decision = Decision.by_rule("plausible", 1)
        if self._rng.random() < 0.8:
            answer = await self._do(
                "ActivateCandidates",
                request_id,
                lambda options: self._memory.activate(candidate, decision, **options),
            )
            if isinstance(answer, Activated):
                self._moved(answer.citation, NodeStatus.ACTIVE)
        else:
            answer = await self._do(
                "RejectCandidates", request_id, lambda options: self._memory.reject(candidate, decision, **options)
            )
            if isinstance(answer, Rejected):
                self._moved(answer.citation, NodeStatus.TOMBSTONED)

    async def _corroborate(self, node_id: str) -> None:
        happened = self._happened()
        request_id = self._new_id()
        seen = Evidence.tool_result(f"tool:{request_id}", request_id, occurred_at=happened)
        self._notes.evidence[node_id, seen.uri] = happened
        revision = self._notes.held[node_id].citation.node_revision
        await self._apply(request_id, [Corroborate(node_id=node_id, expected_revision=revision, evidence=[seen])])

    async def _revise(self, node_id: str) -> None:
        held, request_id = self._notes.held[node_id], self._new_id()
        citation, happened = held.citation, self._happened()
        content = self._text(node_id, held.topic)
        answer = await self._do(
            "ReviseMemory",
            request_id,
            lambda options: self._memory.revise(citation, content=content, occurred_at=happened, **options),
        )
        if isinstance(answer, Revised):
            self._notes.stated[node_id, answer.citation.node_revision] = happened
            self._moved(answer.citation, NodeStatus.ACTIVE)

    async def _decay(self, node_id: str) -> None:
        held = self._notes.held[node_id]
        citation, importance = held.citation, held.importance / 2
        answer = await self._do(
            "ReviseMemory",
            self._new_id(),
            lambda options: self._memory.revise(
                citation, importance=importance, decision=Decision.by_rule("half-life", 1), **options
            ),
        )
        if isinstance(answer, Revised):
            self._moved(answer.citation, NodeStatus.ACTIVE)
            held.importance = importance
            self._notes.decayed += 1

    async def _consolidate(self, sources: Sequence[str], topic: str, batch: int) -> None:
        node_id, request_id = self._new_node(), self._new_id()
        draft = self._draft(node_id, batch, [self._decided(request_id)], None, topic=topic)
        operations: list[Operation] = [
            Create(
                memory=draft,
                node_id=node_id,
                status=NodeStatus.ACTIVE,
                relations=[Relation(RelationKind.SUPERSEDES, source) for source in sources],
            )
        ]
        for source in sources:
            revision = self._notes.held[source].citation.node_revision
            by = Relation(RelationKind.SUPERSEDED_BY, node_id)
            operations += [
                AddRelation(node_id=source, expected_revision=revision, relation=by),
                SetStatus(node_id=source, expected_revision=revision, status=NodeStatus.SUPERSEDED),
            ]
        self._end("ApplyChangeSet", request_id, sources, NodeStatus.SUPERSEDED)
        if await self._apply(request_id, operations, draft=draft):
            self._notes.merged += len(sources)

    async def _retire(self, node_id: str) -> None:
        citation, request_id = self._notes.held[node_id].citation, self._new_id()
        self._end("RetireMemory", request_id, [node_id], NodeStatus.ARCHIVED)
        rule = Decision.by_rule("keep-60-days", 1)
        answer = await self._do(
            "RetireMemory", request_id, lambda options: self._memory.retire(citation, decision=rule, **options)
        )
        if isinstance(answer, Retired):
            self._moved(answer.citation, NodeStatus.ARCHIVED)
            self._notes.retired_by_rule += 1

    async def _bring_back(self, node_id: str) -> None:
        citation = self._notes.held[node_id].citation
        answer = await self._do(
            "ReactivateMemory", self._new_id(), lambda options: self._memory.reactivate(citation, **options)
        )
        if isinstance(answer, Reactivated):
            self._moved(answer.citation, NodeStatus.ACTIVE)
            self._notes.held[node_id].kept_for = None

    async def _disagree(self, one: str, other: str) -> None:
        nodes = await self._memory.get_nodes([one, other])
        conflict = relate(nodes[one], RelationKind.CONFLICTS_WITH, nodes[other])
        if not _related(nodes[one], other):
            await self._apply(self._new_id(), conflict)

    async def _doubt(self, node_id: str) -> None:
        revision = self._notes.held[node_id].citation.node_revision
        request_id = self._new_id()
        self._end("ApplyChangeSet", request_id, [node_id], NodeStatus.CONFLICTED)
        doubt = SetStatus(
            node_id=node_id,
            expected_revision=revision,
            status=NodeStatus.CONFLICTED,
            evidence=[self._decided(request_id)],
        )
        await self._apply(request_id, [doubt])

    async def _apply(
        self, request_id: str, operations: Sequence[Operation], *, draft: Draft | None = None
    ) -> ChangeSet | None:
        answer = await self._do(
            "ApplyChangeSet",
            request_id,
            lambda options: self._memory.apply_change_set(operations, note=request_id, **options),
        )
        if not isinstance(answer, ChangeSet):
            return None
        for change in answer.changes:
            if change.citation.node_id in self._notes.held:
                self._moved(change.citation, change.status_after)
            elif draft is not None:
                self._hold(change.citation.node_id, change.citation, change.status_after, draft)
        return answer

    async def _do(self, method: str, request_id: str, send: Send) -> Answer | None:
        """The answer, whatever happens to the server meanwhile. Raises: RuntimeError if it never comes."""
        command = Command(
            method=method,
            request_id=request_id,
            send=lambda timeout: send({"request_id": request_id, "timeout": timeout}),
        )
        self._notes.asked_at[command.key] = self._now()
        for _ in range(_MOST_ATTEMPTS):
            call, answer = await self._recorder.attempt(command, ATTEMPT_SECONDS)
            if answer is not None:
                return answer
            if call.is_final:
                self._notes.refused.append(f"{method} {request_id} was refused: {call.reason}")
                return None
            await self._memory.wait_until_ready(_READY_SECONDS)
        raise RuntimeError(f"{method} {request_id} has no outcome after {_MOST_ATTEMPTS} attempts")

    def _draft(
        self, node_id: str, batch: int, evidence: Sequence[Evidence], happened: datetime | None, *, topic: str = ""
    ) -> Draft:
        topic = topic or self._rng.choice(_TOPICS)
        labels = {"topic": topic, "batch": f"{self.name}-{batch}"}
        if topic == _PASS or self._rng.random() < 0.4:
            labels["keep"] = f"{KEPT_FOR.days}d"
        return Draft(
            content=self._text(node_id, topic),
            evidence=evidence,
            occurred_at=happened,
            importance=self._rng.random(),
            labels=labels,
        )

    def _text(self, node_id: str, topic: str) -> str:
        said = self._rng.choice(_SAYINGS).format(topic=topic)
        return f"{self._canary} {self._notes.words[node_id]}: {said}, note {self._number}."

    def _happened(self) -> datetime:
        """A time that has passed, in one of the zones: one that is to be stated by all means, or a recent one."""
        if self.dates and self.dates[-1] < self._now():
            return self.dates.pop()
        ago = timedelta(microseconds=self._rng.randrange(1, 20 * 3_600_000_000))
        return (self._now() - ago).astimezone(self._rng.choice(self._zones))

    def _new_id(self) -> str:
        self._number += 1
        return f"{self.name}-{self._number}"

    def _new_node(self) -> str:
        node_id = f"node-{self._new_id()}"
        self._notes.words[node_id] = f"{self.name}{self._number}q"
        return node_id

    def _decided(self, request_id: str) -> Evidence:
        return Evidence(uri=f"decision:{request_id}", kind=EvidenceKind.VERIFICATION, body=request_id.encode())

    def _end(self, method: str, request_id: str, node_ids: Sequence[str], status: NodeStatus) -> None:
        """Note what a command is to end before it is sent."""
        self._notes.endings[method, request_id] = dict.fromkeys(node_ids, status)

    def _hold(self, node_id: str, citation: Citation, status: NodeStatus, draft: Draft) -> None:
        self._notes.held[node_id] = Held(
            citation=citation,
            status=status,
            topic=draft.labels["topic"],
            since=self._now(),
            importance=0.5 if draft.importance is None else draft.importance,
            kept_for=KEPT_FOR if "keep" in draft.labels else None,
        )
        self._notes.cited.append(citation)
        self._mine.append(node_id)

    def _moved(self, citation: Citation, status: NodeStatus) -> None:
        held = self._notes.held[citation.node_id]
        held.citation, held.status = citation, status
        self._notes.cited.append(citation)

    def _with_status(self, status: NodeStatus) -> list[str]:
        return [node_id for node_id in self._mine if self._notes.held[node_id].status is status]

    def _at_hand(self) -> list[str]:
        """What is ACTIVE, and may be merged, found to disagree or doubted."""
        return [one for one in self._with_status(NodeStatus.ACTIVE) if self._notes.held[one].topic != _PASS]


def _related(node: Node, other: str) -> bool:
    return any(r.kind is RelationKind.CONFLICTS_WITH and r.node_id == other for r in node.relations)
