"""A signal over the swept axis: the folded repeats and their range, and for the goodput the limit."""

from collections.abc import Callable, Sequence

from engpass import formatting
from engpass.report.figures import base, heat_map
from engpass.report.figures.layers import Quantity, height, layers
from engpass.results.aggregate import Table
from engpass.results.samples import DELAY_P99, GOODPUT, IDLE_DELAY, LOSS, MESSAGE_DELAY_P99, TRANSFER_TIME
from engpass.types.signals import Signal

_WAITS = 1.1
"""Least ratio of the message delay to the delay of packets for a figure of its own: our choice."""


def _figure(name: str, signal: Signal, caption: Callable[[Table, str], str]) -> base.Figure:
    """The figure of a signal; `caption` says what its marks mean."""

    def applies(table: Table, flow: str) -> bool:
        # A map shows all values at once; only of the goodput the panels show more, the limit and the repeats.
        if signal is not GOODPUT and heat_map.is_wide(table):
            return False
        most = _most(table, flow, signal)
        if signal is MESSAGE_DELAY_P99 and most is not None:
            # A message without retransmissions takes hardly longer than its packets.
            return most > _WAITS * (_most(table, flow, DELAY_P99) or 0.0)
        return most is not None

    def draw(table: Table, flow: str) -> base.Drawing:
        chart = base.stack(layers(table, _quantity(table, flow, signal)))
        drawn = base.finish(table, flow, chart, f"{signal.title} of {flow}", height(table))
        return drawn.resolve_scale(y="independent") if base.ranges_differ(table, flow, signal) else drawn

    # Bars have labels, so they need no legend.
    kind: base.Key = "lines" if signal is GOODPUT else "marks"
    return base.Figure(
        name, signal.title, applies, draw, caption, lambda table: "none" if table.x is None else kind
    )


def _most(table: Table, flow: str, signal: Signal) -> float | None:
    """The greatest value of a flow's signal in base units; `None` without one."""
    spreads = (point.spread(signal) for point in table.points if point.flow == flow)
    return max((spread.high for spread in spreads if spread is not None), default=None)


def _quantity(table: Table, flow: str, signal: Signal) -> Quantity:
    unit, most = table.signals[signal], _most(table, flow, signal) or 0.0
    top = None
    if not signal.unit:
        # Small shares are readable, and large ones are shown on the whole scale.
        top = 100 if most > 0.5 else max(1.0, 110 * most)
    return Quantity(
        mean=signal.name,
        low=f"{signal.name}_low",
        high=f"{signal.name}_high",
        title=f"{signal.title.lower()} in {unit.name}",
        counted="datum.engine !== 'limit'" if signal is GOODPUT else f"isValid(datum.{signal.name})",
        engines=table.engines if signal is GOODPUT else table.measured,
        most=unit.of(most),
        top=top,
    )


def _marks(table: Table) -> tuple[str, str, str]:
    """Words for the marks that show the repeats, their range, and the limit."""
    if table.x is None:
        return "Bars", "the thin line", "upright mark"
    if table.x.numbers is None:
        return "Markers", "the thick line", "level mark"
    return "Lines", "the band", "dashed line" if table.measured else "line"


def _goodput_caption(table: Table, flow: str) -> str:
    what, spread, limit = _marks(table)
    parts = []
    if table.measured:
        parts.append(f"{what} show the mean of the repeats, {spread} the range from minimum to maximum.")
    if "limit" in table.engines:
        parts.append(
            f"The {limit} is the limit of the layers and hosts, if other traffic gets its fair share."
        )
    if base.ranges_differ(table, flow, GOODPUT):
        parts.append("Every panel has its own scale.")
    return " ".join(parts)


def _loss_caption(_table: Table, _flow: str) -> str:
    places = "buffers, engines of routers, policers, reassembly, sockets, and lines and tunnels that are down"
    return f"Lost datagrams as a share of the sent ones, with all causes: {places}."


def _delay_caption(table: Table, flow: str) -> str:
    what, spread, _ = _marks(table)
    receiver = table.slowest_receiver(flow)
    idle = [
        seconds
        for point in table.points
        if point.flow == (receiver or flow) and (seconds := point.samples.folded(IDLE_DELAY)) is not None
    ]
    least = f" In an idle network it is {_range(idle)}" if idle else ""
    if receiver is not None:
        least = f" The delay is that of the slowest receiver, {receiver}.{least}"
    least += "." if idle else ""
    return (
        f"{what} show the delay that 99 % of the datagrams or segments do not exceed, {spread} the range"
        f" of the repeats.{least}"
    )


def _message_caption(table: Table, _flow: str) -> str:
    what, spread, _ = _marks(table)
    return (
        f"{what} show the time from the first transmission to the receiving application that 99 % of the"
        f" datagrams or segments do not exceed, with waits for retransmissions; {spread} the range of the"
        " repeats."
    )


def _transfer_caption(table: Table, _flow: str) -> str:
    what, spread, _ = _marks(table)
    return (
        f"{what} show the time from the first to the last byte at the receiver, or between its sentinels;"
        f" {spread} the range of the repeats."
    )


def _range(seconds: Sequence[float]) -> str:
    low, high = min(seconds), max(seconds)
    return formatting.duration(low) if low == high else formatting.both(low, high, "s")


FIGURES = (
    _figure("goodput", GOODPUT, _goodput_caption),
    _figure("loss", LOSS, _loss_caption),
    _figure("delay", DELAY_P99, _delay_caption),
    _figure("message-delay", MESSAGE_DELAY_P99, _message_caption),
    _figure("transfer", TRANSFER_TIME, _transfer_caption),
)
"""The figures of goodput, loss, delays and transfers over the sweep."""
