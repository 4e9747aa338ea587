"""`engpass down`: removes a testbed that is up."""

from __future__ import annotations

from typing import Annotated

import typer

from engpass.cli import console

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Testbed file that is up, or an id that `engpass ps` shows.")
]


def command(file: File) -> None:
    """Remove a testbed that is up: its namespaces and devices, and the programs that run in them.

    Also removes a testbed whose driver has ended, or that a crash left behind. Exit code 1 if a capture or
    the log is incomplete.
    """
    from engpass import netlab
    from engpass.netlab import emulated

    lab = netlab.find(file, lost=True)
    if (why := emulated.why_ended(lab)) is not None:
        console.tell(f"the driver of `{file}` had ended: {why}")
    elif lab.is_lost():
        console.tell(f"`{file}` is a remainder of a crash")
    written = netlab.down(lab)
    whole = console.tell_captured(written.captured)
    whole &= console.tell_broken([written.broken_log] if written.broken_log else [])
    console.tell(f"{lab.id} is down: {len(lab.members)} namespaces removed")
    raise typer.Exit(console.OK if whole else console.FAILED)
