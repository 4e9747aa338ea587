"""Reads the points of a run for its summary and its delays; a long sweep is thinned out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING

from engpass.results.aggregate import tabulate
from engpass.results.equal_repeats import EqualRepeats
from engpass.results.run_notes import Remarks
from engpass.results.samples import FAMILIES
from engpass.show.blocks import Marked, Prose
from engpass.show.terminal import print_blocks
from engpass.views import headline, points

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.campaign import Plan
    from engpass.show.blocks import Block
    from engpass.store import RunRecord, Store
    from engpass.types.outcome import Outcome

_MOST = 12
"""Maximum number of swept values per variant in a summary: a few variants then fit on a screen."""

_MOST_READ = 5_000
"""Maximum number of points that are all read for the headlines: 1.3 s with two flows, 4 s with ten."""

MOST_FLOWS = 200
"""Maximum number of flows in a table: a longer one takes seconds to print and is too long to read."""


def summary(store: Store, record: RunRecord, out: Console) -> None:
    """Print goodput, loss, delay and limits per variant and swept value."""
    shown = _shown(record.plan)
    # The headlines need all points of a run, the table only some: a short run is read once for both.
    short = record.points_total <= _MOST_READ
    outcomes = [one for _, one in store.read_outcomes(record, None if short else _ranges(record.plan, shown))]
    table = tabulate(record, outcomes)
    every = product(*(range(len(axis.values)) for axis in record.axes)) if short else ()
    places = {at for index, at in enumerate(every) if index in shown} if short else None
    remarks, equal = Remarks(), EqualRepeats()
    for outcome in outcomes:
        remarks.add(outcome)
        equal.add(outcome)
    about = [Prose(record.name, strong=True), *([headline.view(table)] if short else [])]
    rows = points.rows(table, table.flows[:MOST_FLOWS], places)
    invalid = points.invalid_points(table)
    late = [Prose(invalid, Marked("invalid", "bad"))] if invalid else []
    more = (*_thinned(record, shown, len(table.flows), table.rows_title), *remarks.lines(), *equal.lines())
    notes = [Prose(note) for note in more]
    print_blocks([*about, points.summary(record, table, rows), *late, *notes], out)


def delays(store: Store, record: RunRecord) -> list[Block]:
    """A table for each family of times, such as delays and round trips."""
    shown = _shown(record.plan)
    signals = [signal for family in FAMILIES.values() for signal in family]
    outcomes: Iterable[Outcome] = (one for _, one in store.read_outcomes(record, _ranges(record.plan, shown)))
    table = tabulate(record, outcomes, signals)
    flows = points.timed(table)
    tables = points.times(record, table, points.rows(table, flows[:MOST_FLOWS]))
    if not tables:
        text = "no point has delays: `simulate` reports them, and so does `measure` for requests"
        return [Prose(text)]
    text = "mean, percentiles: of all datagrams, segments or requests, mean of the repeats; min, max: of all"
    notes = [*_thinned(record, shown, len(flows), table.rows_title), text]
    return [*tables, *map(Prose, notes)]


def _shown(plan: Plan) -> Sequence[int]:
    """Indices of the sweep points to show: evenly spaced, and the last."""
    total = plan.sweep_points
    return sorted({*range(0, total, math.ceil(total / _MOST)), total - 1})


def _ranges(plan: Plan, shown: Sequence[int]) -> list[range]:
    """The positions of some sweep points, neighbours in one range, so that one query reads them.

    Only shown points are read, so the summary of a million points is fast.
    """
    wanted = [
        plan.positions(engine, variant, index)
        for engine in plan.engines
        for variant in plan.variants
        for index in shown
    ]
    merged: list[range] = []
    for found in wanted:
        if merged and merged[-1].stop == found.start:
            merged[-1] = range(merged[-1].start, found.stop)
        else:
            merged.append(found)
    return merged


def _thinned(record: RunRecord, shown: Sequence[int], flows: int, what_flows: str) -> list[str]:
    """A note on omitted swept values and flows, and where to find them."""
    parts = [
        f"{some:,} of {total:,} {what}"
        for some, total, what in (
            (len(shown), record.plan.sweep_points, "swept values"),
            (min(flows, MOST_FLOWS), flows, what_flows),
        )
        if some < total
    ]
    return [f"{' and '.join(parts)} are shown; `engpass export {record.id}` has all"] if parts else []
