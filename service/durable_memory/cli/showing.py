"""Commands that read what is there: show, list."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory.cli.output import Row
from durable_memory_client import Node, NodeRevision, NodeStatus

_UNSTATED: Final = 0.5


async def show(
    invocation: Invocation,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A memory: its id, id@revision, or the citation of a revision")
    ],
    *,
    history: Annotated[bool, typer.Option("--history", help="Every revision, oldest first")] = False,
) -> None:
    """Show a memory, or exactly what a citation names.

    With its evidence, however old it is, and with what has become of it since.
    """
    memory, output = invocation.memory, invocation.output
    named = given.Name.parse(name)
    if named.revision is None:
        node = await memory.get_node(named.node_id)
        current, status = node.citation, node.status
    else:
        citation = named.citation
        if citation is None:
            citation = (await memory.get_revision(NodeRevision(named.node_id, named.revision))).citation
        cited = await memory.get(citation)
        node, current, status = cited.node, cited.current_citation, cited.current_status
    revisions = await memory.list_revisions(node.id).all() if history else []
    if output.as_json:
        shown = {"node": node, "current_citation": current, "current_status": status}
        output.json({**shown, "history": revisions} if history else shown)
        return
    if history:
        for place, revision in enumerate(revisions):
            if place:
                output.line("")
            _show(invocation, revision, known=revisions[place - 1] if place else None)
        return
    _show(invocation, node)
    if current != node.citation:
        output.line(f"It is at {given.short(current)} now, {status}.", style="yellow")


async def list_nodes(
    invocation: Invocation,
    *,
    status: Annotated[
        list[NodeStatus] | None,
        typer.Option(case_sensitive=False, show_default=False, help="Only this status; repeatable [default: ACTIVE]"),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Whatever their status")] = False,
    kind: given.FilterKinds = None,
    label: given.FilterLabels = None,
    at: Annotated[
        int | None,
        typer.Option(min=0, metavar="REVISION", show_default=False, help="As it was at this namespace revision"),
    ] = None,
) -> None:
    """List memories, in the order of their ids.

    With --json, one object a line.
    """
    output = invocation.output
    listing = invocation.memory.list_nodes(
        statuses=() if every else status or (NodeStatus.ACTIVE,),
        kinds=kind or (),
        labels=given.labels(label),
        at_namespace_revision=at,
        include_surroundings=output.as_json,
    )
    if output.as_json:
        async for node in listing:
            output.json(node)
        return
    rows = [
        Row(
            reference=given.short(node.citation),
            cells=(node.status, node.kind, invocation.times.show_day(node.updated_at)),
            text=node.content,
            details=" ".join(f"{key}={value}" for key, value in sorted(node.labels.items())),
        )
        async for node in listing
    ]
    output.rows(("status", "kind", "changed"), rows, empty=f"No memories ({invocation.where}).")


def _show(invocation: Invocation, node: Node, known: Node | None = None) -> None:
    """All of a revision; with the one before it, only what is new beside the facts."""
    output, times = invocation.output, invocation.times
    output.line(f"{given.short(node.citation)}  {node.status}  {node.kind}", style="bold")
    if known is None or node.content != known.content:
        output.quote(node.content)
    elif not node.content:
        output.line("  (no content)", style="dim")
    else:
        output.line("  (the same text)", style="dim")
    held = set() if known is None else {(evidence.uri, evidence.digest) for evidence in known.evidence}
    output.facts(
        [
            ("citation", str(node.citation)),
            ("author", node.author),
            ("happened", times.show(node.occurred_at)),
            ("changed", times.show(node.updated_at)),
            ("committed", f"{times.show(node.committed_at)} at namespace revision {node.valid_from}"),
            ("replaced", "" if node.superseded_at is None else f"at namespace revision {node.superseded_at}"),
            ("decided by", node.decided_by),
            ("confidence", _annotation(node.confidence)),
            ("importance", _annotation(node.importance)),
            ("labels", " ".join(f"{key}={value}" for key, value in sorted(node.labels.items()))),
            *(("relation", f"{relation.kind} {relation.node_id}") for relation in node.relations),
            *(
                ("evidence", f"{evidence.kind}  {evidence.uri}  {times.show(evidence.occurred_at)}")
                for evidence in node.evidence
                if (evidence.uri, evidence.digest) not in held
            ),
            *(("around it", text) for text in node.surroundings if known is None or text not in known.surroundings),
        ]
    )


def _annotation(value: float) -> str:
    """What somebody stated; the default says nothing."""
    return "" if value == _UNSTATED else f"{value:g}"
