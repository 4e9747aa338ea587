"""Goodput of the flows, loads of engines and longest queues in one picture: panels with one x axis.

The picture shows at which value an engine or a queue becomes full, and the goodput from there on.
"""

from collections.abc import Iterator, Mapping, Sequence

import altair as alt
import msgspec

from engpass.report import theme
from engpass.report.figures import base
from engpass.report.figures.layers import Quantity, layers
from engpass.results.aggregate import MARKS, Row, Table, evenly
from engpass.results.axes import Axis
from engpass.results.ledger_series import Place
from engpass.results.resources import Resource, difference
from engpass.results.samples import GOODPUT, LOAD, Spread
from engpass.units import PERCENT, Unit

_MOST_FLOWS, _MOST_ENGINES, _MOST_QUEUES = 6, 8, 6
"""Maximum number of panels with the goodput of a flow, the load of an engine, and the queue of a port."""
_CHOSEN = 12
"""Maximum number of flows that can be chosen."""
_VALUES = 64
"""Maximum number of values of the axis that are drawn."""
_ROWS = 8_000
"""About the most rows of the figure."""
_VISIBLE = 0.01
"""The least difference of two loads that a reader sees."""
_NOTABLE = 4.0
"""Least difference in packets or cells for the panel of a queue: our choice. Bursts make short queues."""
_EXTENT = 42
"""Pixels for the labels of every y axis; equal widths align the panels."""


class _Panel(msgspec.Struct, frozen=True):
    """One quantity of a flow, engine or port over the x axis."""

    subject: str
    """The name of its rows."""
    title: str
    unit: Unit
    values: Mapping[Place, Spread]
    height: int = 70
    top: float | None = None


def applies(table: Table, _flow: str) -> bool:
    """Whether a load or a queue differs notably from point to point."""
    return bool(_resources(table))


def draw(table: Table, flow: str) -> base.Drawing:
    """The figure, with the panel of the chosen flow first."""
    panels = [_of_flow(table, one) for one in _flows_of(table, flow)]
    panels += [_of_resource(one) for one in _resources(table)]
    return alt.VConcatChart(
        data=alt.NamedData(name=base.TOGETHER),
        vconcat=[_chart(table, panel, last=panel is panels[-1]) for panel in panels],
        spacing=34,
        bounds="flush",
        usermeta={"beside": 70},
        title=alt.TitleParams(FIGURE.title, subtitle=[_fixed(table)] if _fixed(table) else []),
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(x="shared")),
    )


def _of_flow(table: Table, flow: str) -> _Panel:
    # The subject of a flow differs from the names of engines and ports.
    subject, unit = f"{table.flows.index(flow)}", table.rate
    return _Panel(subject, f"goodput of {flow} in {unit.name}", unit, _goodputs(table, flow), height=120)


def _of_resource(one: Resource) -> _Panel:
    if one.signal is LOAD:
        return _Panel(one.name, f"load of {one.name} in %", PERCENT, one.at, top=100)
    unit = Unit(one.signal.unit, 1)
    return _Panel(f"queue {one.name}", f"longest queue, {one.name}, in {unit.name}", unit, one.at)


def _chart(table: Table, panel: _Panel, *, last: bool) -> alt.LayerChart:
    x = _x(table)
    if not last:
        x = x.title(None).axis(labels=False, ticks=False, domain=False)
    quantity = Quantity(
        mean="value",
        low="low",
        high="high",
        title="",
        counted="datum.engine !== 'limit'",
        engines=table.engines,
        most=0.0,
        top=panel.top,
        x=x,
        tooltip=_tooltip(table, panel.unit),
    )
    heading = alt.TitleParams(
        panel.title,
        fontSize=12,
        fontWeight="normal",
        offset=4,
        anchor="start",
        color=theme.LIGHT["ink"],
        limit=alt.ExprRef(f"width + {_EXTENT}"),
    )
    axis = alt.Axis(title=None, minExtent=_EXTENT, tickCount=3)
    drawn = layers(table, quantity)
    for layer in drawn:
        layer.encoding.y.axis = axis
    # Given to the constructor: the methods of Altair would copy all layers each time.
    return alt.LayerChart(
        layer=drawn,
        width=base.WIDTH,
        height=panel.height,
        title=heading,
        transform=[alt.FilterTransform(filter=alt.FieldEqualPredicate(field="subject", equal=panel.subject))],
    )


def _x(table: Table) -> alt.X:
    if table.x is None:
        names = alt.X("series:N").title(None).sort(list(table.series))
        return names.axis(labelAngle=-90 if len(table.series) > 8 else -40, labelOverlap=False)
    return base.x_words(table) if table.x.numbers is None else base.x_quantity(table)


def _tooltip(table: Table, unit: Unit) -> list[alt.Tooltip]:
    first = [alt.Tooltip("series:N", title=table.series_title), alt.Tooltip("engine:N", title="engine")]
    if table.x is not None:
        first.append(alt.Tooltip("where:N", title=table.x.label))
    return [*first, alt.Tooltip("value:Q", title=unit.name, format=".4~r")]


def _flows_of(table: Table, flow: str) -> Sequence[str]:
    """The chosen flow, then those whose goodput differs most; a multicast group counts by its receivers."""
    groups = {point.flow for point in table.points if point.has_receivers}
    others = [one for one in _flows(table) if one != flow and one not in groups]
    if len(others) >= _MOST_FLOWS:
        kept = sorted(others, key=lambda one: -difference(_goodputs(table, one)))[: _MOST_FLOWS - 1]
        others = [one for one in others if one in kept]
    return [flow, *others]


def _flows(table: Table) -> Sequence[str]:
    """The flows that some figure shows."""
    return table.flows[:_CHOSEN]


