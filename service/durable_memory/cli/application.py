"""The command tree: which commands there are, and what they are called."""

from __future__ import annotations

import typer

from durable_memory.cli.changing import reactivate, retire, revise, supersede
from durable_memory.cli.connected import connected
from durable_memory.cli.deciding import activate, candidates, reject
from durable_memory.cli.inspecting import info, sessions, usage
from durable_memory.cli.recalling import explain, recall
from durable_memory.cli.remembering import propose, remember
from durable_memory.cli.serve import check_config, migrate, serve
from durable_memory.cli.showing import list_nodes, show
from durable_memory.cli.transferring import export, import_namespace
from durable_memory.cli.watching import watch

app = typer.Typer(
    help="The memory of record for AI agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("serve")(serve)
app.command("migrate")(migrate)
app.command("check-config")(check_config)

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
    ("sessions", sessions),
    ("usage", usage),
    ("export", export),
    ("import", import_namespace),
    ("info", info),
):
    app.command(name)(connected(body))
