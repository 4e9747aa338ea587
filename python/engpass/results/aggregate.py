"""Builds the table behind the figures from outcomes: repeats are aggregated, long sweeps thinned out.

The figures of a flow get about `MAX_ROWS` rows at most, however many points the run has.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from engpass.formatting import clean
from engpass.results import above_limit, receivers
from engpass.results.above_limit import GENERATORS
from engpass.results.axes import Axis, axis_of
from engpass.results.ledger_series import Line, Shelf
from engpass.results.outcomes import swept
from engpass.results.record import Run
from engpass.results.resources import Resource, ResourceShelf
from engpass.results.run_notes import chose_otherwise
from engpass.results.samples import DELAY_P99, DRAWN, GOODPUT, IDLE_DELAY, Samples, Spread
from engpass.types.outcome import Bottleneck, FlowOutcome, Outcome
from engpass.types.signals import Signal
from engpass.units import Unit, unit_for

MAX_ROWS = 16_000
MAX_SERIES = 24
MAX_PANELS = 8
MAX_CHOICES = 12
MARKS = 16
"""Maximum number of rows, series, panels and values of a choice in the figures; most markers on a curve."""

Row: TypeAlias = dict[str, float | str]
"""A row of the data of a figure, by column."""


class Point(msgspec.Struct, frozen=True):
    """All repeats of one flow at one point of the sweep.

    `bound` is in bit/s, and only of the limit engine, whose goodput is the fair share.
    """

    variant: str
    engine: str
    at: tuple[int, ...]
    flow: str
    kind: str
    repeats: int
    samples: Samples
    """Values of the signals that summaries show."""
    bound: float | None = None
    has_receivers: bool = False
    """Whether the flow is a multicast group whose receivers have their own points."""
    bottleneck: Bottleneck | None = None
    next: Bottleneck | None = None
    summary: str | None = None
    stages: tuple[tuple[str, float], ...] = ()
    invalid: str | None = None
    """Why repeats are invalid: the engine could not keep up with real time. `None` if all are valid."""
    chose_otherwise: bool = False
    """Whether real routers may have sent the flow over another path than the model."""

    def spread(self, signal: Signal) -> Spread | None:
        """The folded repeats of a signal; `None` if the engine does not give it."""
        return self.samples.spread(signal)

    @property
    def goodput(self) -> Spread:
        """Goodput in bit/s, which every engine gives."""
        found = self.spread(GOODPUT)
        if found is None:
            raise AssertionError("every outcome of a flow has a goodput")
        return found


class Choice(msgspec.Struct, frozen=True):
    """An axis beyond the second: the figures show one of its values, which is chosen on the page."""

    axis: Axis
    kept: tuple[int, ...]

    @property
    def texts(self) -> list[str]:
        """The values to choose from."""
        return [self.axis.texts[index] for index in self.kept]


class Table(msgspec.Struct, frozen=True, dict=True):
    """The aggregated run.

    `series` have colours and shapes: the variants, or the values of the second axis if there is one variant
    and the values are few. `panels` are the values of the second axis if it is drawn as panels; `choices` are
    the axes beyond the second.
    """

    axes: tuple[Axis, ...]
    variants: tuple[str, ...]
    engines: tuple[str, ...]
    flows: tuple[str, ...]
    points: tuple[Point, ...]
    rate: Unit
    series: tuple[str, ...]
    series_title: str
    panels: tuple[str, ...]
    choices: tuple[Choice, ...]
    notes: tuple[str, ...]
    above: tuple[str, ...] = ()
    """Notes on goodputs above their bounds; names in backticks."""
    lines: Mapping[str, Line] = msgspec.field(default_factory=dict)
    """The line shown for each flow, with its ledger at every point; empty without ledgers."""
    resources: tuple[Resource, ...] = ()
    """The CPUs and forwarding engines that work at some point, and the ports with a queue."""

    @property
    def x(self) -> Axis | None:
        """The first axis, if anything is swept."""
        return self.axes[0] if self.axes else None

    @property
    def measured(self) -> tuple[str, ...]:
        """The engines that count datagrams: all but `limit`."""
        return tuple(engine for engine in self.engines if engine != "limit")

    @cached_property
    def signals(self) -> Mapping[Signal, Unit]:
        """The drawn signals that some point has, with their units; a family has one unit."""
        greatest: dict[Signal, float] = {}
        for point in self.points:
            for signal in DRAWN:
                if (spread := point.spread(signal)) is not None:
                    greatest[signal] = max(greatest.get(signal, 0.0), spread.high)
        return {signal: self._unit(signal, greatest) for signal in DRAWN if signal in greatest}

    def _unit(self, signal: Signal, greatest: Mapping[Signal, float]) -> Unit:
        if signal.unit == "bit/s":
            return self.rate
        family = signal.family and signal.family[0]
        group = [
            one for one in greatest if one is signal or (family and one.family and one.family[0] == family)
        ]
        return unit_for(signal.unit, [greatest[one] for one in group], ["%"] if not signal.unit else [])

    @cached_property
    def _places(self) -> dict[tuple[str, str], list[Point]]:
        places: dict[tuple[str, str], list[Point]] = {}
        for point in self.points:
            places.setdefault((point.flow, point.variant), []).append(point)
        return places

    def of(self, flow: str, variant: str) -> Sequence[Point]:
        """The points of one flow in one variant, in their order."""
        return self._places.get((flow, variant), ())

    @property
    def rows_title(self) -> str:
        """The title of `flows`: receivers of a multicast group have rows of their own."""
        return "flows and receivers" if any(point.has_receivers for point in self.points) else "flows"

    def receivers(self, group: str) -> list[Point]:
        """The points of the receivers of a multicast group; empty for other flows."""
        several = any(point.has_receivers for point in self.points if point.flow == group)
        first = receivers.name(group, " ").rstrip()
        return [point for point in self.points if several and point.flow.startswith(f"{first} ")]

    def slowest_receiver(self, group: str) -> str | None:
        """The receiver with the greatest delay, which is that of its group; `None` for other flows."""
        delays = [
            (delay, point.flow)
            for point in self.receivers(group)
            if (delay := point.samples.folded(DELAY_P99)) is not None
        ]
        return max(delays, default=(0.0, None))[1]

    def rows(self, flow: str) -> list[Row]:
        """The rows of the figures about one flow: rates in `rate`, loss in per cent, x in the axis' unit."""
        return _rows(self, flow)


