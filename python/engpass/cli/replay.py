"""`engpass replay`: the inputs of an emulated network again, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from engpass.cli import console, options

Log = Annotated[
    str, typer.Argument(metavar="LOG", help="What `--log` of `engpass up` or `engpass run` wrote.")
]


def command(log: Log, as_json: options.Json = False) -> None:
    """Put the logged inputs of an emulated network into the model again, without a clock.

    The outputs must be the logged ones: the same packets, at the same instants, with the same fate. Exit code
    0 if they are identical, 1 if not; the first difference is shown. 2 if there is nothing to compare, or the
    log is damaged.
    """
    import json

    from engpass import _engpass

    if not Path(log).is_file():
        console.fail(f"there is no file `{log}`", "name what `--log FILE` of `engpass up` wrote")
    try:
        with console.waiting(f"replaying `{log}`"):
            found: dict[str, Any] = json.loads(_engpass.replay(str(Path(log).resolve())))
    except (OSError, RuntimeError, ValueError) as error:
        if hasattr(error, "rendered"):
            raise
        cause, _, cure = str(error).partition("\nhelp: ")
        console.fail(f"`{log}` cannot be replayed: {cause}", cure or None)
    same = bool(found["identical"])
    if as_json:
        console.line(found)
    elif same:
        console.out(said(found))
    else:
        console.out(f"{said(found)}\n{difference(found)}")
    raise typer.Exit(console.OK if same else console.FAILED)


def said(found: dict[str, Any]) -> str:
    """How many packets there were, and whether all came out again as they did."""
    what = f"{found['inputs']:,} inputs, {found['outputs']:,} outputs"
    # Behind a difference nothing was looked at.
    off = not found["whole"] and found["difference"] is None
    cut = "; the log breaks off there: it has no record of its end" if off else ""
    return f"{what}: {'' if found['identical'] else 'not '}identical{cut}"


def difference(found: dict[str, Any]) -> str:
    """The first output that is another one, or what else is not the same."""
    first = found["difference"]
    if first is None:
        return f"{found['changed_payloads']:,} packets came out with another payload than they had"
    sides = {name: _output(first[name]) for name in ("logged", "replayed")}
    return f"first difference at output {first['output']:,}:" + "".join(
        f"\n  {name + ':':9} {said}" for name, said in sides.items()
    )


def _output(output: dict[str, Any] | None) -> str:
    if output is None:
        return "none"
    return (
        f"packet {output['token']} of `{output['way']}`, {output['fate']}, at {output['at_ps'] / 1e6:,.6f} us"
    )
