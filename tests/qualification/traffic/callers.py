"""Callers that do what agents' hosts do, one command after the other, each with a request id of its own."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from durable_memory_client import (
    AdmissionOutcome,
    Citation,
    Create,
    Decision,
    Draft,
    Evidence,
    EvidenceKind,
    MemoryClient,
    MemoryRun,
    MemoryUnavailableError,
    NodeRevision,
    NodeStatus,
    Proposed,
    Recall,
    Relation,
    RelationKind,
    Remembered,
    Revise,
    Superseded,
)
from durable_memory_client.errors import NodeNotFoundError
from tests.qualification.recorder.recorder import Answer, Command, Recorder

Send = Callable[[MemoryClient, dict[str, Any]], Awaitable[Answer]]
"""Makes one attempt on a connection, with the keyword arguments that say which command it is and how long it has."""

_READY_SECONDS = 2.0
SHARED_WORD = "tea"


def text_of(request_id: str) -> str:
    """What a command writes: of nobody else, and found by a word that all have."""
    return f"{request_id} drinks {SHARED_WORD}"


def decided(request_id: str) -> Evidence:
    """The evidence that a memory may be used, new in every change."""
    return Evidence(uri=f"decision:{request_id}", kind=EvidenceKind.MANUAL, body=request_id.encode())


class Reach:
    """Waits for a server to be there again: once for all callers, so that waiting is not what the machine does."""

    def __init__(self, clients: Sequence[MemoryClient]) -> None:
        self._clients = clients
        self._task: asyncio.Task[None] | None = None

    async def again(self) -> None:
        """Return when one of the servers answers, or after a while."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._wait())
        await asyncio.shield(self._task)

    async def close(self) -> None:
        if self._task is not None:
            await self._task

    async def _wait(self) -> None:
        ends_at = time.monotonic() + _READY_SECONDS
        for client in itertools.cycle(self._clients):
            try:
                await client.wait_until_ready(_READY_SECONDS / len(self._clients))
            except MemoryUnavailableError:
                if time.monotonic() < ends_at:
                    continue
            return


