"""The bottleneck of each flow over the sweep, and the places at which packets are lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from engpass import formatting
from engpass.results import ledger
from engpass.show.blocks import Cell, Column, Table

if TYPE_CHECKING:
    from engpass.results import aggregate
    from engpass.results.aggregate import Point
    from engpass.types.outcome import Outcome

MOST, MOST_PLACES = 200, 60
"""Maximum number of rows of the table of bottlenecks, and of the table of losses."""


def bottlenecks(table: aggregate.Table) -> Table:
    """The bottlenecks by each engine that names them; neighbours with the same one share a row."""
    rows = [row for flow in table.flows for variant in table.variants for row in _rows(table, flow, variant)]
    heads = {"Variant": len(table.variants) > 1, "Flow": len(table.flows) > 1}
    heads |= {"Engine": len({row[2] for row in rows}) > 1, "Points": bool(table.axes)}
    kept = [place for place, needed in enumerate(heads.values()) if needed]
    columns = [*(Column(list(heads)[place]) for place in kept), Column("Bottleneck")]
    columns += [Column("Goodput", right=True), Column("At the last point")]
    cells = [[*(row[place] for place in kept), *row[len(heads) :]] for row in rows[:MOST]]
    notes = [f"{MOST} of {len(rows):,} rows"] if len(rows) > MOST else []
    return Table("", columns, cells, notes)


def _rows(table: aggregate.Table, flow: str, variant: str) -> Iterator[list[Cell]]:
    named = [point for point in table.of(flow, variant) if point.bottleneck or point.summary]
    for engine in table.engines:
        mine = sorted(
            (one for one in named if one.engine == engine), key=lambda one: (one.at[1:], one.at[:1])
        )
        for _, same in groupby(mine, key=lambda one: (one.bottleneck, one.next, one.at[1:])):
            points = list(same)
            last, rates = points[-1], [point.goodput.value for point in points]
            low, high = formatting.rate(min(rates)), formatting.rate(max(rates))
            title = last.bottleneck.title if last.bottleneck is not None else ""
            goodput = low if low == high else f"{low} to {high}"
            yield [variant, flow, engine, _where(table, points), title, goodput, last.summary]


def _where(table: aggregate.Table, points: Sequence[Point]) -> str:
    """The swept values of neighbouring points: a range along the first axis."""
    if not table.axes:
        return ""
    first, last = points[0].at, points[-1].at
    axis = table.axes[0]
    span = axis.texts[first[0]] + (f" to {axis.texts[last[0]]}" if first != last else "")
    others = zip(table.axes[1:], first[1:], strict=True)
    return ", ".join([f"{axis.label} {span}", *(f"{other.label} {other.texts[at]}" for other, at in others)])


def losses(table: aggregate.Table, outcomes: Iterable[Outcome]) -> Table:
    """Drops by place, cause and flow, summed over all points of a variant and engine."""
    lost: dict[tuple[str, str, str, str, str], list[int]] = {}
    for outcome in outcomes:
        parallel = ledger.parallel(outcome) if outcome.drops else ()
        for drop in outcome.drops:
            place = formatting.place_name(drop.place, parallel)
            sums = lost.setdefault((outcome.variant, outcome.engine, place, drop.cause, drop.flow), [0, 0])
            sums[0] += drop.cells
            sums[1] += drop.datagrams
    order = {name: index for index, name in enumerate(table.variants)}
    found = [(key, sums) for key, sums in lost.items() if any(sums)]
    found.sort(key=lambda item: (order.get(item[0][0], len(order)), -item[1][1], -item[1][0]))
    several = len({key[1] for key, _ in found}) > 1
    # If every lost datagram was one frame, both columns would be equal.
    in_cells = any(cells != datagrams for _, (cells, datagrams) in found)
    rows: list[list[Cell]] = [
        [key[0], *(key[1:2] if several else ()), *key[2:], *(sums if in_cells else sums[1:])]
        for key, sums in found[:MOST_PLACES]
    ]
    title = "Losses by place, summed over all points and repeats of a variant"
    if len(found) > MOST_PLACES:
        title += f"; the first {MOST_PLACES} of {len(found)} rows"
    heads = ["Variant", *(["Engine"] if several else []), "Place", "Cause", "Flow"]
    columns = [*map(Column, heads), *([Column("Cells, frames", right=True)] if in_cells else [])]
    return Table(title, [*columns, Column("Datagrams", right=True)], rows)
