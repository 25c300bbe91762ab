"""The command tree: which commands there are, and what they are called."""

from __future__ import annotations

from typing import Annotated

import typer

from durable_memory import __version__
from durable_memory.cli import indexing, sessions
from durable_memory.cli.changing import reactivate, retire, revise, supersede
from durable_memory.cli.connected import connected, unless_a_command_follows
from durable_memory.cli.deciding import activate, candidates, reject
from durable_memory.cli.inspecting import info, usage
from durable_memory.cli.qualify import qualify
from durable_memory.cli.recalling import explain, recall
from durable_memory.cli.remembering import propose, remember
from durable_memory.cli.serve import check_config, migrate, serve
from durable_memory.cli.showing import list_nodes, show
from durable_memory.cli.transferring import export, import_namespace
from durable_memory.cli.watching import watch

app = typer.Typer(
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit", is_eager=True)] = False,
) -> None:
    """The memory of record for AI agents.

    Nothing has to be running: `durable-memory remember "The office opens at 8."` keeps it in a file in your data
    folder, and `durable-memory recall office` finds it. `serve` is for programs that share the memory; the other
    commands then talk to it.

    Exit codes: 0 done; 1 refused, with the reason and what to do next on stderr; 2 wrong command line, settings or
    input file; 3 nobody answers, or not now; 130 ended by Ctrl-C, 143 by SIGTERM.
    """
    if version:
        typer.echo(__version__)
        raise typer.Exit


app.command("serve")(serve)
app.command("migrate")(migrate)
app.command("check-config")(check_config)
app.command("qualify")(qualify)

for name, body in (
    ("remember", remember),
    ("propose", propose),
    ("candidates", candidates),
    ("activate", activate),
    ("reject", reject),
    ("recall", recall),
    ("explain", explain),
    ("list", list_nodes),
    ("show", show),
    ("revise", revise),
    ("retire", retire),
    ("reactivate", reactivate),
    ("supersede", supersede),
    ("watch", watch),
    ("usage", usage),
    ("export", export),
    ("import", import_namespace),
    ("info", info),
):
    app.command(name)(connected(body, by_meaning=body in (recall, explain)))

listing = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
listing.callback()(unless_a_command_follows(connected(sessions.sessions)))
listing.command("rebind")(connected(sessions.rebind, by_meaning=True))
listing.command("close")(connected(sessions.close))
app.add_typer(listing, name="sessions", short_help="List the sessions of the namespace; rebind or close one.")

index = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(index, name="index", help="Look after the vector index behind recall by meaning.")

for name, body in (
    ("status", indexing.status),
    ("refresh", indexing.refresh),
    ("rebuild", indexing.rebuild),
    ("receipts", indexing.receipts),
    ("schedule", indexing.schedule),
    ("clear", indexing.clear),
):
    index.command(name)(connected(body, by_meaning=True))
