"""Histories made by hand: what callers know and what a service lists, each right until a test makes it wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

from durable_memory_client import ChangeSet, Citation, Namespace, NodeChange, NodeStatus
from tests.qualification.checks.kernel import chained
from tests.qualification.recorder.history import (
    Call,
    Effect,
    History,
    Made,
    Outcome,
    Process,
    Recalled,
    RecalledHit,
    Write,
)

NAMESPACE = Namespace("acme", "user-1", "default")
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


def content_digest(text: str) -> str:
    """What citations of a text say, here: a text is named by a word, which is its own digest elsewhere."""
    return f"{text:0>64}"


class Story:
    """One namespace. Each command takes a second, and the next one begins a second later, unless they are told when."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.changes: list[ChangeSet] = []
        self.now = 10.0

    @property
    def history(self) -> History:
        started = Process(process="p", seed="1", began=0.0, wall=0.0, pid=1)
        return History(processes=[started], calls=list(self.calls))

    def remember(self, node_id: str, text: str, **options: object) -> Call:
        return self.change("Remember", node_id, 1, text=text, **options)  # type: ignore[arg-type]

    def revise(self, node_id: str, revision: int, text: str, **options: object) -> Call:
        return self.change("ReviseMemory", node_id, revision, text=text, **options)  # type: ignore[arg-type]

    def retire(self, node_id: str, revision: int, **options: object) -> Call:
        return self.change("RetireMemory", node_id, revision, status="ARCHIVED", **options)  # type: ignore[arg-type]

    def change(
        self,
        method: str,
        node_id: str,
        revision: int,
        *,
        text: str | None = None,
        status: str = "ACTIVE",
        request_id: str = "",
        outcome: Outcome = Outcome.OK,
        reason: str = "",
        listed: bool | None = None,
        began: float | None = None,
        ended: float | None = None,
        caller: str = "caller",
    ) -> Call:
        """A command that makes this revision of a node, or would have. `listed`: whether the history has it."""
        request_id = request_id or f"{node_id}-{revision}"
        began = self.now if began is None else began
        ended = began + 1.0 if ended is None else ended
        self.now = max(self.now, began + 2.0)
        if listed is None:
            listed = outcome is Outcome.OK
        if listed:
            self._list(method, request_id, node_id, revision, status, text)
        at = len(self.changes)
        made = outcome is Outcome.OK
        call = Call(
            method=method,
            request_id=request_id,
            began=began,
            ended=ended if outcome is not Outcome.UNKNOWN else max(began, ended),
            outcome=outcome,
            reason=reason,
            effect=Effect(revision=at, answer=f"{node_id}@{revision}", made=(Made(node_id, revision),))
            if made
            else None,
            history_id="h" if made else "",
            token_revision=at if made else None,
            wall=began,
            writes=(Write(node_id=node_id, expected=revision - 1, status=status, text=text),),
            process="p",
            caller=caller,
            command=len(self.calls) + 1,
        )
        self.calls.append(call)
        return call

    def unknown(self, method: str, node_id: str, revision: int, **options: object) -> Call:
        """A command whose caller never learns what became of it."""
        return self.change(
            method,
            node_id,
            revision,
            outcome=Outcome.UNKNOWN,
            reason="UNAVAILABLE",
            ended=math.inf,
            **options,  # type: ignore[arg-type]
        )

    def recalled(self, node_id: str, text: str, *hits: RecalledHit, revision: int | None = None) -> Recalled:
        """A recall by words about a node with this text, now, for the present revision unless told another."""
        self.now += 2.0
        return Recalled(
            began=self.now - 1.5,
            ended=self.now - 1.0,
            method="PreviewRecall",
            asked_node=node_id,
            asked_text=text,
            mode_asked="LEXICAL",
            mode_used="LEXICAL",
            history_id="h",
            revision=len(self.changes) if revision is None else revision,
            hits=hits,
            max_results=5,
            process="p",
            caller="reader",
        )

    def _list(self, method: str, request_id: str, node_id: str, revision: int, status: str, text: str | None) -> None:
        at = len(self.changes) + 1
        digest = f"{at:064x}"
        previous = self.changes[-1].chain_digest if self.changes else "0" * 64
        before = [one for change in self.changes for one in change.changes if one.citation.node_id == node_id]
        content = content_digest(text) if text is not None else before[-1].citation.content_digest
        change = NodeChange(
            citation=Citation(at, node_id, revision, content),
            revision_digest="0" * 64,
            operations=(),
            status_before=before[-1].status_after if before else None,
            status_after=NodeStatus(status),
            content_changed=text is not None,
        )
        self.changes.append(
            ChangeSet(
                namespace=NAMESPACE,
                namespace_revision=at,
                method=method,
                idempotency_key=request_id,
                occurred_at=NOON,
                committed_at=NOON,
                caller="development",
                changes=(change,),
                note="",
                digest=digest,
                chain_digest=chained(previous, at, digest),
            )
        )


def hit(node_id: str, revision: int, valid_from: int, text: str, *, by_meaning: bool = False) -> RecalledHit:
    return RecalledHit(
        node_id=node_id,
        revision=revision,
        valid_from=valid_from,
        content_digest=content_digest(text),
        text=text,
        by_meaning=by_meaning,
    )


def again(call: Call, *, at: float, outcome: Outcome = Outcome.OK, reason: str = "") -> Call:
    """Another attempt of the same command."""
    effect = call.effect if outcome is Outcome.OK else None
    return replace(call, began=at, ended=at + 1.0, wall=at, outcome=outcome, reason=reason, effect=effect)
