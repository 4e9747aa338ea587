"""`engpass check`: checks a testbed file."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import typer

from engpass import _engpass
from engpass.cli import console, options
from engpass.jsondata import Json

if TYPE_CHECKING:
    from engpass.testbed import Testbed


def command(
    file: options.File,
    set_: options.Set = None,
    yes: options.Yes = False,
    as_json: options.Json = False,
) -> None:
    """Check a testbed file: report every error, with its line and a fix.

    Exit code 0 if the file is valid, 2 if not. Notes name the model engines that cannot run a variant.
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
    # Not decoded into the types of drawings, since loading msgspec takes as long as the check itself.
    drawing: dict[str, list[Json]] = json.loads(testbed.campaign.topology())
    points = testbed.plan().total if drawing["flows"] else 0
    refusals = _refusals(testbed) if drawing["flows"] else {}
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
                "refused": [
                    {"engine": engine, "variant": variant, "cause": cause, "help": cure}
                    for why, where in refusals.items()
                    for cause, _, cure in [why.partition("\nhelp: ")]
                    for engine, variant in where
                ],
            }
        )
        return
    for why, where in refusals.items():
        engines = " and ".join(dict.fromkeys(engine for engine, _ in where))
        variants = dict.fromkeys(variant for _, variant in where)
        them = " and ".join(f"`{variant}`" for variant in variants)
        of = "" if len(variants) == len(testbed.variants) else f" for {them}"
        console.tell(f"note: {engines} cannot run{of}: {why}")
    nodes, flows = drawing["nodes"], drawing["flows"]
    parts = [_count(len(nodes), "node"), _flows(flows), _count(len(testbed.variants), "variant")]
    parts += [f"{_count(len(axis.values), 'value')} of `{axis.path}`" for axis in testbed.axes]
    parts.append(_count(testbed.repeats, "repeat"))
    console.out(f"{testbed.source} is valid: {', '.join(parts)}; {_count(points, 'point')} to run")


def _refusals(testbed: Testbed) -> dict[str, list[tuple[str, str]]]:
    """The engines of the model that cannot run the testbed: by reason, the engine and variant of each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for variant in testbed.variants:
        # The testbed was checked: a variant with an error at the file's own values is valid in the sweep.
        with contextlib.suppress(_engpass.InvalidTestbed):
            for engine, why in testbed.campaign.refusals(variant, ()):
                found.setdefault(why, []).append((engine, variant))
    return found


def _flows(flows: list[Json]) -> str:
    """The number of flows, and that of their receivers if a group has several."""
    several = [
        len(found)
        for flow in flows
        if isinstance(flow, dict) and isinstance(found := flow.get("receivers"), list)
    ]
    told = _count(len(flows), "flow")
    return f"{told} to {_count(len(flows) - len(several) + sum(several), 'receiver')}" if several else told


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
