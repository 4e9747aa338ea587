"""The layers of a figure that shows one quantity over the first axis.

Curves over numbers, markers over words, or bars if nothing is swept.
"""

from collections.abc import Sequence

import altair as alt
import msgspec

from engpass.report import theme
from engpass.report.figures import base
from engpass.results.aggregate import Table


class Quantity(msgspec.Struct, frozen=True):
    """The quantity that a figure shows.

    `mean`, `low` and `high` are columns of the rows, `counted` is the filter for rows that have the quantity,
    and `engines` are the engines whose curves are drawn.
    """

    mean: str
    low: str
    high: str
    title: str
    counted: str
    engines: Sequence[str]
    most: float
    """The greatest value that is drawn."""
    top: float | None = None
    """Upper end of the axis; `None` fits the axis to the data."""
    x: alt.X | None = None
    """The first axis; `None` for the usual one."""
    tooltip: Sequence[alt.Tooltip] | None = None
    """The tooltip of a point; `None` for all signals of summaries."""

    def on(self, channel: type[alt.X] | type[alt.Y], field: str = "") -> alt.X | alt.Y:
        """Encode the mean, or another column, on a channel."""
        return channel(f"{field or self.mean}:Q").title(self.title).scale(self.scale)

    @property
    def scale(self) -> alt.Scale:
        """The scale of the axis, from 0 to `top`."""
        return alt.Scale(zero=True) if self.top is None else alt.Scale(domain=[0, self.top], nice=False)


_NAME = 70
"""Width of the name of an engine behind a bar, in pixels."""


def layers(table: Table, quantity: Quantity) -> list[alt.Chart]:
    """The layers that suit the first axis: curves, markers or bars."""
    if table.x is None and quantity.x is None:
        return _bars(table, quantity)
    numeric = table.x is not None and table.x.numbers is not None
    return _curves(table, quantity) if numeric else _words(table, quantity)


def height(table: Table) -> int:
    """Height of the figure in pixels; it grows with the number of bars."""
    return len(table.series) * (22 + 20 * max(1, len(table.measured))) if table.x is None else base.HEIGHT


def _curves(table: Table, quantity: Quantity) -> list[alt.Chart]:
    x, y, colour = quantity.x or base.x_quantity(table), quantity.on(alt.Y), base.series_colour(table)
    counted = alt.Chart().transform_filter(quantity.counted)
    everything = alt.Chart() if "limit" in quantity.engines else counted
    band = counted.mark_area(opacity=0.2, clip=True).encode(
        x=x, y=quantity.on(alt.Y, quantity.low), y2=f"{quantity.high}:Q", color=colour, detail="engine:N"
    )
    dash = base.engine_dash(quantity.engines)
    line = everything.mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=colour, strokeDash=dash)
    marks = counted.transform_filter("datum.marked").mark_point(filled=True, size=46, opacity=1)
    hover = everything.mark_circle(size=160, opacity=0).encode(
        x=x, y=y, color=colour, tooltip=quantity.tooltip or base.tooltip(table)
    )
    if not table.measured:
        # Only the limit was computed: its curve needs no dashes.
        line = everything.mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=colour)
        marks = everything.transform_filter("datum.marked").mark_point(filled=True, size=46, opacity=1)
        return [line, marks.encode(x=x, y=y, color=colour, shape=base.series_shape(table)), hover]
    return [band, line, marks.encode(x=x, y=y, color=colour, shape=base.series_shape(table)), hover]


def _words(table: Table, quantity: Quantity) -> list[alt.Chart]:
    x, y, colour = quantity.x or base.x_words(table), quantity.on(alt.Y), base.series_colour(table)
    tooltip = quantity.tooltip or base.tooltip(table)
    # Without a swept axis the words are the series themselves.
    side = alt.XOffset("series:N").scale(domain=list(table.series)) if table.x else alt.Undefined
    counted = alt.Chart().transform_filter(quantity.counted)
    spread = counted.mark_rule(strokeWidth=3, opacity=0.35).encode(
        x=x, xOffset=side, y=quantity.on(alt.Y, quantity.low), y2=f"{quantity.high}:Q", color=colour
    )
    marks = counted.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, xOffset=side, y=y, color=colour, shape=base.series_shape(table), tooltip=tooltip
    )
    if "limit" not in quantity.engines:
        return [spread, marks]
    limit = _limit().mark_tick(thickness=2, size=22 if table.x else 10, orient="horizontal")
    return [spread, marks, limit.encode(x=x, xOffset=side, y=y, tooltip=tooltip)]


def _bars(table: Table, quantity: Quantity) -> list[alt.Chart]:
    named = len(table.measured) > 1
    x, colour = _along(quantity, quantity.mean, named), base.series_colour(table).legend(None)
    scale = alt.Scale(paddingInner=0.25, paddingOuter=0.15)
    y = alt.Y("series:N").title(None).sort(list(table.series)).scale(scale).axis(labelLimit=120)
    counted = alt.Chart().transform_filter(quantity.counted)
    bar = counted.mark_bar().encode(y=y, x=x, color=colour, tooltip=base.tooltip(table))
    spread = counted.mark_rule(strokeWidth=3).encode(
        y=y, x=_along(quantity, quantity.low, named), x2=f"{quantity.high}:Q"
    )
    if named:
        side = alt.YOffset("engine:N").scale(domain=list(table.measured), paddingInner=0.15)
        bar, spread = bar.encode(yOffset=side), spread.encode(yOffset=side)
        # The colour of a bar is that of its variant, so the engine is named behind the bar.
        name = counted.mark_text(align="left", dx=10, color=theme.LIGHT["muted"], fontSize=11).encode(
            y=y, x=_along(quantity, quantity.high, named), yOffset=side, text="engine:N"
        )
        bars = [bar, spread, name]
    else:
        bars = [bar, spread]
    if "limit" not in quantity.engines:
        return bars
    limit = _limit().mark_tick(thickness=3, size=16 + 20 * len(table.measured), orient="vertical")
    return [*bars, limit.encode(y=y, x=x, tooltip=base.tooltip(table))]


def _along(quantity: Quantity, field: str, named: bool) -> alt.X:
    """The axis of bars; at any width it leaves room for a name behind the longest bar."""
    x = alt.X(f"{field}:Q").title(quantity.title)
    if not named:
        return x.scale(quantity.scale)
    most = quantity.top or quantity.most or 1.0
    room = alt.ExprRef(f"{most} * width / max(width - {_NAME}, {_NAME})")
    # A percentage has no tick labels above 100, although the axis is longer.
    ticks = "datum.value > 100 ? '' : datum.label" if quantity.top == 100 else alt.Undefined
    return x.scale(domainMin=0, domainMax=room, nice=False).axis(labelExpr=ticks)


def _limit() -> alt.Chart:
    return alt.Chart().transform_filter("datum.engine === 'limit'")