def _resources(table: Table) -> Sequence[Resource]:
    """The engines with the greatest loads and ports with the longest queues, in the order of the outcomes.

    No engine where no load, and no port whose queue differs notably from point to point.
    """
    loads = [one for one in table.resources if one.signal is LOAD]
    if not any(one.difference >= _VISIBLE for one in loads):
        loads = []
    kept = sorted(loads, key=lambda one: -one.most)[:_MOST_ENGINES]
    kept += sorted(_differing_queues(table), key=lambda one: -one.most)[:_MOST_QUEUES]
    return [one for one in table.resources if one in kept]


def _differing_queues(table: Table) -> Sequence[Resource]:
    return [one for one in table.resources if one.signal is not LOAD and one.difference >= _NOTABLE]


def _goodputs(table: Table, flow: str) -> Mapping[Place, Spread]:
    return {
        (point.variant, point.engine, point.at): spread
        for variant in table.variants
        for point in table.of(flow, variant)
        if (spread := point.spread(GOODPUT)) is not None
    }


def _shown(table: Table, place: Place) -> bool:
    """Whether a point is in the figure, which shows one value of each axis beyond those of x and colour."""
    others = [at for _, at in _others(table)]
    at = place[2]
    return _series(table, place) in table.series and [*at[len(at) - len(others) :]] == others


def _series(table: Table, place: Place) -> str:
    """The colour of a point: its variant, or the value of the second axis."""
    variant, _, at = place
    return table.axes[1].texts[at[1]] if _by_second(table) else variant


def _by_second(table: Table) -> bool:
    return len(table.axes) > 1 and not table.panels


def _others(table: Table) -> list[tuple[Axis, int]]:
    """The axes with one value in the figure, each with the position of this value."""
    second = [(table.axes[1], table.axes[1].texts.index(table.panels[0]))] if table.panels else []
    return [*second, *((choice.axis, choice.kept[0]) for choice in table.choices)]


def _fixed(table: Table) -> str:
    return ", ".join(f"{axis.label} {axis.texts[at]}" for axis, at in _others(table))


def rows(table: Table) -> list[Row]:
    """The rows of all panels; few, however many values are swept."""
    drawn = _drawn(table)
    found: list[Row] = []
    flows = [_of_flow(table, flow) for flow in _flows(table)]
    for panel in (*flows, *map(_of_resource, _resources(table))):
        found += _curves(table, panel, drawn)
    return found


def _drawn(table: Table) -> Mapping[int, bool]:
    """The positions on the x axis that are drawn, and whether a marker is there."""
    if table.x is None:
        return {}
    numbers = table.x.numbers
    places = sorted(range(len(table.x.texts)), key=lambda at: at if numbers is None else numbers[at])
    curves = len(table.series) * len(table.engines) * (len(_flows(table)) + len(_resources(table)))
    kept = [places[rank] for rank in evenly(len(places), max(12, min(_VALUES, _ROWS // curves)))]
    step = -(-len(kept) // MARKS)
    return {at: rank % step == 0 for rank, at in enumerate(kept)}


def _curves(table: Table, panel: _Panel, drawn: Mapping[int, bool]) -> Iterator[Row]:
    axis = table.x
    for place, spread in panel.values.items():
        index = place[2][0] if axis is not None else 0
        if not _shown(table, place) or (axis is not None and index not in drawn):
            continue
        row: Row = {"subject": panel.subject, "series": _series(table, place), "engine": place[1]}
        if axis is not None:
            row["where"] = axis.texts[index]
            if axis.numbers is not None:
                row["x"] = axis.unit.of(axis.numbers[index])
        for column, value in (("value", spread.value), ("low", spread.low), ("high", spread.high)):
            row[column] = float(f"{panel.unit.of(value):.5g}")
        row["marked"] = drawn.get(index, True)
        yield row


def says(table: Table, _flow: str) -> str:
    """The caption: the meaning of the panels and marks."""
    shown = _resources(table)
    loads = [one for one in shown if one.signal is LOAD]
    queues = [one for one in shown if one.signal is not LOAD]
    below = []
    if loads:
        below.append("the share of the time in which each CPU and forwarding engine is busy")
    if queues:
        below.append(f"the longest queue of each port where it differs by {_NOTABLE:.0f} or more")
    flows = "flows" if len(table.flows) > 1 else "flow"
    parts = [f"At the top the goodput of the {flows}, below {' and '.join(below)}, over one axis."]
    if loads and "limit" in table.engines and table.measured:
        mark = "Dashed lines" if _is_numeric(table) else "Level marks"
        parts.append(f"{mark} are of the limit: the loads if every flow sends at its limit.")
    if fixed := _fixed(table):
        parts.append(f"At {fixed}.")
    working = sum(one.signal is LOAD for one in table.resources)
    for some, all_, what in (
        (
            min(_MOST_FLOWS, len(table.flows)),
            len(table.flows),
            "flows: the chosen one and those that differ most",
        ),
        (len(loads), working if loads else 0, "engines, those with the greatest loads"),
        (len(queues), len(_differing_queues(table)), "such queues, the longest ones"),
        (len(_drawn(table)), len(table.x.texts) if table.x else 0, "values"),
    ):
        if some < all_:
            parts.append(f"Shown are {some} of {all_:,} {what}.")
    return " ".join(parts)


def _is_numeric(table: Table) -> bool:
    return table.x is not None and table.x.numbers is not None


def _key(table: Table) -> base.Key:
    # Without a swept axis the names are below the panels.
    return "none" if table.x is None else "lines" if _is_numeric(table) else "marks"


FIGURE = base.Figure("goodput-resources", "Goodput, loads and queues", applies, draw, says, _key)
