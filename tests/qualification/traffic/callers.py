"""Callers that do what agents' hosts do, one command after the other, each with a request id of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from durable_memory_client import (
    Citation,
    Create,
    Decision,
    Draft,
    Evidence,
    EvidenceKind,
    MemoryClient,
    MemoryUnavailableError,
    Node,
    NodeStatus,
    Proposed,
    Relation,
    RelationKind,
    Remembered,
    Revise,
    Superseded,
)
from durable_memory_client.errors import NodeNotFoundError
from tests.qualification.recorder.answers import Answer
from tests.qualification.recorder.history import Call, Write
from tests.qualification.recorder.recorder import Command, Recorder
from tests.qualification.traffic.wording import digest_of, text_of

Send = Callable[[MemoryClient, dict[str, Any]], Awaitable[Answer]]
"""Makes one attempt on a connection, with the keyword arguments that say which command it is and how long it has."""

_READY_SECONDS = 2.0
_REPEATS_AT_MOST = 40


def decided(request_id: str) -> Evidence:
    """The evidence that a memory may be used, new in every change."""
    return Evidence(uri=f"decision:{request_id}", kind=EvidenceKind.MANUAL, body=request_id.encode())


class Reach:
    """Waits for a server to be there again: once for all callers, so that waiting is not what the machine does.

    `working` is unset while all of them rest.
    """

    def __init__(self, clients: Sequence[MemoryClient]) -> None:
        self.working = asyncio.Event()
        self.working.set()
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


class Caller(ABC):
    """Works until it is told to stop, and notes everything. `clients` are connections to servers over one store.

    `timeout` is the deadline of each attempt, in seconds; None: the client's, with its repetitions. Half of what is
    in doubt it repeats until it knows; the rest it leaves in doubt. `pause` is how long it rests between two things,
    in seconds, on the average; `canary` is in all that it writes and asks. `sessions` are the digests of the bindings
    of sessions that are there from before, by their names.
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
        canary: str = "",
        pause: float = 0.0,
        sessions: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.rng = random.Random(f"{seed}/{name}")
        self.canary = canary
        self.sessions = dict(sessions or {})
        self._pause = pause
        self.last: Call | None = None
        """The last attempt of what it did last, which took `last_attempts`."""
        self.last_attempts = 0
        self._recorder = recorder
        self._clients = clients
        self._reach = reach
        self._timeout = timeout
        self._number = 0

    async def run(self, stopping: asyncio.Event) -> None:
        while await self._reach.working.wait() and not stopping.is_set():
            try:
                await self.step()
                if self.rng.random() < 0.1:
                    await self._recorder.read(
                        lambda: self.memory.get_change_token(timeout=self._timeout), caller=self.name
                    )
            except MemoryUnavailableError:
                await self._reach.again()
            if self._pause:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), self.rng.uniform(0, 2 * self._pause))

    @abstractmethod
    async def step(self) -> None:
        """Do one thing. Raises: MemoryUnavailableError."""

    async def finish(self) -> None:
        """Do once more what must have been done after everything that happened, however little time there was."""
        return  # most have nothing that must

    @property
    def memory(self) -> MemoryClient:
        """One of the servers."""
        return self.rng.choice(self._clients)

    def new_id(self) -> str:
        self._number += 1
        return f"{self.name}-{self._number}"

    def text_of(self, request_id: str) -> str:
        """What a command writes."""
        return text_of(request_id, self.canary)

    async def do(
        self,
        method: str,
        request_id: str,
        send: Send,
        *,
        text: str = "",
        writes: Sequence[Write] = (),
        insist: bool = False,
        caller: str | None = None,
    ) -> Answer | None:
        """The answer of a command, or None if it was refused or is left in doubt. Each attempt goes to any server.

        `caller`: who does it, where that is one of several at once.
        """
        command = Command(
            method=method,
            request_id=request_id,
            send=lambda timeout: send(self.memory, {"request_id": request_id, "timeout": timeout}),
            text=text,
            caller=caller or self.name,
            writes=tuple(writes),
        )
        for attempts in itertools.count(1) if insist else range(1, _REPEATS_AT_MOST):
            call, answer = await self._recorder.attempt(command, self._timeout)
            self.last, self.last_attempts = call, attempts
            if answer is not None or call.is_final:
                return answer
            await self._reach.again()
            if not insist and self.rng.random() < 0.5:
                return None
        return None

    async def node(self, node_id: str) -> Node | None:
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
        text = self.text_of(request_id)
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
            writes=[Write(node_id=node_id or "", expected=0, text=digest_of(text))],
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
            writes=[
                Write(node_id=known.node_id, expected=known.node_revision, status=NodeStatus.SUPERSEDED),
                Write(expected=0, text=digest_of(text)),
            ],
        )
        if isinstance(answer, Superseded):
            self._known[answer.citation] = text


