"""Commands that bring something new: remember, propose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory.cli.grouped import OptionGroup
from durable_memory.cli.times import Times
from durable_memory_client import Draft, Evidence, NodeKind

NodeId = Annotated[
    str | None, typer.Option("--id", metavar="ID", help="The memory's id [default: a new one]", show_default=False)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftOptions(OptionGroup):
    """What is said of a new memory beside its text."""

    kind: Annotated[NodeKind, typer.Option(case_sensitive=False, help="A fact, an event, or how to do something")] = (
        NodeKind.SEMANTIC
    )
    author: Annotated[str, typer.Option(metavar="NAME", show_default=False, help="Who said it, at its source")] = ""
    occurred: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            show_default=False,
            help="When what it tells of happened: 2030-01-31, 2030-01-31T18:05, or how long ago, such as 3d",
        ),
    ] = None
    label: given.Labels = None
    confidence: Annotated[
        float | None, typer.Option(metavar="0..1", show_default=False, help="How sure the source is")
    ] = None
    importance: Annotated[
        float | None, typer.Option(metavar="0..1", show_default=False, help="How much it matters")
    ] = None
    surrounding: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", show_default=False, help="A text that stood around it, nearest first; up to 4"),
    ] = None

    def draft(self, content: str, evidence: tuple[Evidence, ...], times: Times) -> Draft:
        """Raises: ValueError."""
        return Draft(
            content=content,
            kind=self.kind,
            evidence=evidence,
            surroundings=tuple(self.surrounding or ()),
            author=self.author,
            occurred_at=None if self.occurred is None else times.given("--occurred", self.occurred),
            confidence=self.confidence,
            importance=self.importance,
            labels=given.labels(self.label),
        )


async def remember(
    invocation: Invocation,
    text: given.Text = None,
    file: given.TextFile = None,
    node_id: NodeId = None,
    *,
    about: DraftOptions,
    source: given.SourceOptions,
    decision: given.DecisionOptions,
    request_id: given.RequestId = None,
) -> None:
    """Remember something at once: it is recalled from now on.

    You decide, so it takes the roles writer and activator. An agent proposes instead.
    """
    content = given.required_text(invocation, text, file)
    done = await invocation.memory.remember(
        about.draft(content, source.evidence(), invocation.times),
        node_id=node_id,
        decision=decision.decision(),
        request_id=request_id or invocation.request_id,
    )
    if invocation.output.as_json:
        invocation.output.json(done)
        return
    said = "known already" if done.outcome == "UNCHANGED" else "remembered"
    invocation.output.line(f"{said}: {given.short(done.citation)}")


async def propose(
    invocation: Invocation,
    text: given.Text = None,
    file: given.TextFile = None,
    node_id: NodeId = None,
    *,
    about: DraftOptions,
    source: given.SourceOptions,
    repropose: Annotated[bool, typer.Option("--repropose", help="Also if it was rejected before")] = False,
    request_id: given.RequestId = None,
) -> None:
    """Propose something: a candidate, not recalled yet.

    It is recalled once somebody activates it. Without a source, the proposal itself is taken as your statement.
    """
    content = given.required_text(invocation, text, file)
    request_id = request_id or invocation.request_id
    own = Evidence.user_statement(f"statement:command-line/{request_id}", content)
    done = await invocation.memory.propose(
        about.draft(content, source.evidence() or (own,), invocation.times),
        node_id=node_id,
        repropose=repropose,
        request_id=request_id,
    )
    if invocation.output.as_json:
        invocation.output.json(done)
        return
    name = given.short(done.citation)
    said = {
        "CREATED": f"proposed: {name}",
        "CORROBORATED": f"proposed before, and has this evidence too now: {name}",
        "UNCHANGED": f"proposed before, with this evidence: {name}",
        "ALREADY_ACTIVE": f"active already: {name}",
        "PREVIOUSLY_REJECTED": f"rejected before: {name} (--repropose makes it a candidate again)",
    }
    invocation.output.line(said.get(done.outcome, f"{done.outcome}: {name}"))
    if done.outcome == "CREATED":
        invocation.output.note(f"To have it recalled: durable-memory activate {name}")
