"""`engpass agent`: the process on each host that makes traffic; docs/agent.md is its contract."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from engpass import _engpass
from engpass.error import EngpassError


def command(
    max_rate: Annotated[
        str | None,
        typer.Option("--max-rate", metavar="RATE", help="The most payload per flow, as in '1 Gbit/s'."),
    ] = None,
    max_bytes: Annotated[
        str | None,
        typer.Option("--max-bytes", metavar="SIZE", help="The most payload of a flow, as in '10 GB'."),
    ] = None,
    max_time: Annotated[
        str | None, typer.Option("--max-time", metavar="TIME", help="The longest flow, as in '60 s'.")
    ] = None,
    silence: Annotated[
        str,
        typer.Option("--silence", metavar="TIME", help="End when the controller says nothing for so long."),
    ] = "60 s",
) -> None:
    """Make traffic on this host for a controller, which speaks JSON on standard input and output.

    The limits are those of the owner of this host: no controller can raise them. The agent ends with its
    input.
    """
    # Ctrl-C at a terminal reaches all its processes. The controller handles it and closes the channel.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = _engpass.agent(max_rate, max_bytes, max_time, silence)
    except ValueError as error:
        raise EngpassError(str(error), "write numbers with units, as in `engpass agent --help`") from None
    raise typer.Exit(code)
