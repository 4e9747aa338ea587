"""`engpass down`: remove a testbed that is up."""

from __future__ import annotations

from typing import Annotated

import typer

from engpass.cli import console

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Testbed file that is up, or an id of `engpass ps`.")
]


def command(file: File) -> None:
    """Remove a testbed that is up: its namespaces, devices, and the programs that run in them."""
    from engpass import netlab

    lab = netlab.find(file)
    captured = netlab.down(lab)
    console.tell_captured(captured)
    console.tell(f"{lab.id} is down: {len(lab.members)} namespaces removed")
