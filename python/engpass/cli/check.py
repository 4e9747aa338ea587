"""`engpass check`: whether a testbed is sound."""

from __future__ import annotations

import json

import typer

from engpass import _engpass
from engpass.cli import console, options


def command(
    file: options.File,
    set_: options.Set = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Check a testbed file: everything that is wrong with it, with line and cure.

    Exit code 0 if it is sound, 2 if not.
    """
    from engpass.testbed import load

    pairs = options.overrides(set_)
    try:
        testbed = load(file, pairs, max_points=options.max_points(yes))
    except _engpass.InvalidTestbed as error:
        if not as_json:
            raise
        console.line({"file": file, "ok": False, "diagnostics": error.diagnostics})
        raise typer.Exit(console.BAD_INPUT) from None
    if not as_json:
        console.tell_warnings(testbed)
    # Without the types of drawings, whose library takes as long to load as the check itself.
    drawing: dict[str, list[object]] = json.loads(testbed.campaign.topology())
    points = testbed.plan().total if drawing["flows"] else 0
    if as_json:
        console.line(
            {
                "file": testbed.source,
                "ok": True,
                "diagnostics": testbed.warnings,
                "name": testbed.name,
                "variants": testbed.variants,
                "axes": [{"path": axis.path, "values": len(axis.values)} for axis in testbed.axes],
                "repeats": testbed.repeats,
                "points": points,
            }
        )
        return
    nodes, flows = drawing["nodes"], drawing["flows"]
    parts = [_count(len(nodes), "node"), _count(len(flows), "flow"), _count(len(testbed.variants), "variant")]
    parts += [f"{_count(len(axis.values), 'value')} of `{axis.path}`" for axis in testbed.axes]
    parts.append(_count(testbed.repeats, "repeat"))
    console.out(f"{testbed.source} is sound: {', '.join(parts)}; {_count(points, 'point')} to run")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
