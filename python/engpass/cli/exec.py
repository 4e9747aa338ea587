"""`engpass exec`: a program in a host of a testbed that is up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from engpass.cli import console
from engpass.cli.down import File

if TYPE_CHECKING:
    from engpass.netlab import Lab

Host = Annotated[str, typer.Argument(metavar="HOST", help="Name of the host in the file.")]
Words = Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="The program and its arguments.")]


def command(file: File, host: Host, words: Words) -> None:
    """Run a program in a host of a testbed that is up; its exit code is this command's.

    The addresses of the other hosts are in its environment, as `ENGPASS_ADDRESS_NAME`.
    """
    from engpass import netlab

    enter(netlab.find(file), host, words)


def enter(lab: Lab, host: str, words: list[str]) -> NoReturn:
    """Become a program in a host."""
    from engpass import netlab
    from engpass.netlab import kernel

    kernel.check_tools()
    member = netlab.member(lab, host)
    environment = {**os.environ, "ENGPASS_HOST": host}
    for other, address in lab.ways.get(host, {}).items():
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in other).upper()
        environment[f"ENGPASS_ADDRESS_{name}"] = address
    argv = lab.kernel.inside(member.namespace, words)
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 (no shell is meant)
    except OSError as error:
        console.fail(f"`{argv[0]}` cannot be run: {error.strerror}", "install `iproute2` and `util-linux`")