class Reviser(Caller):
    """Puts, revises, retires and brings back one node, sometimes by a citation that is out of date."""

    _previous: Citation | None = None

    async def step(self) -> None:
        request_id = self.new_id()
        text = self.text_of(request_id)
        node = await self.node(self.name)
        roll = self.rng.random()
        if node is None or (node.status is NodeStatus.ACTIVE and roll < 0.15):
            await self.do(
                "PutMemory",
                request_id,
                lambda memory, options: memory.put(self.name, text, **options),
                text=text,
                writes=[Write(node_id=self.name, text=digest_of(text))],
            )
            return
        cited = node.citation
        if node.status is NodeStatus.ARCHIVED:
            await self.do(
                "ReactivateMemory",
                request_id,
                lambda memory, options: memory.reactivate(cited, **options),
                writes=[_of(cited, NodeStatus.ACTIVE)],
            )
        elif roll < 0.25:
            await self.do(
                "RetireMemory",
                request_id,
                lambda memory, options: memory.retire(cited, **options),
                writes=[_of(cited, NodeStatus.ARCHIVED)],
            )
        else:
            named = self._previous if self._previous is not None and roll < 0.35 else cited
            await self.do(
                "ReviseMemory",
                request_id,
                lambda memory, options: memory.revise(named, content=text, **options),
                text=text,
                writes=[_of(named, NodeStatus.ACTIVE, text)],
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
        writes = [Write(node_id=one, expected=0, text=self._digest(one, request_id)) for one in (left, right)]
        node = await self.node(self._contested)
        expected = None
        if node is None:
            operations.append(self._create(self._contested, request_id))
            expected = 0
        elif self.rng.random() < 0.7:
            operations.append(
                Revise(
                    node_id=self._contested,
                    expected_revision=node.revision,
                    content=self._content(self._contested, request_id),
                    evidence=[decided(request_id)],
                )
            )
            expected = node.revision
        if expected is not None:
            text = self._digest(self._contested, request_id)
            writes.append(Write(node_id=self._contested, expected=expected, text=text))
        await self.do(
            "ApplyChangeSet",
            request_id,
            lambda memory, options: memory.apply_change_set(operations, note=request_id, **options),
            text=self.text_of(request_id),
            writes=writes,
        )

    def _create(self, node_id: str, request_id: str, relations: Sequence[Relation] = ()) -> Any:
        draft = Draft(content=self._content(node_id, request_id), evidence=[decided(request_id)])
        return Create(memory=draft, node_id=node_id, status=NodeStatus.ACTIVE, relations=relations)

    def _content(self, node_id: str, request_id: str) -> str:
        return f"{self.text_of(request_id)} {node_id}"

    def _digest(self, node_id: str, request_id: str) -> str:
        return digest_of(self._content(node_id, request_id))


class Proposer(Caller):
    """Proposes memories, and activates some of them and rejects others."""

    async def step(self) -> None:
        request_id = self.new_id()
        text = self.text_of(request_id)
        said = Evidence.user_statement(f"chat:{request_id}", request_id)
        proposed = await self.do(
            "ProposeCandidates",
            request_id,
            lambda memory, options: memory.propose(text, evidence=[said], **options),
            text=text,
            writes=[Write(expected=0, status=NodeStatus.CANDIDATE, text=digest_of(text))],
        )
        if not isinstance(proposed, Proposed):
            return
        candidate, decision = proposed.citation, Decision.manual("user-1")
        if self.rng.random() < 0.7:
            await self.do(
                "ActivateCandidates",
                self.new_id(),
                lambda memory, options: memory.activate(candidate, decision, **options),
                text=text,
                writes=[_of(candidate, NodeStatus.ACTIVE)],
            )
        else:
            await self.do(
                "RejectCandidates",
                self.new_id(),
                lambda memory, options: memory.reject(candidate, decision, **options),
                writes=[_of(candidate, NodeStatus.TOMBSTONED)],
            )


def _of(cited: Citation, status: NodeStatus, text: str | None = None) -> Write:
    digest = None if text is None else digest_of(text)
    return Write(node_id=cited.node_id, expected=cited.node_revision, status=status, text=digest)
