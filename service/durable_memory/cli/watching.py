"""The command that follows a namespace: watch."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory_client import ChangeToken, WatchedChange

_PATIENCE_SECONDS: Final = 3.0


async def watch(
    invocation: Invocation,
    *,
    after: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="REVISION", show_default=False, help="Changes after this namespace revision [default: now]"
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="From the first change on")] = False,
    count: Annotated[
        int | None, typer.Option(min=1, metavar="N", show_default=False, help="End after N changes [default: never]")
    ] = None,
    texts: Annotated[bool, typer.Option("--texts", help="Show the texts too")] = False,
) -> None:
    """Print changes as they are committed.

    All of the namespace, in order and without gaps, until Ctrl-C, and through restarts of a server. With --json, one
    object a line.
    """
    output = invocation.output
    start: ChangeToken | int | None = invocation.kept.get("position", 0 if every else after)
    left = invocation.kept.get("left", count)
    # A server that another command opened for itself goes for good; one at an address comes back.
    patience = None if invocation.place.stated else _PATIENCE_SECONDS
    async with invocation.memory.watch(start, include_nodes=texts or output.as_json, give_up_after=patience) as changes:
        if start is None:
            output.note("Waiting for changes; Ctrl-C ends it.")
        async for change in changes:
            _print(invocation, change, texts)
            left = None if left is None else left - 1
            invocation.kept.update(position=change.change_token, left=left)
            output.written = False  # a repetition goes on after it
            if left == 0:
                return


def _print(invocation: Invocation, change: WatchedChange, texts: bool) -> None:
    output = invocation.output
    if output.as_json:
        output.json(change)
        return
    made = change.change_set
    note = f"  ({made.note})" if made.note else ""
    output.line(
        f"{made.namespace_revision}  {invocation.times.show(made.committed_at)}  {made.method} by {made.caller}{note}",
        style="bold",
    )
    contents = {given.short(node.citation): node.content for node in change.nodes}
    for node in made.changes:
        moved = (
            node.status_after
            if node.status_before in (None, node.status_after)
            else (f"{node.status_before} -> {node.status_after}")
        )
        output.line(f"  {given.short(node.citation)}  {moved}  {', '.join(node.operations)}")
        if texts and node.content_changed:
            output.quote("  " + contents.get(given.short(node.citation), ""))
