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
        typer.Option(
            "--max-rate",
            metavar="RATE",
            help="Payload rate that no flow may exceed, as in '1 Gbit/s'. A flow without a rate gets it.",
        ),
    ] = None,
    max_bytes: Annotated[
        str | None,
        typer.Option("--max-bytes", metavar="SIZE", help="Maximum payload of a flow, as in '10 GB'."),
    ] = None,
    max_time: Annotated[
        str | None,
        typer.Option("--max-time", metavar="TIME", help="Maximum duration of a flow, as in '60 s'."),
    ] = None,
    silence: Annotated[
        str,
        typer.Option("--silence", metavar="TIME", help="End if the controller sends nothing for this time."),
    ] = "60 s",
) -> None:
    """Generate traffic on this host for a controller, which sends JSON on standard input.

    The agent answers on standard output. The limits protect this host: no controller can raise them. The
    agent ends when its input ends.
    """
    # Ctrl-C at a terminal reaches all its processes. The controller handles it and closes the channel.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code = _engpass.agent(max_rate, max_bytes, max_time, silence)
    except ValueError as error:
        raise EngpassError(str(error), "write numbers with units, see `engpass agent --help`") from None
    raise typer.Exit(code)
