"""The goodputs of all flows as bars, in per cent of an even split, with a panel for each variant."""

from typing import TypedDict

import altair as alt

from engpass import formatting
from engpass.report import theme
from engpass.report.figures import base
from engpass.results.aggregate import Point, Table

MAX_BARS = 24
"""Maximum number of flows in the figure; the bars of more flows would be too thin."""


class _Bar(TypedDict):
    """A row of the data: one bar."""

    series: str
    flow: str
    share: float
    label: str
    chosen: bool


def applies(table: Table, _flow: str) -> bool:
    """Whether nothing is swept and 2 to `MAX_BARS` flows have results."""
    if table.x is not None or len(table.flows) > MAX_BARS:
        return False
    return len({point.flow for point in _points(table)}) > 1


def draw(table: Table, flow: str) -> base.Drawing:
    """Draw the figure; the chosen flow stands out."""
    points = _points(table)
    rows: list[_Bar] = []
    for variant in table.variants[: base.MAX_FACETS]:
        panel = [point for point in points if point.variant == variant]
        even = sum(point.goodput.value for point in panel) / max(1, len(panel))
        if not even:
            continue
        rows += [
            {
                "series": variant,
                "flow": point.flow,
                "share": 100 * point.goodput.value / even,
                "label": formatting.rate(point.goodput.value),
                "chosen": point.flow == flow,
            }
            for point in panel
        ]
    panels = list(dict.fromkeys(row["series"] for row in rows))
    most = max((row["share"] for row in rows), default=100.0)
    y = alt.Y("flow:N").title(None).sort(list(table.flows))
    # Leave room for the label of the longest bar.
    x = alt.X("share:Q").title("% of an equal share").scale(domain=[0, 1.4 * max(most, 100.0)], nice=False)
    bars = (
        alt.Chart()
        .mark_bar()
        .encode(
            y=y,
            x=x,
            color=base.series_colour(table),
            opacity=alt.condition("datum.chosen", alt.value(1.0), alt.value(0.6)),
            tooltip=[
                alt.Tooltip("series:N", title=table.series_title),
                alt.Tooltip("flow:N", title="flow"),
                alt.Tooltip("label:N", title="goodput"),
                alt.Tooltip("share:Q", title="% of an equal share", format=".4~r"),
            ],
        )
    )
    labels = (
        alt.Chart()
        .mark_text(align="left", dx=5, baseline="middle", color=theme.LIGHT["muted"], fontSize=11)
        .encode(y=y, x=x, text="label:N")
    )
    layered = alt.LayerChart(
        layer=[bars, labels], width=base.WIDTH // 2 - 30, height=max(60, 18 * len(table.flows))
    )
    facet = alt.Facet("series:N").title(None).sort(panels)
    drawn = layered.facet(facet, columns=2, data=alt.InlineData(values=rows))
    return base.own_axes(drawn, len(panels)).properties(
        title=alt.TitleParams("Goodput of all flows", subtitle=[f"flow {flow} is highlighted"])
    )


def says(table: Table, _flow: str) -> str:
    """The caption: the meaning of the bars."""
    of = f" as {table.measured[0]} measured it" if len(table.measured) > 1 else ""
    return f"Goodput of all flows{of}, the mean of the repeats: 100 % is an equal share for every flow."


def _points(table: Table) -> list[Point]:
    """The points of the first engine other than `limit`; a multicast group counts by its receivers."""
    engine = next(iter(table.measured), None)
    return [
        point
        for point in table.points
        if point.engine == engine and point.flow in table.flows and not point.has_receivers
    ]


FIGURE = base.Figure("sharing", "Goodput of all flows", applies, draw, says, lambda _: "none")
