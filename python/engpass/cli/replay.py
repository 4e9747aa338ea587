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
    0 if they are identical, 1 if not; the first difference is shown.
    """
    import json

    from engpass import _engpass

    if not Path(log).is_file():
        console.fail(f"there is no file `{log}`", "name what `--log FILE` of `engpass up` wrote")
    try:
        with console.waiting(f"replaying `{log}`"):
            found: dict[str, Any] = json.loads(_engpass.replay(str(Path(log).resolve())))
    except (OSError, RuntimeError) as error:
        console.fail(f"`{log}` cannot be replayed: {error}")
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
    return f"{what}: identical" if found["identical"] else f"{what}: not identical"


def difference(found: dict[str, Any]) -> str:
    """The first output that is another one."""
    first = found.get("difference") or {}
    return "\n".join(
        [
            f"first difference at output {first.get('output', '?')}:",
            f"  logged:   {first.get('logged')}",
            f"  replayed: {first.get('replayed')}",
        ]
    )