def tabulate(run: Run, outcomes: Iterable[Outcome], signals: Sequence[Signal] = DRAWN) -> Table:
    """Aggregate the repeats of these signals and the goodput, and select what the figures show."""
    axes = tuple(axis_of(raw) for raw in run.axes)
    shelf, resources = Shelf(), ResourceShelf()
    points = _fold(axes, outcomes, (shelf, resources), tuple(dict.fromkeys((GOODPUT, *signals, IDLE_DELAY))))
    present = {point.variant for point in points}
    variants = _ordered(run.variants, present)
    seen = {point.engine for point in points}
    engines = _ordered(run.engines, seen)
    kinds = {point.flow: point.kind for point in points}
    flows = tuple(flow for flow, kind in kinds.items() if kind not in GENERATORS) or tuple(kinds)
    drawn = frozenset(flows)
    shown = [point for point in points if point.flow in drawn]
    rate = _rate(axes, [point.goodput.high for point in shown])

    notes: list[str] = []
    series, series_title = variants, "variant"
    panels: tuple[str, ...] = ()
    choices: list[Choice] = []
    if len(axes) > 1:
        second = axes[1]
        if len(variants) == 1 and len(second.texts) <= MAX_PANELS:
            series, series_title = second.texts, second.label
            notes.append(f"Colours and shapes show the value of the {second.label}.")
        else:
            kept = evenly(len(second.texts), MAX_PANELS)
            panels = tuple(second.texts[index] for index in kept)
            notes.append(f"There is one panel for each value of the {second.label}{_of(kept, second)}.")
        for axis in axes[2:]:
            choice = Choice(axis, tuple(evenly(len(axis.texts), MAX_CHOICES)))
            choices.append(choice)
            notes.append(f"Select the {axis.label} above the figures{_of(choice.kept, axis)}.")
    if len(series) > MAX_SERIES:
        notes.append(
            f"The figures show {MAX_SERIES} of {len(series)} {series_title}s; the table has them all."
        )
        series = series[:MAX_SERIES]
    table = Table(
        axes,
        variants,
        engines,
        flows,
        tuple(points),
        rate,
        series,
        series_title,
        panels,
        tuple(choices),
        tuple(notes),
        _above(points),
        shelf.lines(flows),
        resources.resources(),
    )
    bins = _bins(table)
    if axes and len(axes[0].texts) > bins:
        thin = (
            f"{len(axes[0].texts)} values of the {axes[0].label} are drawn as {bins} groups of neighbours: "
            "mean, minimum and maximum of each."
        )
        table = replace(table, notes=(*table.notes, thin))
    return table


