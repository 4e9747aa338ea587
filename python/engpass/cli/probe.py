"""`engpass probe`: measures memory, buses and sockets of this host."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated
from unicodedata import category

import typer

from engpass.cli import console, files
from engpass.error import EngpassError

if TYPE_CHECKING:
    pass

Quick = Annotated[bool, typer.Option("--quick", help="Measure for some seconds instead of almost a minute.")]
Report = Annotated[str | None, typer.Option("--report", metavar="FILE", help="Also write an HTML page.")]
Figures = Annotated[
    str | None,
    typer.Option(
        "--figures", metavar="DIR", help="Also write the figures to this directory, as PNG and SVG."
    ),
]
Save = Annotated[
    str | None,
    typer.Option("--save", metavar="FILE", help="Write the host as a table for a testbed file."),
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Name of the table (default: name of the host).")
]
Directory = Annotated[
    str | None,
    typer.Option("--disk", metavar="DIR", help="Directory for disk transfers that bypass the page cache."),
]


def command(
    quick: Quick = False,
    report: Report = None,
    figures: Figures = None,
    save: Save = None,
    name: Name = None,
    disk: Directory = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output.")
    ] = False,
) -> None:
    """Measure this host: memory by working set, kernel copies, sockets, packets, timers, buses, disk, GPU.

    Also shows the limit of each data path by the copy model, next to the rates that sockets reach. Needs no
    privileges and leaves no files behind. The output gives the reason for everything that was not measured.
    """
    from engpass.probe import probe

    # Check the output files now, and not after a minute of measuring.
    targets = [
        None if save is None else files.target(save, make=False),
        None if report is None else files.target(files.html(report)),
    ]
    pictures = None if figures is None else files.folder(figures)
    # The check of a testbed has the same rule for names of hosts.
    if name is not None and (not name.strip() or any(category(letter) == "Cc" for letter in name)):
        raise EngpassError(f"`--name {name!r}` is not a valid host name", "use printable characters")
    with _bar() as watch:
        made = probe(quick=quick, name=name, directory=disk, watch=watch)
    if as_json:
        console.line({"name": made.name, "when": made.when, **json.loads(made.text)})
    else:
        from engpass.show.terminal import print_blocks
        from engpass.views.probe import view

        print_blocks(view(made), console.tables())
    if targets[0] is not None:
        files.write(targets[0], f"# {made.when}\n{made.table}")
        console.tell(f"host `[host.{made.name}]` written to `{save}`")
    if targets[1] is not None:
        from engpass.report.page import render_probe

        files.write(targets[1], render_probe(made))
        console.tell(f"page written to `{report}`")
    if pictures is not None:
        from engpass.report.probe import figures as drawings

        files.pictures(drawings(made), str(pictures))
    if made.doubts:
        doubts = "\n".join(f"warning: {doubt}" for doubt in made.doubts)
        console.tell(f"{doubts}\nhelp: repeat the probe while no other programs run")


@contextmanager
def _bar() -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a progress bar on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=screen, transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, total, about: shown.update(task, completed=done, total=total, description=about)