class Caller:
    """Works until it is told to stop, and notes everything. `clients` are connections to servers over one store.

    `timeout` is the deadline of each attempt, in seconds; None: the client's, with its repetitions. Half of what is
    in doubt it repeats until it knows; the rest it leaves in doubt.
    """

    def __init__(
        self,
        name: str,
        clients: Sequence[MemoryClient],
        recorder: Recorder,
        reach: Reach,
        *,
        seed: str,
        timeout: float | None,
    ) -> None:
        self.name = name
        self.rng = random.Random(f"{seed}/{name}")
        self._recorder = recorder
        self._clients = clients
        self._reach = reach
        self._timeout = timeout
        self._number = 0

    async def run(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                await self.step()
                if self.rng.random() < 0.1:
                    await self._recorder.read(lambda: self.memory.get_change_token(timeout=self._timeout))
            except MemoryUnavailableError:
                await self._reach.again()

    async def step(self) -> None:
        """Do one thing. Raises: MemoryUnavailableError."""
        raise NotImplementedError

    @property
    def memory(self) -> MemoryClient:
        """One of the servers."""
        return self.rng.choice(self._clients)

    def new_id(self) -> str:
        self._number += 1
        return f"{self.name}-{self._number}"

    async def do(
        self, method: str, request_id: str, send: Send, *, text: str = "", insist: bool = False
    ) -> Answer | None:
        """The answer of a command, or None if it was refused or is left in doubt. Each attempt goes to any server."""
        command = Command(
            method=method,
            request_id=request_id,
            send=lambda timeout: send(self.memory, {"request_id": request_id, "timeout": timeout}),
            text=text,
        )
        while True:
            call, answer = await self._recorder.attempt(command, self._timeout)
            if answer is not None or call.is_verdict:
                return answer
            await self._reach.again()
            if not insist and self.rng.random() < 0.5:
                return None

    async def node(self, node_id: str):
        """A node, or None if there is none."""
        try:
            return await self.memory.get_node(node_id, timeout=self._timeout)
        except NodeNotFoundError:
            return None


class Rememberer(Caller):
    """Remembers new things and known things, under new names and taken ones, and replaces what it remembered."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._known: dict[Citation, str] = {}

    async def step(self) -> None:
        request_id = self.new_id()
        text = text_of(request_id)
        node_id = f"node-{request_id}" if self.rng.random() < 0.5 else None
        roll = self.rng.random()
        if self._known and roll < 0.4:
            known = self.rng.choice(list(self._known))
            if roll < 0.15:
                await self._supersede(known, request_id, text)
                return
            if roll < 0.25:
                node_id = known.node_id
            else:
                text = self._known[known]
        answer = await self.do(
            "Remember",
            request_id,
            lambda memory, options: memory.remember(text, node_id=node_id, **options),
            text=text,
        )
        if isinstance(answer, Remembered):
            self._known[answer.citation] = text

    async def _supersede(self, known: Citation, request_id: str, text: str) -> None:
        del self._known[known]  # also if the outcome stays unknown
        answer = await self.do(
            "SupersedeMemory",
            request_id,
            lambda memory, options: memory.supersede(known, text, **options),
            text=text,
        )
        if isinstance(answer, Superseded):
            self._known[answer.citation] = text


class Reviser(Caller):
    """Puts, revises, retires and brings back one node, sometimes by a citation that is out of date."""

    _previous: Citation | None = None

    async def step(self) -> None:
        request_id = self.new_id()
        text = text_of(request_id)
        node = await self.node(self.name)
        roll = self.rng.random()
        if node is None or (node.status is NodeStatus.ACTIVE and roll < 0.15):
            await self.do(
                "PutMemory", request_id, lambda memory, options: memory.put(self.name, text, **options), text=text
            )
            return
        cited = node.citation
        if node.status is NodeStatus.ARCHIVED:
            await self.do("ReactivateMemory", request_id, lambda memory, options: memory.reactivate(cited, **options))
        elif roll < 0.25:
            await self.do("RetireMemory", request_id, lambda memory, options: memory.retire(cited, **options))
        else:
            named = self._previous if self._previous is not None and roll < 0.35 else cited
            await self.do(
                "ReviseMemory",
                request_id,
                lambda memory, options: memory.revise(named, content=text, **options),
                text=text,
            )
        self._previous = cited


class ChangeSetter(Caller):
    """Applies change sets of several nodes, one of which its like want to change at the same time."""

    _contested = "contested"

    async def step(self) -> None:
        request_id = self.new_id()
        left, right = f"{request_id}-left", f"{request_id}-right"
        operations = [
            self._create(left, request_id, relations=[Relation(RelationKind.RELATED_TO, right)]),
            self._create(right, request_id, relations=[Relation(RelationKind.RELATED_TO, left)]),
        ]
        node = await self.node(self._contested)
        if node is None:
            operations.append(self._create(self._contested, request_id))
        elif self.rng.random() < 0.7:
            operations.append(
                Revise(
                    node_id=self._contested,
                    expected_revision=node.revision,
                    content=f"{text_of(request_id)} {self._contested}",
                    evidence=[decided(request_id)],
                )
            )
        await self.do(
            "ApplyChangeSet",
            request_id,
            lambda memory, options: memory.apply_change_set(operations, note=request_id, **options),
            text=text_of(request_id),
        )

    def _create(self, node_id: str, request_id: str, relations: Sequence[Relation] = ()) -> Any:
        draft = Draft(content=f"{text_of(request_id)} {node_id}", evidence=[decided(request_id)])
        return Create(memory=draft, node_id=node_id, status=NodeStatus.ACTIVE, relations=relations)


class Proposer(Caller):
    """Proposes memories, and activates some of them and rejects others."""

    async def step(self) -> None:
        request_id = self.new_id()
        said = Evidence.user_statement(f"chat:{request_id}", request_id)
        proposed = await self.do(
            "ProposeCandidates",
            request_id,
            lambda memory, options: memory.propose(text_of(request_id), evidence=[said], **options),
            text=text_of(request_id),
        )
        if not isinstance(proposed, Proposed):
            return
        candidate, decision = proposed.citation, Decision.manual("user-1")
        if self.rng.random() < 0.7:
            await self.do(
                "ActivateCandidates",
                self.new_id(),
                lambda memory, options: memory.activate(candidate, decision, **options),
            )
        else:
            await self.do(
                "RejectCandidates",
                self.new_id(),
                lambda memory, options: memory.reject(candidate, decision, **options),
            )


class Admitter(Caller):
    """Recalls for a model, admits what it found and uses the best of it; knows how often each must be counted."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._run: MemoryRun | None = None
        self.admitted: Counter[NodeRevision] = Counter()
        self.used: Counter[NodeRevision] = Counter()

    async def step(self) -> None:
        if self._run is None:
            session = await self.memory.open_session(self.name, max_results=3)
            run = session.run("run-1")
            await run.begin()
            self._run = run
        run = self._run
        # An assembly follows from the one before it, so nothing of it may stay in doubt.
        recall = await self.do(
            "ActiveRecall",
            self.new_id(),
            lambda _, options: run.recall(SHARED_WORD, admit=True, **options),
            insist=True,
        )
        if not isinstance(recall, Recall) or not recall.hits:
            return
        self.admitted.update(map(_admitted, filter(_is_admitted, recall.admissions)))
        best = recall.hits[0].citation
        uses = await self.do(
            "RecordUse", self.new_id(), lambda _, options: run.record_use([best], **options), insist=True
        )
        if uses:
            self.used[NodeRevision(best.node_id, best.node_revision)] += 1


def _is_admitted(outcome: AdmissionOutcome) -> bool:
    return outcome.admitted


def _admitted(outcome: AdmissionOutcome) -> NodeRevision:
    return outcome.node_revision
