"""Received rate over offered rate.

On the diagonal everything arrives; below it the network loses traffic. A curve leaves it at its knee.
"""

import altair as alt

from engpass.report.figures import base
from engpass.results.aggregate import Row, Table
from engpass.results.samples import GOODPUT, OFFERED


def applies(table: Table, flow: str) -> bool:
    """Whether an engine other than `limit` has points of the flow."""
    return any(point.flow == flow and point.engine != "limit" for point in table.points)


def draw(table: Table, flow: str) -> base.Drawing:
    """The figure about one flow."""
    top = max(
        max(p.samples.folded(OFFERED) or 0.0, p.goodput.value)
        for p in table.points
        if p.flow == flow and p.engine != "limit"
    )
    x = alt.X(f"{OFFERED.name}:Q").title(f"offered in {table.rate.name}").scale(zero=True)
    y = alt.Y(f"{GOODPUT.name}:Q").title(f"received in {table.rate.name}").scale(zero=True)
    measured = alt.Chart().transform_filter("datum.engine !== 'limit'")
    colour = base.series_colour(table)
    ends: list[Row] = [{OFFERED.name: rate, GOODPUT.name: rate} for rate in (0, table.rate.of(top))]
    diagonal = alt.Chart(alt.InlineData(values=ends))
    layers = [diagonal.mark_line(style="reference").encode(x=x, y=y)]
    if table.x is not None and table.x.numbers is not None:
        path = measured.mark_line(strokeWidth=1, opacity=0.45)
        layers.append(path.encode(x=x, y=y, color=base.series_colour(table), order="x:Q", detail="engine:N"))
    for index, engine in enumerate(table.measured):
        its = alt.Chart().transform_filter(alt.datum.engine == engine)
        # Marks of later engines are larger, so that equal points of several engines remain visible.
        marks = its.mark_point(filled=index == 0, size=50 + 90 * index, opacity=0.9)
        layers.append(
            marks.encode(x=x, y=y, color=colour, shape=base.series_shape(table), tooltip=base.tooltip(table))
        )
    chart = base.stack(layers)
    return base.finish(table, flow, chart, f"Received against offered, {flow}")


def says(table: Table, _flow: str) -> str:
    """The caption: the meaning of the diagonal, the lines and the marks."""
    along = (
        f" A line joins the points in the order of the {table.x.label}."
        if table.x and table.x.numbers
        else ""
    )
    return f"On the dashed diagonal, the received rate equals the offered rate.{along}{_marks(table)}"


def _marks(table: Table) -> str:
    filled, *open_ = table.measured
    if not open_:
        return ""
    ascending = ", ".join(["open ones of {}", "larger ones of {}", "the largest of {}"][: len(open_)])
    return f" Filled marks are of {filled}, {ascending.format(*open_)}."


FIGURE = base.Figure("offered-received", "Received against offered", applies, draw, says, lambda _: "marks")
