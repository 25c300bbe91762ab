"""Commands about the service and its records: usage, info."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from durable_memory.cli import arguments as given
from durable_memory.cli.connected import Invocation
from durable_memory.cli.output import Row


async def usage(
    invocation: Invocation,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="Only these memories [default: all that have any]", show_default=False),
    ] = None,
) -> None:
    """Count the admissions and uses of each revision.

    How often it entered a model's input, and how often it was cited or acted on. With --json, one object a line.
    """
    output, times = invocation.output, invocation.times
    listing = invocation.memory.usage([given.Name.parse(name).node_id for name in names or ()])
    if output.as_json:
        async for summary in listing:
            output.json(summary)
        return
    rows = [
        Row(
            reference=f"{summary.node_revision.node_id}@{summary.node_revision.revision}",
            cells=(
                str(summary.admission_count),
                times.show(summary.last_admitted_at),
                str(summary.use_count),
                times.show(summary.last_used_at),
            ),
            text=f"{summary.node_revision.node_id}@{summary.node_revision.revision}",
        )
        async for summary in listing
    ]
    output.rows(
        ("admitted", "last", "used", "last"), rows, empty=f"Nothing was admitted or used yet ({invocation.where})."
    )


async def info(invocation: Invocation) -> None:
    """Say which service answers, and where the namespace stands.

    With who you are to it, the profiles and modes of recall, and the limits that hold.
    """
    output, memory = invocation.output, invocation.memory
    server = await memory.server_info()
    token = await memory.get_change_token()
    place = invocation.place
    if output.as_json:
        output.json(
            {
                "server": server,
                "address": None if place.opened is not None else place.address,
                "opened": place.opened,
                "namespace": memory.ref,
                "change_token": token,
            }
        )
        return
    output.facts(
        [
            ("service", f"Durable Memory {server.version}"),
            ("where", place.address if place.opened is None else f"{place.opened}, opened by this command"),
            ("you", server.caller),
            ("tenant", memory.ref.tenant or "(the credential's)"),
            ("principal", memory.ref.principal or "(the credential's)"),
            ("scope", memory.ref.scope or "(the credential's)"),
            ("revision", f"{token.namespace_revision} of history {token.history_id}"),
            ("recall", ", ".join(server.recall_modes)),
            ("profiles", ", ".join(server.lexical_profiles)),
        ]
    )
    output.line("limits", style="bold")
    output.facts((f"  {name}", _amount(limit)) for name, limit in server.limits.items())


def _amount(limit: int | timedelta) -> str:
    return f"{limit.total_seconds():g} s" if isinstance(limit, timedelta) else f"{limit:,}"
