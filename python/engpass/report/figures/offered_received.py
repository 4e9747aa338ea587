"""Offered against received: on the diagonal everything arrives, below it the network loses, and where a curve turns is its knee."""

import altair as alt

from engpass.report.aggregate import Table
from engpass.report.figures import base


def applies(table: Table, flow: str) -> bool:
    return any(point.flow == flow and point.engine != "limit" for point in table.points)


def draw(table: Table, flow: str) -> base.Drawing:
    rate = table.rate
    top = max(
        max(p.offered.mean, p.goodput.mean) for p in table.points if p.flow == flow and p.engine != "limit"
    )
    x = alt.X("offered:Q").title(f"offered in {rate.name}").scale(zero=True)
    y = alt.Y("goodput:Q").title(f"received in {rate.name}").scale(zero=True)
    measured = alt.Chart().transform_filter("datum.engine !== 'limit'")
    colour = base.series_colour(table)
    diagonal = alt.Chart(
        alt.InlineData(
            values=[{"offered": 0, "goodput": 0}, {"offered": rate.of(top), "goodput": rate.of(top)}]
        )
    )
    layers = [diagonal.mark_line(style="reference").encode(x=x, y=y)]
    if table.x is not None and table.x.numbers is not None:
        path = measured.mark_line(strokeWidth=1, opacity=0.45)
        layers.append(path.encode(x=x, y=y, color=base.series_colour(table), order="x:Q", detail="engine:N"))
    marks = measured.mark_point(filled=True, size=50, opacity=0.9)
    layers.append(
        marks.encode(x=x, y=y, color=colour, shape=base.series_shape(table), tooltip=base.tooltip(table))
    )
    return base.finish(
        table, flow, alt.layer(*layers, data=base.data(table, flow)), f"Offered and received, {flow}"
    )


def says(table: Table, flow: str) -> str:
    along = (
        f" A line joins the points in the order of the {table.x.label}."
        if table.x and table.x.numbers
        else ""
    )
    return f"On the dashed diagonal all that was offered arrived.{along}"


FIGURE = base.Figure("offered-received", "Offered against received", applies, draw, says, lambda _: "marks")
