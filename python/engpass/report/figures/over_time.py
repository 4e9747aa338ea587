"""Curves and events on one time axis: a panel for each unit or subject, and a row for each kind of event."""

from collections.abc import Iterable, Sequence

import altair as alt

from engpass.report import theme
from engpass.report.figures import base
from engpass.results.aggregate import Row
from engpass.show.blocks import Curve, Marks, OverTime, Panel
from engpass.units import PERCENT, Unit, unit_for

_BINS = 1_500
"""Time bins; events of one kind in the same bin are drawn as one mark."""

_EXTENT = 52
"""Pixels for the y axis of every panel; equal widths align the time axes."""


def draw(block: OverTime) -> alt.VConcatChart:
    """The figure of curves and events."""
    unit = unit_for("s", [block.end_s])
    time = alt.X("t:Q").title(None).scale(domain=[0, unit.of(block.end_s)], nice=False)
    bare = time.axis(labels=False, ticks=False, domain=False, tickCount=10)
    panels = [_panel(panel, bare, unit) for panel in block.panels]
    if block.marks:
        panels.append(_events(block, bare, unit))
    # The time axis stands below all panels.
    clock = time.title(f"time in {unit.name}").axis(tickCount=10, grid=False)
    panels.append(_layers([alt.Chart().mark_point(opacity=0).encode(x=clock)], [{"t": 0}], 1))
    return alt.VConcatChart(
        vconcat=panels,
        spacing=12,
        title=alt.TitleParams(block.title, subtitle=[block.subtitle]),
        bounds="flush",
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(x="shared", color="independent")),
    )


def _panel(panel: Panel, time: alt.X, clock: Unit) -> alt.LayerChart:
    most = max((value for curve in panel.curves for value in curve.values), default=0)
    unit = unit_for(panel.unit, [most]) if panel.unit else PERCENT
    *above, last = panel.title
    title = f"{last} in {unit.name}"
    y = alt.Y("value:Q").title([*above, title] if above else title).axis(minExtent=_EXTENT)
    if panel.unit or panel.full is None:
        rules = [] if panel.full is None else [{"value": unit.of(panel.full)}]
    else:
        # A share has the same scale in all figures.
        rules, y = [], y.scale(domain=[0, unit.of(panel.full)]).axis(minExtent=_EXTENT, tickCount=3)
    first = panel.curves[0]
    if len(panel.curves) > 1:
        layers, height = [_lines(panel.curves).encode(x=time, y=y)], 150
    elif first.ends_s:
        bars = alt.Chart().mark_rect(color=theme.LIGHT[first.colour], clip=True)
        layers, height = [bars.encode(x=time, x2="end:Q", y=y, y2=alt.datum(0))], 80
    else:
        edge = {"color": theme.LIGHT[first.colour], "strokeWidth": 1}
        area = alt.Chart().mark_area(
            color=theme.LIGHT["idle2"], interpolate="step-after", clip=True, line=edge
        )
        layers, height = [area.encode(x=time, y=y)], 90
    if rules:
        full = alt.Chart(alt.InlineData(values=rules))
        layers.append(full.mark_rule(style="reference").encode(y=alt.Y("value:Q")))
    return _layers(layers, [row for curve in panel.curves for row in _rows(curve, clock, unit)], height)


def _rows(curve: Curve, clock: Unit, unit: Unit) -> list[Row]:
    rows: list[Row] = [
        {"t": clock.of(time), "value": unit.of(value), "name": curve.name}
        for time, value in zip(curve.times_s, curve.values, strict=True)
    ]
    for row, end in zip(rows, curve.ends_s, strict=False):
        row["end"] = clock.of(end)
    return rows


def _lines(curves: Sequence[Curve]) -> alt.Chart:
    colour = (
        alt.Color("name:N")
        .scale(domain=[curve.name for curve in curves], range=[theme.LIGHT[curve.colour] for curve in curves])
        .legend(alt.Legend(title=None, orient="top", symbolType="stroke"))
    )
    line = alt.Chart().mark_line(strokeWidth=1.5, interpolate="step-after", clip=True)
    coloured: alt.Chart = line.encode(color=colour)
    return coloured


def _events(block: OverTime, time: alt.X, clock: Unit) -> alt.LayerChart:
    names = [marks.name for marks in block.marks]
    colours = [theme.LIGHT[marks.colour] for marks in block.marks]
    colour = alt.Color("kind:N").scale(domain=names, range=colours).legend(None)
    y = alt.Y("kind:N").title(None).sort(names).scale(domain=names).axis(minExtent=_EXTENT, labelLimit=110)
    rows: list[Row] = [
        {"t": clock.of(instant), "kind": marks.name}
        for marks in block.marks
        for instant in _thinned(marks.times_s, block.end_s)
    ]
    ticks = alt.Chart().mark_tick(thickness=1.2, size=16, opacity=1, clip=True)
    layers = [ticks.encode(x=time, y=y, color=colour)]
    if spans := list(_spans(block.marks, clock)):
        bars = alt.Chart(alt.InlineData(values=spans)).mark_bar(size=10, clip=True)
        layers.insert(0, bars.encode(x=time, x2="end:Q", y=y, color=colour))
    return _layers(layers, rows, 24 * len(names))


def _spans(kinds: Iterable[Marks], clock: Unit) -> Iterable[Row]:
    for marks in kinds:
        for begin, until in marks.spans_s[:_BINS]:
            yield {"t": clock.of(begin), "end": clock.of(until), "kind": marks.name}


def _thinned(times: Iterable[float], end: float) -> list[float]:
    """Keep one time per bin, so that marks do not cover each other."""
    bins = {min(_BINS, int(time / end * _BINS)): time for time in times} if end > 0 else {}
    return [bins[place] for place in sorted(bins)]


def _layers(layers: Sequence[alt.Chart], rows: list[Row], height: int) -> alt.LayerChart:
    data = alt.InlineData(values=rows)
    return alt.LayerChart(layer=list(layers), data=data, width=base.WIDTH, height=height)
