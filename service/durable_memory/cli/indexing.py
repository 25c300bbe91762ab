"""Commands about the vector index behind recall by meaning: status, refresh, rebuild, receipts, schedule, clear."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Annotated, Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory.cli.index_words import done, facts, memories, when
from durable_memory.cli.output import Output, Row
from durable_memory.cli.own_session import OWN_SESSION, own_session
from durable_memory.cli.times import duration
from durable_memory_client import (
    IndexConsistency,
    Refresh,
    RefreshPhase,
    RefreshProgress,
    RefreshReceipt,
    RefreshSchedule,
)
from durable_memory_client.errors import LeaseHeldError

_STEPS: Final = {
    RefreshPhase.DIFFING: "compare",
    RefreshPhase.EMBEDDING: "embed",
    RefreshPhase.STAGING: "write",
    RefreshPhase.PUBLISHED: "published",
    RefreshPhase.UNCHANGED: "unchanged",
}

_TURN_SECONDS: Final = 0.5

SessionId = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        show_default=False,
        help=f"The session whose generation counts [default: `{OWN_SESSION}`, bound to the server's]",
    ),
]
Wait = Annotated[str, typer.Option(metavar="TIME", help="How long to wait for another refresh that is at it")]
AnyBackend = Annotated[
    bool, typer.Option("--any-backend", help="Also where the index cannot compare revisions: the last writer wins")
]


async def status(invocation: Invocation) -> None:
    """Say how the index stands.

    What is published, how many active memories it does not cover, when it is refreshed, and how the maintenance of the
    server that answers is doing.
    """
    memory, output = invocation.memory, invocation.output
    stands = await memory.get_index_status()
    maintenance = await memory.get_maintenance_health()
    if output.as_json:
        output.json({"status": stands, "maintenance": maintenance})
        return
    output.facts(facts(invocation.times, stands, maintenance))


async def refresh(
    invocation: Invocation,
    *,
    session: SessionId = None,
    any_backend: AnyBackend = False,
    wait: Wait = "1m",
    request_id: given.RequestId = None,
) -> None:
    """Make the index cover every active memory, now.

    Vectors that were made before are not made again. Needs the writer role.
    """
    await _refresh(invocation, session, any_backend, duration("--wait", wait), request_id, rebuild=False)


async def rebuild(
    invocation: Invocation,
    *,
    session: SessionId = None,
    any_backend: AnyBackend = False,
    wait: Wait = "1m",
    request_id: given.RequestId = None,
) -> None:
    """Write the whole index anew, from cached vectors.

    For an index that you do not trust; what it has lost by itself, any refresh finds. Needs the writer role.
    """
    await _refresh(invocation, session, any_backend, duration("--wait", wait), request_id, rebuild=True)


async def receipts(
    invocation: Invocation,
    *,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many")] = 20,
) -> None:
    """List what refreshes left on record, newest first.

    With --json, one object a line.
    """
    output, times = invocation.output, invocation.times
    rows: list[Row] = []
    shown = 0
    async for receipt in invocation.memory.list_receipts(page_size=min(limit, 500)):
        if shown == limit:
            break
        shown += 1
        if output.as_json:
            output.json(receipt)
            continue
        rows.append(
            Row(
                reference=str(receipt.fence),
                cells=(
                    times.show(receipt.written_at),
                    str(receipt.index_revision) if receipt.index_revision else "none",
                    str(receipt.source.namespace_revision) if receipt.index_revision else "none",
                    f"{receipt.indexed_count:,} of {receipt.active_count:,}",
                ),
                text=done(receipt),
                details="written by the next refresh" if receipt.completed_by_successor else "",
            )
        )
    if not output.as_json:
        output.rows(
            ("written", "index", "covers revision", "indexed"),
            rows,
            text="what it did",
            kind="fence",
            empty=f"No refresh yet ({invocation.where}).",
        )


async def schedule(
    invocation: Invocation,
    *,
    every: Annotated[
        str | None, typer.Option(metavar="TIME", show_default=False, help="Refresh every so often, such as 15m or 1d")
    ] = None,
    on_change: Annotated[
        str | None, typer.Option(metavar="TIME", show_default=False, help="Refresh so long after a change, such as 2s")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Only by `index refresh`")] = False,
    request_id: given.RequestId = None,
) -> None:
    """Show when the index is refreshed by itself, or say when it should be.

    What you do not name is switched off. Setting it needs the operator role.
    """
    output = invocation.output
    if off and (every is not None or on_change is not None):
        raise ValueError("give --off, or the times")
    if off or every is not None or on_change is not None:
        holds: RefreshSchedule | None = await invocation.memory.set_schedule(
            interval=None if every is None else duration("--every", every),
            on_change_delay=None if on_change is None else duration("--on-change", on_change),
            request_id=request_id or invocation.request_id,
        )
    else:
        holds = (await invocation.memory.get_index_status()).schedule
    if output.as_json:
        output.json(holds)
        return
    output.line(when(holds))
    if holds is not None:
        output.line(f"set by {holds.set_by}, {invocation.times.show(holds.set_at)}", style="dim")


async def clear(invocation: Invocation, *, request_id: given.RequestId = None) -> None:
    """Forget the published vectors; memories are not touched.

    Recall goes on by words. The next refresh builds the index from cached vectors. Needs the operator role.
    """
    receipt = await invocation.memory.clear_partition(request_id=request_id or invocation.request_id)
    if invocation.output.as_json:
        invocation.output.json(receipt)
        return
    invocation.output.line(f"cleared: {memories(receipt.active_count)}, found by words from now on")


async def _refresh(
    invocation: Invocation,
    session: str | None,
    any_backend: bool,
    wait: timedelta,
    request_id: str | None,
    *,
    rebuild: bool,
) -> None:
    output = invocation.output
    refreshing = invocation.memory.refresh_semantic_recall(
        session or (await own_session(invocation)).session_id,
        requirement=IndexConsistency.LAST_WRITER_WINS if any_backend else IndexConsistency.INDEX_REVISION_CAS,
        rebuild=rebuild,
        request_id=request_id or invocation.request_id,
    )
    with _progress(output) as advance:
        receipt = await _in_turn(refreshing, advance, output, wait)
    if output.as_json:
        output.json(receipt)
        return
    output.line(
        f"indexed: {receipt.indexed_count:,} of {memories(receipt.active_count)}, as of revision "
        f"{receipt.source.namespace_revision}; index revision {receipt.index_revision}"
    )
    output.line(done(receipt), style="dim")


async def _in_turn(
    refreshing: Refresh, advance: Callable[[RefreshProgress], None], output: Output, wait: timedelta
) -> RefreshReceipt:
    """Refresh when whoever is at it now has ended: a schedule, most often, and then there is little left to do.

    Raises: LeaseHeldError if that takes too long.
    """
    turns = int(wait.total_seconds() / _TURN_SECONDS)
    for turn in range(turns):
        try:
            return await refreshing.wait(advance)
        except LeaseHeldError:
            if turn == 0:
                output.note("another refresh is at it: waiting for its end")
        await asyncio.sleep(_TURN_SECONDS)
    return await refreshing.wait(advance)


@contextmanager
def _progress(output: Output) -> Iterator[Callable[[RefreshProgress], None]]:
    """A bar on stderr where a person looks at it."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=output.errors,
        transient=True,
        disable=not output.errors.is_terminal or output.as_json,
    )
    with bar:
        task = bar.add_task("refresh", total=None)

        def advance(step: RefreshProgress) -> None:
            bar.update(
                task,
                description=_STEPS.get(step.phase, step.phase.lower()),
                completed=step.done,
                total=step.total or None,
            )

        yield advance
