"""The type of a figure, and the parts that several figures share."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import altair as alt
import msgspec

from engpass.report import theme
from engpass.results.aggregate import Table
from engpass.results.axes import Axis
from engpass.results.samples import GOODPUT
from engpass.show.markup import Swatch
from engpass.types.signals import Signal

Drawing: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart

Key: TypeAlias = Literal["lines", "marks", "none"]
"""Kind of legend: lines with markers (and dashes), or markers alone.

`none` if labels or blocks of colour distinguish the series.
"""


ROWS = "rows"
"""Name of the data set with the rows of one flow (`Table.rows`)."""

CELLS = "cells"
"""Name of the data set with the cells of one flow's maps (`heat_map.cells`)."""

TOGETHER = "together"
"""Name of the data set with the goodputs of all flows and the loads of all engines."""

MAX_FACETS = 12
"""Maximum number of panels of a figure."""

WIDTH = 640
HEIGHT = 340


class Figure(msgspec.Struct, frozen=True):
    """One figure of the report.

    For a table and the name of a flow, `applies` returns whether the figure can be drawn, `draw` returns the
    chart, `says` the caption. `key` returns the kind of legend.
    """

    name: str
    title: str
    applies: Callable[[Table, str], bool]
    draw: Callable[[Table, str], Drawing]
    says: Callable[[Table, str], str]
    key: Callable[[Table], Key]
    blocks: Callable[[Table, str], Sequence[Swatch]] | None = None
    """Legend entries of a figure with blocks of colour; they replace `key`."""


def stack(layers: Sequence[alt.Chart]) -> alt.LayerChart:
    """Layers over the data set `ROWS`: all figures of a flow share its rows, which are added later."""
    return alt.LayerChart(data=alt.NamedData(name=ROWS), layer=list(layers))


def series_colour(table: Table) -> alt.Color:
    """Colour by series; the colours themselves come from the theme."""
    return alt.Color("series:N").scale(domain=list(table.series)).legend(_legend(table))


def series_shape(table: Table) -> alt.Shape:
    """Marker by series, in one legend with the colour."""
    shapes = [theme.shape(i) for i in range(len(table.series))]
    return alt.Shape("series:N").scale(domain=list(table.series), range=shapes).legend(_legend(table))


def engine_dash(engines: Sequence[str]) -> alt.StrokeDash:
    """Dash by engine: the limit is dashed."""
    dashes = [list(theme.dash(engine)) for engine in engines]
    legend = (
        alt.Legend(title="engine", symbolType="stroke", symbolSize=300, symbolOpacity=1)
        if len(engines) > 1
        else None
    )
    return alt.StrokeDash("engine:N").scale(domain=list(engines), range=dashes).legend(legend)


def _legend(table: Table) -> alt.Legend | None:
    return alt.Legend(title=table.series_title, symbolOpacity=1) if len(table.series) > 1 else None


def x_quantity(table: Table) -> alt.X:
    """The first axis of the sweep as a quantity, in its unit."""
    axis = _first(table)
    scale = alt.Scale(type="log", nice=False) if axis.log else alt.Scale(nice=False, zero=False, padding=6)
    return alt.X("x:Q").title(axis.title).scale(scale)


def x_words(table: Table) -> alt.X:
    """The first axis of the sweep as words, in the order of the file."""
    axis = _first(table)
    return (
        alt.X("where:N")
        .title(axis.title)
        .sort(list(axis.texts))
        .axis(labelAngle=0 if len(axis.texts) < 6 else -40)
    )


def _first(table: Table) -> Axis:
    if table.x is None:
        raise AssertionError("internal error: this figure needs a swept axis, but the run has none")
    return table.x


def tooltip(table: Table) -> list[alt.Tooltip]:
    """The tooltip of a point: series, engine, swept value, and the signals of summaries."""
    first: list[alt.Tooltip] = [
        alt.Tooltip("series:N", title=table.series_title),
        alt.Tooltip("engine:N", title="engine"),
    ]
    if table.x is not None:
        first.append(alt.Tooltip("where:N", title=table.x.label))
    if table.panels:
        first.append(alt.Tooltip("panel:N", title=table.axes[1].label))
    return [
        *first,
        *(
            alt.Tooltip(f"{signal.name}{end}:Q", title=title, format=".4~r")
            for signal, unit in table.signals.items()
            for end, title in (
                ("", f"{signal.title.lower()}, {unit.name}"),
                *((("_low", "minimum"), ("_high", "maximum")) if signal is GOODPUT else ()),
            )
        ),
    ]


def finish(table: Table, flow: str, chart: alt.LayerChart, title: str, height: int = HEIGHT) -> Drawing:
    """Add panels, menus of the choices and the title to the layers of a figure."""
    subtitle = [f"flow {flow}"] if len(table.flows) > 1 else []
    for index, choice in enumerate(table.choices):
        name = f"choice{index}"
        texts = choice.texts
        picked = alt.param(
            name=name, value=texts[0], bind=alt.binding_select(options=texts, name=f"{choice.axis.label}: ")
        )
        chart = chart.add_params(picked).transform_filter(f"datum.{name} === {name}")
        subtitle.append(f"{choice.axis.label}: {texts[0]}")
    heading = alt.TitleParams(title, subtitle=subtitle) if subtitle else alt.TitleParams(title)
    if not table.panels:
        return chart.properties(width=WIDTH, height=height, title=heading)
    facet = alt.Facet("panel:N").title(table.axes[1].label).sort(list(table.panels))
    drawn = chart.properties(width=WIDTH // 2 - 30, height=HEIGHT * 2 // 3).facet(facet, columns=2)
    return own_axes(drawn, len(table.panels)).properties(title=heading)


def ranges_differ(table: Table, flow: str, signal: Signal) -> bool:
    """Whether a panel's maximum of a signal is over twice another's, which a shared scale would flatten."""
    most: dict[str, float] = {}
    for point in table.points:
        if table.panels and point.flow == flow:
            panel = table.axes[1].texts[point.at[1]]
            if panel in table.panels:
                spread = point.spread(signal)
                most[panel] = max(most.get(panel, 0.0), spread.high if spread is not None else 0.0)
    return bool(most) and max(most.values()) > 2 * min(most.values())


def own_axes(chart: alt.FacetChart, panels: int, columns: int = 2) -> alt.FacetChart:
    """Give each panel its own x axis if the last row is not full.

    Vega-Lite draws shared axes only below the last row, even under an empty cell.
    """
    return chart.resolve_axis(x="independent") if panels % columns else chart
