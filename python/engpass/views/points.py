"""The points of a run as tables: goodput, loss, delay and limits by variant, swept value, flow and engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec.structs import replace

from engpass.formatting import percent
from engpass.results.above_limit import GENERATORS, differ
from engpass.results.engine_difference import FAR, Apart, apart, reference
from engpass.results.samples import DELAY_P99, FAMILIES, GOODPUT, LONGEST_GAP, TRANSFER_TIME
from engpass.show.blocks import Amount, Cell, Column, Marked, Prose, Table, columns

if TYPE_CHECKING:
    from engpass.campaign import Axis
    from engpass.results import aggregate
    from engpass.results.aggregate import Point
    from engpass.results.record import Run
    from engpass.types.outcome import Stage
    from engpass.types.signals import Signal
    from engpass.units import Unit

_GIVE_WAY = ("Offered", "Error", "Delay p50")
"""Columns that a terminal omits if the table is too wide, the first one first."""

At: TypeAlias = tuple[int, ...]
"""Positions on the swept axes."""


class Row(msgspec.Struct, frozen=True):
    """Result of one engine for a flow at a point, with the limit there and the engine's distance."""

    point: Point
    limit: Point | None
    apart: Apart | None
    """The difference from the reference; `None` if there is nothing to compare."""

    @property
    def place(self) -> tuple[str, At, str]:
        """Variant, point and flow."""
        return self.point.variant, self.point.at, self.point.flow


_Made: TypeAlias = tuple[Column, Callable[[Row], Cell]]


def rows(table: aggregate.Table, flows: Sequence[str], places: Collection[At] | None = None) -> list[Row]:
    """The rows of some flows, at all points or only at some, by variant, point, flow and engine."""
    groups: dict[tuple[int, At, int], dict[str, Point]] = {}
    variants = {name: place for place, name in enumerate(table.variants)}
    wanted = {name: place for place, name in enumerate(flows)}
    for point in table.points:
        if point.flow in wanted and (places is None or point.at in places):
            key = (variants[point.variant], point.at, wanted[point.flow])
            groups.setdefault(key, {})[point.engine] = point
    return [row for key in sorted(groups) for row in _group(table, groups[key])]


def _group(table: aggregate.Table, found: dict[str, Point]) -> Iterator[Row]:
    """The rows of a flow at a point: a limit has one of its own only if no other engine has."""
    limit = found.get("limit")
    means = {engine: point.goodput.value for engine, point in found.items()}
    if limit is not None and limit.bound is not None:
        means["limit"] = limit.bound
    base = _base(table)
    distances = {one.engine: one for one in apart(means)} if base in found else {}
    measured = [engine for engine in table.measured if engine in found]
    for engine in measured or found:
        yield Row(found[engine], limit, distances.get(engine) if engine != base else None)


def _base(table: aggregate.Table) -> str:
    """The engine with which others are compared; empty if only one engine counts datagrams."""
    measured = dict.fromkeys(table.measured, 0.0)
    return (reference(measured) or "") if len(measured) > 1 else ""


def summary(run: Run, table: aggregate.Table, shown: Sequence[Row]) -> Table:
    """Goodput, loss, delay and limits."""
    base = _base(table)
    made = [*_names(run, table, shown), *_figures(table, shown), *_limits(table, shown)]
    if base:
        note = f"vs {base}: difference in goodput from `{base}`; `!` marks more than {percent(FAR)}"
        made.append((Column(f"vs {base}", right=True, note=note), lambda row: _difference(row.apart)))
    return _table("", made, shown, table.above, f"`engpass export {run.id}` has all columns")


_NOTES = {
    DELAY_P99.title: "delay: one way, of datagrams or TCP segments, mean of the repeats; "
    "`show --delays` has more",
    LONGEST_GAP.title: "longest gap: the longest time without a received packet, over all repeats",
    "Bound": "fair share: max-min fair among the flows; "
    "bound: the most that the flow can get in the whole run",
    "Error": "error: standard error of the mean over the repeats, in per cent of the mean",
}


def _column(title: str, unit: Unit | None = None) -> Column:
    gives_way = _GIVE_WAY.index(title) + 1 if title in _GIVE_WAY else 0
    return Column(title, right=True, unit=unit, gives_way=gives_way, note=_NOTES.get(title, ""))


def _table(
    title: str, made: Sequence[_Made], shown: Sequence[Row], notes: Sequence[str], rest: str = ""
) -> Table:
    variants = [row.point.variant for row in shown]
    rules = [place for place, (one, other) in enumerate(pairwise(variants), 1) if one != other]
    cells = [[cell(row) for _, cell in made] for row in shown]
    return Table(title, [column for column, _ in made], cells, notes, rules, left_out=rest)


def _names(
    run: Run, table: aggregate.Table, shown: Sequence[Row], *, always: bool = False
) -> Iterator[_Made]:
    """The columns that say what a row is about: the flow and the engine only if there are several."""
    yield Column("Variant"), lambda row: row.point.variant
    for place, axis in enumerate(run.axes):
        yield _swept(axis, place)
    if always or len({*table.flows, *(row.point.flow for row in shown)}) > 1:
        yield Column("Flow", right=True), lambda row: row.point.flow
    if len({row.point.engine for row in shown} if always else table.measured) > 1:
        yield Column("Engine", right=True), lambda row: row.point.engine


def _swept(axis: Axis, place: int) -> _Made:
    return Column(axis.path, right=True), lambda row: axis.values[row.point.at[place]].text


