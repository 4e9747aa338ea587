"""Options of the commands that emulate a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engpass.error import EngpassError

if TYPE_CHECKING:
    from engpass.capture import Captures
    from engpass.emulation import Options

Clock = Annotated[
    str | None,
    typer.Option(
        "--clock",
        metavar="NAME",
        help="How an emulated network waits: sleep, hybrid, spin, or auto, which tests them first.",
    ),
]
Slow = Annotated[
    str | None,
    typer.Option(
        "--slow",
        metavar="N",
        help="Time dilation of an emulated network: rates divided by N, delays multiplied by N.",
    ),
]
WireTrue = Annotated[
    bool,
    typer.Option(
        "--wire-true", help="Emulate without GSO: each packet crosses the network separately, as on a wire."
    ),
]
Tap = Annotated[
    bool,
    typer.Option(
        "--tap", help="Give emulated hosts Ethernet devices (TAP) with hardware addresses, ARP, broadcasts."
    ),
]
Limit = Annotated[
    str | None,
    typer.Option(
        "--limit",
        metavar="TIME",
        help="Invalidate an emulated point if 0.1 % of its packets are later than this (default: 1 ms).",
    ),
]


def options(
    clock: str | None,
    slow: str | None,
    limit: str | None,
    log: str | None,
    *,
    wire_true: bool,
    tap: bool,
    captures: Captures | None = None,
) -> Options:
    """Combine the options of the command line into `Options`; raises `EngpassError`."""
    from engpass.emulation import LIMIT, Options

    given = Options(
        clock=clock or "auto",
        slow=factor(slow),
        wire_true=wire_true,
        limit=limit or LIMIT,
        log=str(Path(log).resolve()) if log else None,
        capture=captures,
        tap=tap,
    )
    given.check()
    return given


def factor(slow: str | None) -> int:
    """Parse the factor of `--slow`; 1 if it is not given. Raises `EngpassError`."""
    from engpass.emulation import SLOWEST

    try:
        found = 1 if slow is None else int(slow)
    except ValueError:
        found = 0
    if not 1 <= found <= SLOWEST:
        raise EngpassError(
            f"`--slow` is `{slow}`",
            f"give a whole number from 1 to {SLOWEST}: 10 makes the network 10 times slower than real time",
        )
    return found
