"""`engpass replay`: repeats a logged emulation in virtual time and compares the outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from engpass.cli import console, options

Log = Annotated[
    str, typer.Argument(metavar="LOG", help="A log that `--log` of `engpass up` or `engpass run` wrote.")
]


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery report of a packet."""

    at_ps: int
    way: str
    token: int
    fate: str


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """The first output in which log and replay differ."""

    output: int
    """Number of the first output that differs."""
    logged: Output | None
    """The output in the log; `None` if the log has fewer outputs."""
    replayed: Output | None
    """The output of the replay; `None` if the replay has fewer outputs."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a replay (docs/driver.md, *The log, and the replay*)."""

    identical: bool
    whole: bool
    """True if the log ends with a record of its end, so that it is complete."""
    inputs: int
    outputs: int
    changed_payloads: int
    """Number of packets whose payload left the network with other bytes than it had on entry."""
    difference: Difference | None


def command(log: Log, as_json: options.Json = False) -> None:
    """Replay the logged inputs of an emulated network in the model, without a real-time clock.

    The outputs must equal those of the log: packets, times and delivery status. Exit code 0 if they are
    identical, 1 if not (the first difference is shown), 2 if there is nothing to compare or the log is
    damaged.
    """
    import json

    from engpass import _engpass

    if not Path(log).is_file():
        console.fail(f"there is no file `{log}`", "give the path of a log that `--log` of `engpass up` wrote")
    try:
        with console.waiting(f"replaying `{log}`"):
            text = _engpass.replay(str(Path(log).resolve()))
            found = msgspec.json.decode(text, type=Replayed)
    except (OSError, RuntimeError, ValueError) as error:
        if hasattr(error, "rendered"):
            raise
        cause, _, cure = str(error).partition("\nhelp: ")
        console.fail(f"`{log}` cannot be replayed: {cause}", cure or None)
    if as_json:
        console.line(json.loads(text))
    elif found.identical:
        console.out(said(found))
    else:
        console.out(f"{said(found)}\n{difference(found)}")
    raise typer.Exit(console.OK if found.identical else console.FAILED)


def said(found: Replayed) -> str:
    """The numbers of inputs and outputs, and whether log and replay are identical, as text."""
    what = f"{found.inputs:,} inputs, {found.outputs:,} outputs"
    # A replay that stopped at a difference has not read the end of the log.
    off = not found.whole and found.difference is None
    cut = "; the log is incomplete: it has no end record" if off else ""
    return f"{what}: {'' if found.identical else 'not '}identical{cut}"


def difference(found: Replayed) -> str:
    """The first output that differs, or else the number of changed payloads, as text."""
    first = found.difference
    if first is None:
        return f"{found.changed_payloads:,} packets left the network with a changed payload"
    return (
        f"first difference at output {first.output:,}:"
        f"\n  logged:   {_output(first.logged)}\n  replayed: {_output(first.replayed)}"
    )


def _output(output: Output | None) -> str:
    if output is None:
        return "none"
    return f"packet {output.token} of `{output.way}`, {output.fate}, at {output.at_ps / 1e6:,.6f} us"
