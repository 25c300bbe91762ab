"""The command tree: which commands there are, and what they are called."""

from __future__ import annotations

import typer

from durable_memory.cli.serve import check_config, migrate, serve

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
