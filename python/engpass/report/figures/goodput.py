"""Goodput over the swept axis: mean and spread of the repeats, and the limit as a dashed line."""

from engpass.report.aggregate import Table
from engpass.report.figures import base
from engpass.report.figures.layers import Quantity, height, layers


def applies(table: Table, flow: str) -> bool:
    """Whether the flow has points: every engine gives a goodput."""
    return any(point.flow == flow for point in table.points)


def draw(table: Table, flow: str) -> base.Drawing:
    """The figure about one flow."""
    goodput = Quantity(
        mean="goodput",
        low="low",
        high="high",
        title=f"goodput in {table.rate.name}",
        counted="datum.engine !== 'limit'",
        engines=table.engines,
        most=table.rate.of(max(point.goodput.high for point in table.points if point.flow == flow)),
    )
    chart = base.stack(layers(table, goodput))
    drawn = base.finish(table, flow, chart, f"Goodput of {flow}", height(table))
    return drawn.resolve_scale(y="independent") if base.ranges_differ(table, flow) else drawn


def says(table: Table, flow: str) -> str:
    """The caption: the meaning of the marks."""
    what, spread, limit = "Lines", "the band", "dashed line"
    if table.x is None:
        what, spread, limit = "Bars", "the thin line", "upright mark"
    elif table.x.numbers is None:
        what, spread, limit = "Markers", "the thick line", "level mark"
    elif not table.measured:
        limit = "line"
    parts = []
    if table.measured:
        parts.append(f"{what} show the mean of the repeats, {spread} the range from minimum to maximum.")
    if "limit" in table.engines:
        parts.append(
            f"The {limit} is the limit of the layers and hosts, if other traffic gets its fair share."
        )
    if base.ranges_differ(table, flow):
        parts.append("Every panel has its own scale.")
    return " ".join(parts)


def key(table: Table) -> base.Key:
    """The kind of legend; bars need none, since they have labels."""
    return "none" if table.x is None else "lines"


FIGURE = base.Figure("goodput", "Goodput", applies, draw, says, key)
