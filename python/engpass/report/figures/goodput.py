"""Goodput over the swept axis: mean and spread of the repeats, the limit as a dashed line; bars where nothing is swept."""

import altair as alt

from engpass.report.aggregate import Table
from engpass.report.figures import base


def applies(table: Table, flow: str) -> bool:
    return any(point.flow == flow for point in table.points)


def draw(table: Table, flow: str) -> base.Drawing:
    if table.x is None:
        layers = _bars(table)
    elif table.x.numbers is None:
        layers = _words(table)
    else:
        layers = _curves(table)
    chart = alt.layer(*layers, data=base.data(table, flow))
    return base.finish(table, flow, chart, f"Goodput of {flow}")


def says(table: Table, flow: str) -> str:
    parts = []
    if table.measured:
        line = "Bars are" if table.x is None else "Lines are" if table.x.numbers is not None else "Markers are"
        parts.append(f"{line} the mean of the repeats, the {'thin line' if table.x is None else 'band'} goes from the least to the greatest.")
    if "limit" in table.engines:
        parts.append("The dashed line is the limit: the most that the layers and the hosts let through.")
    return " ".join(parts)


def _y(table: Table) -> alt.Y:
    return alt.Y("goodput:Q").title(f"goodput in {table.rate.name}").scale(zero=True)


def _curves(table: Table) -> list[alt.Chart]:
    x, colour = base.x_quantity(table), base.series_colour(table)
    measured = alt.Chart().transform_filter("datum.engine !== 'limit'")
    band = measured.mark_area(opacity=0.2, clip=True).encode(
        x=x, y=alt.Y("low:Q").title(""), y2="high:Q", color=base.series_colour(table), detail="engine:N"
    )
    line = alt.Chart().mark_line(strokeWidth=2, clip=True).encode(
        x=x, y=_y(table), color=colour, strokeDash=base.engine_dash(table.engines)
    )
    marks = measured.transform_filter("datum.marked").mark_point(filled=True, size=46, opacity=1).encode(
        x=x, y=_y(table), color=colour, shape=base.series_shape(table)
    )
    hover = alt.Chart().mark_circle(size=160, opacity=0).encode(
        x=x, y=_y(table), tooltip=base.tooltip(table), color=base.series_colour(table)
    )
    return [band, line, marks, hover] if table.measured else [line, hover]


def _words(table: Table) -> list[alt.Chart]:
    x, colour = base.x_words(table), base.series_colour(table)
    side = alt.XOffset("series:N").scale(domain=list(table.series))
    measured = alt.Chart().transform_filter("datum.engine !== 'limit'")
    spread = measured.mark_rule(strokeWidth=3, opacity=0.35).encode(
        x=x, xOffset=side, y=alt.Y("low:Q").title(""), y2="high:Q", color=base.series_colour(table)
    )
    marks = measured.mark_point(filled=True, size=70, opacity=1).encode(
        x=x, xOffset=side, y=_y(table), color=colour, shape=base.series_shape(table), tooltip=base.tooltip(table)
    )
    limit = alt.Chart().transform_filter("datum.engine === 'limit'").mark_tick(thickness=2, size=16, orient="horizontal")
    return [spread, marks, limit.encode(x=x, xOffset=side, y=_y(table), color=colour, tooltip=base.tooltip(table))]


def _bars(table: Table) -> list[alt.Chart]:
    y = alt.Y("series:N").title(None).sort(list(table.series)).axis(labelLimit=120)
    x = alt.X("goodput:Q").title(f"goodput in {table.rate.name}").scale(zero=True)
    colour = base.series_colour(table)
    measured = alt.Chart().transform_filter("datum.engine !== 'limit'")
    side = alt.YOffset("engine:N")
    bar = measured.mark_bar(opacity=0.75).encode(y=y, x=x, color=colour, tooltip=base.tooltip(table))
    spread = measured.mark_rule(strokeWidth=2).encode(y=y, x=alt.X("low:Q").title(""), x2="high:Q")
    if len(table.measured) > 1:
        bar, spread = bar.encode(yOffset=side), spread.encode(yOffset=side)
    limit = alt.Chart().transform_filter("datum.engine === 'limit'").mark_tick(thickness=3, size=34, orient="vertical")
    return [bar, spread, limit.encode(y=y, x=x, color=colour, tooltip=base.tooltip(table))]


FIGURE = base.Figure("goodput", "Goodput", applies, draw, says, "lines")