def _figures(table: aggregate.Table, shown: Sequence[Row]) -> Iterator[_Made]:
    """The signals that some row has; the goodput comes first, with its standard error."""
    counted = [row.point for row in shown if row.point.engine != "limit"]
    signals = table.signals.items()
    # A transfer that ends has its limit over the run: its time tells how well it was served.
    summary = [(signal, unit) for signal, unit in signals if signal.summary or signal is TRANSFER_TIME]
    for signal, unit in summary if counted else ():
        if signal is GOODPUT or any(point.samples.folded(signal) is not None for point in counted):
            yield _signal(signal, unit, signal.title)
        if signal is GOODPUT and any(point.repeats > 1 for point in counted):
            yield _column("Error"), _error


def _signal(signal: Signal, unit: Unit | None, title: str) -> _Made:
    def cell(row: Row) -> Cell:
        value = row.point.samples.folded(signal) if row.point.engine != "limit" else None
        late = signal is GOODPUT and row.point.invalid is not None
        return None if value is None else Amount(value, signal.unit, "invalid" if late else "")

    return _column(title, unit if signal.unit else None), cell


def _error(row: Row) -> Cell:
    goodput = row.point.samples.mean(GOODPUT)
    if goodput is None or goodput.error is None or row.point.engine == "limit":
        return None
    return Amount(goodput.error / goodput.value if goodput.value else 0.0, "")


def _limits(table: aggregate.Table, shown: Sequence[Row]) -> Iterator[_Made]:
    """The limit of the flow: one column if fair share and bound of every row are equal, else two."""
    limits = [row.limit for row in shown if row.limit is not None]
    if not limits:
        return
    two = any(one.bound is not None and differ(one.goodput.value, one.bound) for one in limits)
    yield (
        _column("Fair share" if two else "Limit", table.rate),
        lambda row: None if row.limit is None else Amount(row.limit.goodput.value, "bit/s"),
    )
    if two:
        yield _column("Bound", table.rate), _bound


def _bound(row: Row) -> Cell:
    bound = None if row.limit is None else row.limit.bound
    return None if bound is None else Amount(bound, "bit/s")


def _difference(one: Apart | None) -> Cell:
    if one is None:
        return None
    text = "" if one.share is None else f"{one.share * 100:+.1f} %"
    return Marked(f"{text} !", "mark") if one.far else text


def invalid_points(table: aggregate.Table) -> str:
    """How many points are invalid, and why; empty if there are none."""
    bad = [point for point in table.points if point.invalid is not None and point.kind not in GENERATORS]
    if not bad:
        return ""
    points = {(point.variant, point.engine, point.at) for point in bad}
    what = "point is" if len(points) == 1 else "points are"
    first = f", the first one of variant `{bad[0].variant}`" if len(points) > 1 else ""
    why = f": {bad[0].invalid}" if bad[0].invalid else ""
    return (
        f"{len(points)} emulated {what} invalid{first}{why}. The figures and tables include them, but they"
        " prove nothing; `--slow` gives the machine more time."
    )


def differences(run: Run, table: aggregate.Table) -> list[Prose | Table]:
    """The points at which engines differ much; nothing if only one engine counts datagrams."""
    base, every = _base(table), rows(table, table.flows)
    compared = [row for row in every if row.apart is not None]
    if not compared:
        return []
    far = [row for row in compared if row.apart and row.apart.far]
    places = {row.place for row in far}
    shown = [row for row in every if row.place in places]
    text = f"{len(far):,} of {len(compared):,} goodputs differ from `{base}` by more than {percent(FAR)}."
    marked = Prose(text)
    if not shown:
        return [marked]
    found = summary(run, table, shown[:MOST])
    return [marked, Table("", [replace(column, note="") for column in found.columns], found.rows)]


MOST = 200
"""Maximum number of rows of the table of differences."""


def stages(title: str, found: Sequence[Stage]) -> Table:
    """From line rate to the limit, stage by stage; the last one is what the application gets."""
    rates = [stage.rate_bit_per_s for stage in found]
    cells: list[list[Cell]] = []
    for stage, before in zip(found, [*rates[:1], *rates], strict=False):
        value = stage.rate_bit_per_s
        share = percent(value / rates[0] if rates[0] else None)
        taken = Amount(before - value, "bit/s") if before != value else None
        cells.append([stage.name, Amount(value, "bit/s"), share, taken])
    heads = ("Stage", "Rate", "% of line rate", "Taken")
    return Table(title, columns(*heads), cells, total=True)


def timed(table: aggregate.Table) -> list[str]:
    """The flows with times, such as delays and round trips."""
    every = [signal for family in FAMILIES.values() for signal in family]
    found = {
        point.flow
        for point in table.points
        if any(point.samples.folded(signal) is not None for signal in every)
    }
    return [flow for flow in dict.fromkeys(point.flow for point in table.points) if flow in found]


def times(run: Run, table: aggregate.Table, shown: Sequence[Row]) -> list[Table]:
    """A table for each family of times that some row has, such as delays and round trips."""
    tables = []
    for family, signals in FAMILIES.items():
        some = [row for row in shown if any(row.point.samples.folded(one) is not None for one in signals)]
        if some:
            figures = [_signal(one, None, one.family[1]) for one in signals if one.family is not None]
            made = [*_names(run, table, some, always=True), *figures]
            tables.append(_table(f"{run.name}: {family.lower()}", made, some, ()))
    return tables
