"""The command `engpass`: one file for each command, loaded only when the command is used.

Adding a command: write `cli/NAME.py` with a function `command`, and add a line to `COMMANDS`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_command

if TYPE_CHECKING:
    # Typer does not export these types.
    from typer._click import Command as TyperCommand
    from typer._click import Context, HelpFormatter


class Command(NamedTuple):
    """A command: its name, its module in `engpass.cli`, and its line in the help."""

    name: str
    module: str
    help: str


COMMANDS = [
    Command("check", "check", "Check a testbed file"),
    Command("limit", "limit", "Show the limit of each flow, and its bottleneck"),
    Command("run", "run", "Run every variant, swept value and repeat"),
    Command("search", "search", "Find the highest load that a path carries without loss"),
    Command("path", "path", "Measure a path and TCP over it (RFC 6349)"),
    Command("runs", "runs", "List the runs and searches in the store"),
    Command("show", "show", "Show a run: its settings, progress and results"),
    Command("compare", "compare", "Compare runs: the points that differ"),
    Command("explain", "explain", "Explain a point: use of the line, bottleneck, and helpful changes"),
    Command("report", "report", "Write a run as an HTML page, and its figures as images"),
    Command("export", "export", "Write the points of a run as CSV, Parquet or Arrow"),
    Command("up", "up", "Create the hosts of a testbed as network namespaces"),
    Command("exec", "exec", "Run a program in a host that is up"),
    Command("shell", "shell", "Open a shell in a host that is up"),
    Command("watch", "watch", "Watch an emulated testbed: rates, queues, losses"),
    Command("down", "down", "Remove a testbed that is up"),
    Command("ps", "ps", "List the testbeds that are up"),
    Command("clean", "clean", "Remove the remains of a crash"),
    Command("replay", "replay", "Replay the log of an emulated network, and compare the outputs"),
    Command("agent", "agent", "Generate traffic on this host for a controller"),
    Command("gallery", "gallery", "List the published studies that come with Engpass"),
    Command("reproduce", "reproduce", "Run a study and check its claims"),
    Command("probe", "probe", "Measure the memory, buses and sockets of this host"),
    Command("schema", "schema", "Print the JSON Schema of testbed files"),
    Command("catalogue", "catalogue", "Print all component kinds and their settings"),
]
"""All commands, in the order in which the help lists them."""


class _Commands(TyperGroup):
    """Finds commands in `COMMANDS`, so that the list in the help loads no module of a command."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002 (Typer's signature)
        return [command.name for command in COMMANDS]

    def get_command(self, ctx: Context, cmd_name: str) -> TyperCommand | None:  # noqa: ARG002 (as above)
        for command in COMMANDS:
            if command.name == cmd_name:
                return _loaded(command)
        return None

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, TyperCommand | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from engpass.error import nearest

            ctx.fail(f"unknown command `{args[0]}`\nhelp: {nearest(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002 (as above)
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.help) for command in COMMANDS])


def _loaded(command: Command) -> TyperCommand:
    from engpass.cli.console import guarded

    module = import_module(f"engpass.cli.{command.module}")
    single = typer.Typer(rich_markup_mode=None, add_completion=False)
    single.command(command.name, help=module.command.__doc__ or command.help)(guarded(module.command))
    return get_command(single)


# Help by Rich looks better, but takes three times as long.
app = typer.Typer(
    cls=_Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from engpass import _engpass

        typer.echo(f"engpass {_engpass.version()}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Engpass, a laboratory for network throughput.

    Describe a network in one file; see how much of its line rate reaches the application, where the rest
    goes, and what to change.
    """


def main() -> None:
    """Runs the command `engpass`, and ends the process with its exit code."""
    from engpass.cli.console import finished, prepare, unwritable

    prepare()
    try:
        app(prog_name="engpass")
    except SystemExit as exit_:
        sys.exit(finished(exit_.code))
    except OSError as error:
        # Only help and messages of Typer raise this here: commands catch it themselves in `guarded`.
        sys.exit(finished(unwritable(error)))
