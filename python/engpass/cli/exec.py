"""`engpass exec`: runs a program in a host of a testbed that is up."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from engpass.cli import console
from engpass.cli.down import File

if TYPE_CHECKING:
    from engpass.netlab import Lab

Host = Annotated[
    str,
    typer.Argument(
        metavar="HOST", help="Name of the host in the file; if it begins with `-`, write `--` before it."
    ),
]
Words = Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="The program and its arguments.")]


def command(file: File, host: Host, words: Words) -> None:
    """Run a program in a host of a testbed that is up, and return its exit code.

    The environment variables `ENGPASS_ADDRESS_NAME` hold the addresses of the other hosts. NAME is in upper
    case, with `_` for characters other than letters and digits. Hosts with the same NAME have no variable.
    """
    from engpass import netlab

    # If a `--` precedes the host, the `--` before the program arrives as the first word.
    enter(netlab.find(file), host, words[1:] if words[0] == "--" and len(words) > 1 else words)


def typed(file: str, host: str) -> str:
    """The `engpass exec` command line for a host, quoted for a shell."""
    if host.startswith("-"):
        return f"engpass exec {quote(file)} -- {quote(host)} COMMAND"
    return f"engpass exec {quote(file)} {quote(host)} -- COMMAND"


def enter(lab: Lab, host: str, words: list[str]) -> NoReturn:
    """Replace this process by a program in a host of a testbed."""
    from engpass import child, netlab
    from engpass.netlab import host_variables, kernel

    kernel.check_tools()
    member = netlab.member(lab, host)
    _find(words[0])
    environment = {**os.environ, "ENGPASS_HOST": host}
    shared = host_variables.clashes(lab.hosts())
    for other, address in lab.ways.get(host, {}).items():
        if (name := host_variables.variable(other)) not in shared:
            environment[name] = address
    argv = lab.kernel.inside(member.namespace, words)
    try:
        # `argv[0]` is `ip` or `nsenter`; they look up the program itself in the user's own `PATH`.
        os.execve(child.find(argv[0]) or argv[0], argv, environment)  # noqa: S606 (no shell is meant)
    except OSError as error:
        console.fail(f"`{argv[0]}` cannot be run: {error.strerror}", "install `iproute2` and `util-linux`")


_NOT_EXECUTABLE, _NOT_FOUND = 126, 127
"""Exit codes of shells (POSIX.1-2017, shell command language, section 2.8.2)."""


def _find(program: str) -> None:
    """Exit as a shell does if the program is missing: hosts share the files of this machine."""
    import shutil
    from pathlib import Path

    if shutil.which(program) is not None:
        return
    if "/" in program and Path(program).exists():
        console.tell(f"error: `{program}` cannot be run: it is not executable\nhelp: check its permissions")
        raise typer.Exit(_NOT_EXECUTABLE)
    console.tell(f"error: program `{program}` not found\nhelp: install it, or check the name")
    raise typer.Exit(_NOT_FOUND)
