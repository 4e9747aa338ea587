"""Texts about a run: the opening paragraph, and the bottlenecks of each variant."""

from collections.abc import Sequence

from engpass import formatting
from engpass.results.aggregate import Table
from engpass.results.record import Run

DONE_BY = {
    "limit": "computed in closed form",
    "simulate": "simulated",
    "emulate": "emulated in real time",
    "measure": "measured",
}
"""How each engine obtains its results."""


def summary(run: Run, table: Table) -> str:
    """Variants, values and engines of a run, in a sentence or two; names are in backticks."""
    text = _what_ran(run, table)
    if run.points_done < run.points_total:
        text += f" Only {run.points_done:,} of {run.points_total:,} points are done."
    return text


def _what_ran(run: Run, table: Table) -> str:
    if not table.points:
        return "No point of this run is done yet."
    parts = [formatting.count(len(table.variants), "variant")]
    parts += [
        f"{formatting.count(len(axis.texts), 'value')} of the {axis.label} ({axis.span})"
        for axis in table.axes
    ]
    if table.measured:
        parts.append(formatting.count(run.repeats, "repeat"))
    engines = [DONE_BY.get(engine, f"run with `{engine}`") for engine in table.engines]
    return f"{_join(parts)}, {' and '.join(engines)}."


def _join(parts: Sequence[str]) -> str:
    return " \N{MULTIPLICATION SIGN} ".join(parts)
