"""Loss over the swept axis: the share of the datagrams sent that never reached the application."""

import altair as alt

from engpass.report.aggregate import Table
from engpass.report.figures import base


def applies(table: Table, flow: str) -> bool:
    return any(point.flow == flow and point.loss is not None for point in table.points)


def draw(table: Table, flow: str) -> base.Drawing:
    counted = alt.Chart().transform_filter("isValid(datum.loss)")
    if table.x is None:
        layers = _bars(table, counted)
    elif table.x.numbers is None:
        layers = _words(table, counted)
    else:
        layers = _curves(table, counted)
    return base.finish(table, flow, alt.layer(*layers, data=base.data(table, flow)), f"Loss of {flow}")


def says(table: Table, flow: str) -> str:
    return "Datagrams lost as a share of those sent, whatever lost them: buffers, policers, reassembly, sockets."


def _loss(channel: type[alt.X] | type[alt.Y], field: str = "loss") -> alt.X | alt.Y:
    return channel(f"{field}:Q").title("datagrams lost in %").scale(domain=[0, 100], nice=False)


def _curves(table: Table, counted: alt.Chart) -> list[alt.Chart]:
    x, y, colour = base.x_quantity(table), _loss(alt.Y), base.series_colour(table)
    band = counted.mark_area(opacity=0.2, clip=True).encode(
        x=x, y=_loss(alt.Y, "loss_low"), y2="loss_high:Q", color=base.series_colour(table), detail="engine:N"
    )
    line = counted.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=base.engine_dash(table.measured))
    marks = counted.transform_filter("datum.marked").mark_point(filled=True, size=46, opacity=1).encode(
        x=x, y=y, color=colour, shape=base.series_shape(table)
    )
    hover = counted.mark_circle(size=160, opacity=0).encode(
        x=x, y=y, tooltip=base.tooltip(table), color=base.series_colour(table)
    )
    return [band, line, marks, hover]


def _words(table: Table, counted: alt.Chart) -> list[alt.Chart]:
    x, colour = base.x_words(table), base.series_colour(table)
    side = alt.XOffset("series:N").scale(domain=list(table.series))
    spread = counted.mark_rule(strokeWidth=3, opacity=0.35).encode(
        x=x, xOffset=side, y=_loss(alt.Y, "loss_low"), y2="loss_high:Q", color=base.series_colour(table)
    )
    marks = counted.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, xOffset=side, y=_loss(alt.Y), color=colour, shape=base.series_shape(table), tooltip=base.tooltip(table)
    )
    return [spread, marks]


def _bars(table: Table, counted: alt.Chart) -> list[alt.Chart]:
    y = alt.Y("series:N").title(None).sort(list(table.series)).axis(labelLimit=120)
    colour = base.series_colour(table)
    bar = counted.mark_bar(opacity=0.75).encode(y=y, x=_loss(alt.X), color=colour, tooltip=base.tooltip(table))
    spread = counted.mark_rule(strokeWidth=2).encode(y=y, x=_loss(alt.X, "loss_low"), x2="loss_high:Q")
    if len(table.measured) > 1:
        side = alt.YOffset("engine:N")
        bar, spread = bar.encode(yOffset=side), spread.encode(yOffset=side)
    return [bar, spread]


FIGURE = base.Figure("loss", "Loss", applies, draw, says, "marks")