def _above(points: Sequence[Point]) -> tuple[str, ...]:
    bounds = {(p.variant, p.at, p.flow): p.bound for p in points if p.bound is not None}
    got = (
        above_limit.Got(
            (p.variant, p.at), p.engine, p.flow, p.kind, p.goodput.value, bound, p.chose_otherwise
        )
        for p in points
        if p.engine != "limit" and (bound := bounds.get((p.variant, p.at, p.flow))) is not None
    )
    return tuple(above_limit.notes(got))


def _rate(axes: Sequence[Axis], bit_per_s: Sequence[float]) -> Unit:
    """The unit of rates; a unit in B/s if an axis has one, such as the rate of a memory."""
    in_bytes = next((axis.unit for axis in axes if axis.unit.name.endswith("B/s")), None)
    return unit_for("bit/s", bit_per_s) if in_bytes is None else Unit(in_bytes.name, 8 * in_bytes.factor)


def _ordered(known: Sequence[str], present: Collection[str]) -> tuple[str, ...]:
    """The present names in the order of the run's record, then names that it lacks."""
    names = dict.fromkeys([*map(clean, known), *sorted(present)])
    return tuple(name for name in names if name in present)


class _Repeats(msgspec.Struct):
    """The outcomes of one flow at one point; `invalid` has the reason of the first invalid one."""

    flows: list[FlowOutcome] = msgspec.field(default_factory=list)
    invalid: str | None = None
    chose_otherwise: bool = False


def _fold(
    axes: Sequence[Axis],
    outcomes: Iterable[Outcome],
    shelves: Sequence[Shelf | ResourceShelf],
    signals: Sequence[Signal],
) -> list[Point]:
    known: list[dict[float | str | None, int | None]] = [{} for _ in axes]
    groups: dict[tuple[str, str, tuple[int, ...], str], _Repeats] = {}
    for outcome in outcomes:
        at: list[int] = []
        for axis, cache in zip(axes, known, strict=True):
            value = swept(outcome, axis.path)
            if value not in cache:
                cache[value] = axis.find(value)
            index = cache[value]
            if index is not None:
                at.append(index)
        if len(at) < len(axes):
            continue  # the run's record does not have these swept values
        place = (clean(outcome.variant), clean(outcome.engine), tuple(at))
        for shelf in shelves:
            shelf.add(place, outcome)
        chose = chose_otherwise(outcome)
        for name, _, flow in receivers.rows(outcome):
            group = groups.setdefault((*place, clean(name)), _Repeats())
            group.flows.append(flow)
            group.chose_otherwise |= chose
            if outcome.valid is False and group.invalid is None:
                group.invalid = outcome.invalid or ""
    return [_point(key, group, signals) for key, group in groups.items()]


