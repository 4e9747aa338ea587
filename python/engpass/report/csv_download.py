"""The points as CSV inside the page: compressed, so that a large run stays a small file."""

import base64
import csv
import gzip
import io
from collections.abc import Iterable, Sequence

from engpass.campaign import Plan
from engpass.results.aggregate import Table
from engpass.results.axes import axis_of
from engpass.results.columns import Columns
from engpass.results.outcomes import swept
from engpass.results.record import Run
from engpass.results.samples import Cell, Spread
from engpass.types.outcome import Outcome

MAX_ENCODED = 3_000_000
"""Maximum number of base64 characters of points: for a page below 5 MB. For more, repeats are aggregated."""


def encode(text: str) -> str:
    """Encode text as gzip in base64; equal texts give equal results."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)).decode(
        "ascii"
    )


def raw(run: Run, outcomes: Iterable[Outcome]) -> str:
    """One line per point and flow, with the columns of `engpass export`."""
    columns = Columns(run.axes)
    places = _Places(run)
    rows = [row for outcome in outcomes for row in columns.rows(places.of(outcome), outcome)]
    names = columns.names(rows)
    return _csv(names, ([row.get(name, "") for name in names] for row in rows))


class _Places:
    """Positions of outcomes in the plan of a run."""

    def __init__(self, run: Run) -> None:
        self._plan = Plan(tuple(run.engines), tuple(run.variants), tuple(run.axes), run.repeats)
        self._axes = [axis_of(axis) for axis in run.axes]

    def of(self, outcome: Outcome) -> int | None:
        """The position of an outcome; `None` for a value or a repeat that the plan does not have."""
        index = 0
        for axis in self._axes:
            at = axis.find(swept(outcome, axis.path))
            if at is None:
                return None
            index = index * len(axis.texts) + at
        if outcome.variant not in self._plan.variants:
            return None
        positions = self._plan.positions(outcome.engine, outcome.variant, index)
        return positions[outcome.repeat] if outcome.repeat < len(positions) else None


def folded(table: Table) -> str:
    """One line per point of the sweep and flow: mean, least and greatest of the repeats."""
    head = ["variant", "engine", "repeats", *(axis.path for axis in table.axes), "flow", "kind"]
    for signal in table.signals:
        head += [signal.name, f"{signal.name}_least", f"{signal.name}_greatest"]

    def spread(of: Spread | None) -> list[Cell]:
        return ["", "", ""] if of is None else [f"{value:.10g}" for value in (of.value, of.low, of.high)]

    return _csv(
        head,
        (
            [
                point.variant,
                point.engine,
                point.repeats,
                *(
                    axis.numbers[at] if axis.numbers else axis.texts[at]
                    for axis, at in zip(table.axes, point.at, strict=True)
                ),
                point.flow,
                point.kind,
                *(cell for signal in table.signals for cell in spread(point.spread(signal))),
            ]
            for point in table.points
        ),
    )


def _csv(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(name) for name in head])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Cell) -> Cell:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
