"""Loss over the swept axis: the share of the datagrams sent that never reached the application."""

from engpass.report.aggregate import Table
from engpass.report.figures import base
from engpass.report.figures.layers import Quantity, height, layers


def applies(table: Table, flow: str) -> bool:
    """Whether an engine counted the datagrams of the flow."""
    return any(point.flow == flow and point.loss is not None for point in table.points)


def draw(table: Table, flow: str) -> base.Drawing:
    """The figure about one flow."""
    most = max(point.loss.high for point in table.points if point.flow == flow and point.loss is not None)
    loss = Quantity(
        mean="loss",
        low="loss_low",
        high="loss_high",
        title="datagrams lost in %",
        counted="isValid(datum.loss)",
        engines=table.measured,
        most=100 * most,
        top=100 if most > 0.5 else max(1.0, 110 * most),
    )
    chart = base.stack(layers(table, loss))
    return base.finish(table, flow, chart, f"Loss of {flow}", height(table))


def says(_table: Table, _flow: str) -> str:
    """The caption: which losses count."""
    places = "buffers, policers, reassembly, sockets, lines that are down"
    return f"Lost datagrams as a share of the sent ones, with all causes: {places}."


def key(table: Table) -> base.Key:
    """The kind of legend; bars need none, since they have labels."""
    return "none" if table.x is None else "marks"


FIGURE = base.Figure("loss", "Loss", applies, draw, says, key)
