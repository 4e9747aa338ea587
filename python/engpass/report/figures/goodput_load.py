"""Goodput of the flows and loads of the engines in one picture: panels with one x axis.

A reader sees at which value an engine becomes fully loaded, and what the flows get from there on.
"""

from collections.abc import Iterator, Mapping, Sequence

import altair as alt

from engpass.report import theme
from engpass.report.figures import base
from engpass.report.figures.layers import Quantity, layers
from engpass.results.aggregate import MARKS, Row, Table, evenly
from engpass.results.axes import Axis
from engpass.results.engine_loads import EngineLoads, difference
from engpass.results.ledger_series import Place
from engpass.results.samples import GOODPUT, Spread
from engpass.units import Unit

_MOST_FLOWS, _MOST_ENGINES = 6, 8
"""Maximum number of panels with the goodput of a flow, and with the load of an engine."""
_CHOSEN = 12
"""Maximum number of flows that can be chosen."""
_VALUES = 64
"""Maximum number of values of the axis that are drawn."""
_ROWS = 8_000
"""About the most rows of the figure."""
_VISIBLE = 0.01
"""The least difference of two loads that a reader sees."""
_EXTENT = 42
"""Pixels for the labels of every y axis; equal widths align the panels."""
_PERCENT = Unit("%", 0.01)


def applies(table: Table, _flow: str) -> bool:
    """Whether the load of an engine differs from point to point."""
    return any(one.difference >= _VISIBLE for one in table.loads)


def draw(table: Table, flow: str) -> base.Drawing:
    """The figure, with the panel of the chosen flow first."""
    flows = _panels_of(table, flow)
    subjects = [(_subject(table, one), f"goodput of {one} in {table.rate.name}") for one in flows]
    subjects += [(engine.name, f"load of {engine.name} in %") for engine in _engines(table)]
    panels = [
        _panel(table, subject, title, is_load=number >= len(flows), last=number == len(subjects) - 1)
        for number, (subject, title) in enumerate(subjects)
    ]
    return alt.VConcatChart(
        data=alt.NamedData(name=base.TOGETHER),
        vconcat=panels,
        spacing=34,
        bounds="flush",
        usermeta={"beside": 70},
        title=alt.TitleParams(FIGURE.title, subtitle=[_fixed(table)] if _fixed(table) else []),
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(x="shared")),
    )


def _panel(table: Table, subject: str, title: str, *, is_load: bool, last: bool) -> alt.LayerChart:
    x = _x(table)
    if not last:
        x = x.title(None).axis(labels=False, ticks=False, domain=False)
    unit = _PERCENT if is_load else table.rate
    quantity = Quantity(
        mean="value",
        low="low",
        high="high",
        title="",
        counted="datum.engine !== 'limit'",
        engines=table.engines,
        most=0.0,
        top=100 if is_load else None,
        x=x,
        tooltip=_tooltip(table, unit),
    )
    heading = alt.TitleParams(
        title,
        fontSize=12,
        fontWeight="normal",
        offset=4,
        anchor="start",
        color=theme.LIGHT["ink"],
        limit=alt.ExprRef(f"width + {_EXTENT}"),
    )
    drawn = alt.LayerChart(layer=layers(table, quantity), width=base.WIDTH, title=heading)
    axis = alt.Axis(title=None, minExtent=_EXTENT, tickCount=3)
    for layer in drawn.layer:
        layer.encoding.y.axis = axis
    drawn = drawn.transform_filter(alt.FieldEqualPredicate(field="subject", equal=subject))
    return drawn.properties(height=70 if is_load else 120)


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


def _panels_of(table: Table, flow: str) -> Sequence[str]:
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


def _subject(table: Table, flow: str) -> str:
    """The name of a flow's rows, which differs from those of engines."""
    return f"{table.flows.index(flow)}"


def _engines(table: Table) -> Sequence[EngineLoads]:
    """The engines with the greatest loads, in the order of the outcomes."""
    kept = sorted(table.loads, key=lambda one: -one.most)[:_MOST_ENGINES]
    return [one for one in table.loads if one in kept]


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
    for flow in _flows(table):
        found += _curves(table, _subject(table, flow), table.rate, _goodputs(table, flow), drawn)
    for engine in _engines(table):
        found += _curves(table, engine.name, _PERCENT, engine.at, drawn)
    return found


def _drawn(table: Table) -> Mapping[int, bool]:
    """The positions on the x axis that are drawn, and whether a marker is there."""
    if table.x is None:
        return {}
    numbers = table.x.numbers
    places = sorted(range(len(table.x.texts)), key=lambda at: at if numbers is None else numbers[at])
    curves = len(table.series) * len(table.engines) * (len(_flows(table)) + len(_engines(table)))
    kept = [places[rank] for rank in evenly(len(places), max(12, min(_VALUES, _ROWS // curves)))]
    step = -(-len(kept) // MARKS)
    return {at: rank % step == 0 for rank, at in enumerate(kept)}


def _curves(
    table: Table, subject: str, unit: Unit, values: Mapping[Place, Spread], drawn: Mapping[int, bool]
) -> Iterator[Row]:
    axis = table.x
    for place, spread in values.items():
        index = place[2][0] if axis is not None else 0
        if not _shown(table, place) or (axis is not None and index not in drawn):
            continue
        row: Row = {"subject": subject, "series": _series(table, place), "engine": place[1]}
        if axis is not None:
            row["where"] = axis.texts[index]
            if axis.numbers is not None:
                row["x"] = axis.unit.of(axis.numbers[index])
        for column, value in (("value", spread.value), ("low", spread.low), ("high", spread.high)):
            row[column] = float(f"{unit.of(value):.5g}")
        row["marked"] = drawn.get(index, True)
        yield row


def says(table: Table, _flow: str) -> str:
    """The caption: the meaning of the panels and marks."""
    flows = "flows" if len(table.flows) > 1 else "flow"
    busy = "the share of the time in which each CPU and forwarding engine is busy"
    parts = [f"At the top the goodput of the {flows}, below {busy}, over one axis."]
    if "limit" in table.engines and table.measured:
        mark = "Dashed lines" if _is_numeric(table) else "Level marks"
        parts.append(f"{mark} are of the limit: the loads if every flow sends at its limit.")
    if fixed := _fixed(table):
        parts.append(f"At {fixed}.")
    for shown, every, what in (
        (
            min(_MOST_FLOWS, len(table.flows)),
            len(table.flows),
            "flows: the chosen one and those that differ most",
        ),
        (len(_engines(table)), len(table.loads), "engines, those with the greatest loads"),
        (len(_drawn(table)), len(table.x.texts) if table.x else 0, "values"),
    ):
        if shown < every:
            parts.append(f"Shown are {shown} of {every:,} {what}.")
    return " ".join(parts)


def _is_numeric(table: Table) -> bool:
    return table.x is not None and table.x.numbers is not None


def _key(table: Table) -> base.Key:
    # Without a swept axis the names are below the panels.
    return "none" if table.x is None else "lines" if _is_numeric(table) else "marks"


FIGURE = base.Figure("goodput-load", "Goodput and load of the engines", applies, draw, says, _key)