def _point(key: tuple[str, str, tuple[int, ...], str], repeats: _Repeats, signals: Sequence[Signal]) -> Point:
    variant, engine, at, flow = key
    flows, last = repeats.flows, repeats.flows[-1]
    samples = Samples(signals)
    for one in flows:
        samples.add(one)
    return Point(
        variant=variant,
        engine=engine,
        at=at,
        flow=flow,
        kind=clean(last.kind),
        has_receivers=bool(receivers.several(last)),
        repeats=len(flows),
        samples=samples,
        bound=above_limit.bound(last) if engine == "limit" else None,
        bottleneck=last.bottleneck,
        next=last.next_bottleneck,
        summary=last.summary,
        stages=tuple((clean(stage.name), stage.rate_bit_per_s) for stage in last.limit.stages)
        if last.limit is not None
        else (),
        invalid=repeats.invalid,
        chose_otherwise=repeats.chose_otherwise,
    )


def evenly(count: int, most: int) -> list[int]:
    """Up to `most` evenly spaced positions out of `count`, the first and the last included."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _of(kept: Sequence[int], axis: Axis) -> str:
    return f" ({len(kept)} of {len(axis.texts)} values)" if len(kept) < len(axis.texts) else ""


def _bins(table: Table) -> int:
    """Number of values on the x axis that the figures may show."""
    curves = len(table.series) * max(1, len(table.engines)) * max(1, len(table.panels))
    for choice in table.choices:
        curves *= len(choice.kept)
    return min(500, max(12, MAX_ROWS // max(1, curves)))


def _rows(table: Table, flow: str) -> list[Row]:
    panel_at = len(table.panels) > 0
    panels = {text: text for text in table.panels}
    second = table.axes[1] if len(table.axes) > 1 else None
    by_second = second is not None and not panel_at
    series_index = {name: index for index, name in enumerate(table.series)}
    curves: dict[tuple[int, str, str, str, tuple[int, ...]], list[Point]] = {}
    for point in table.points:
        if point.flow != flow:
            continue
        series = second.texts[point.at[1]] if by_second and second is not None else point.variant
        panel = second.texts[point.at[1]] if panel_at and second is not None else ""
        if series not in series_index or (panel_at and panel not in panels):
            continue
        picks = point.at[2:]
        if any(index not in choice.kept for index, choice in zip(picks, table.choices, strict=True)):
            continue
        curves.setdefault((series_index[series], series, point.engine, panel, picks), []).append(point)

    rows: list[Row] = []
    bins = _bins(table)
    for key in sorted(curves, key=lambda key: (key[0], key[2], key[3], key[4])):
        _, series, engine, panel, picks = key
        head: Row = {"series": series, "engine": engine}
        if panel_at:
            head["panel"] = panel
        head.update(
            {
                f"choice{i}": choice.axis.texts[at]
                for i, (choice, at) in enumerate(zip(table.choices, picks, strict=True))
            }
        )
        rows.extend({**head, **row} for row in _curve(table, curves[key], bins, series_index[series]))
    return rows


def _curve(table: Table, points: list[Point], bins: int, offset: int) -> Iterable[Row]:
    axis = table.x
    ordered = points
    if axis is not None and axis.numbers is not None:
        numbers = axis.numbers
        ordered = sorted(points, key=lambda point: numbers[point.at[0]])
    elif axis is not None:
        ordered = sorted(points, key=lambda point: point.at[0])
    size = -(-len(ordered) // bins)
    groups = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    every = max(1, -(-len(groups) // MARKS))
    for number, group in enumerate(groups):
        row: Row = {}
        if axis is not None:
            first, last = group[0].at[0], group[-1].at[0]
            row["where"] = (
                axis.texts[first] if len(group) == 1 else f"{axis.texts[first]} to {axis.texts[last]}"
            )
            if axis.numbers is not None:
                row["x"] = axis.unit.of(sum(axis.numbers[point.at[0]] for point in group) / len(group))
        for signal, unit in table.signals.items():
            if found := [spread for point in group if (spread := point.spread(signal)) is not None]:
                row[signal.name] = unit.of(_mean([spread.value for spread in found]))
                row[f"{signal.name}_low"] = unit.of(min(spread.low for spread in found))
                row[f"{signal.name}_high"] = unit.of(max(spread.high for spread in found))
        row["repeats"] = sum(point.repeats for point in group)
        # Series have their markers at different points, so that equal curves can be told apart.
        row["marked"] = (number + offset * every // 4) % every == 0
        yield row


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
