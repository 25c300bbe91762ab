"""Commands that change a memory that is there: revise, retire, reactivate, supersede."""

from __future__ import annotations

from typing import Annotated

import typer

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory.cli.remembering import DraftOptions, NodeId
from durable_memory_client import RevisionKind


async def revise(
    invocation: Invocation,
    name: given.Exact,
    text: given.Text = None,
    file: given.TextFile = None,
    *,
    why: Annotated[
        RevisionKind, typer.Option(case_sensitive=False, help="It was wrong, or becomes more exact")
    ] = RevisionKind.CORRECTION,
    author: Annotated[str | None, typer.Option(metavar="NAME", show_default=False, help="Who said it")] = None,
    occurred: Annotated[
        str | None, typer.Option(metavar="TIME", show_default=False, help="When what it tells of happened")
    ] = None,
    label: given.Labels = None,
    remove_label: Annotated[
        list[str] | None, typer.Option(metavar="KEY", show_default=False, help="Take a label away; repeatable")
    ] = None,
    source: given.SourceOptions,
    decision: given.DecisionOptions,
    request_id: given.RequestId = None,
) -> None:
    """Correct or refine a memory: its next revision.

    The old one stays readable under its citation.
    """
    done = await invocation.memory.revise(
        await given.exact(invocation.memory, name),
        content=given.read_text(invocation, text, file),
        kind=why,
        author=author,
        occurred_at=None if occurred is None else invocation.times.given("--occurred", occurred),
        set_labels=given.labels(label),
        remove_labels=remove_label or (),
        evidence=source.evidence(),
        decision=decision.decision(),
        request_id=request_id or invocation.request_id,
    )
    _say(invocation, done, f"revised: {given.short(done.citation)}")


async def retire(
    invocation: Invocation,
    name: given.Exact,
    *,
    decision: given.DecisionOptions,
    request_id: given.RequestId = None,
) -> None:
    """Take a memory out of recall.

    Nothing is deleted; `reactivate` brings it back.
    """
    done = await invocation.memory.retire(
        await given.exact(invocation.memory, name),
        decision=decision.decision(),
        request_id=request_id or invocation.request_id,
    )
    _say(invocation, done, f"retired: {given.short(done.citation)}")


async def reactivate(
    invocation: Invocation,
    name: given.Exact,
    *,
    decision: given.DecisionOptions,
    request_id: given.RequestId = None,
) -> None:
    """Bring a retired memory back into recall.

    Or decide for one that is in conflict.
    """
    done = await invocation.memory.reactivate(
        await given.exact(invocation.memory, name),
        decision=decision.decision(),
        request_id=request_id or invocation.request_id,
    )
    said = "active already" if done.outcome == "UNCHANGED" else "active again"
    _say(invocation, done, f"{said}: {given.short(done.citation)}")


async def supersede(
    invocation: Invocation,
    name: given.Exact,
    text: given.Text = None,
    file: given.TextFile = None,
    node_id: NodeId = None,
    *,
    about: DraftOptions,
    source: given.SourceOptions,
    decision: given.DecisionOptions,
    request_id: given.RequestId = None,
) -> None:
    """Replace a memory by a new one.

    At once, and each names the other.
    """
    content = given.required_text(invocation, text, file)
    done = await invocation.memory.supersede(
        await given.exact(invocation.memory, name),
        about.draft(content, source.evidence(), invocation.times),
        node_id=node_id,
        decision=decision.decision(),
        request_id=request_id or invocation.request_id,
    )
    _say(invocation, done, f"{given.short(done.superseded_citation)} is superseded by {given.short(done.citation)}")


def _say(invocation: Invocation, done: object, words: str) -> None:
    if invocation.output.as_json:
        invocation.output.json(done)
    else:
        invocation.output.line(words)
