"""Shows a timeline in a terminal: a line of blocks for each quantity, a line of marks for events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from engpass.timeline import busiest, loads, losses

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.types.outcome import FlowLine, Timeline

_BLOCKS = " ▁▂▃▄▅▆▇█"


def show(timeline: Timeline, flow: str, out: Console) -> None:
    """Print the timeline of a flow, of engines and queues, of outages and of memberships."""
    width = max(20, min(100, out.width - 52))
    end = timeline.duration_s
    shown = Table.grid(padding=(0, 1))
    one = timeline.flows.get(flow)
    if one is not None:
        _flow(shown, one, end, width)
    for name, engine in busiest(timeline):
        found = loads(engine, width)
        row = line([begin for begin, _, _ in found], [share for *_, share in found], end, width)
        _row(shown, f"load {name}", row, f"max {100 * max(share for *_, share in found):.3g} %")
    for place, queue in timeline.queues.items():
        if any(queue.length) or queue.drops:
            most = f"max {max(queue.length, default=0):,}"
            if queue.capacity is not None:
                most += f" of {queue.capacity:,}"
            row = line(queue.time_s, queue.length, end, width)
            _row(shown, f"queue {place.replace('->', '→')}", row, f"{most} {queue.unit}")
            _events(shown, "  drops", queue.drops, end, width)
    for link, outages in timeline.outages.items():
        _row(shown, f"link {link} down", _spans(outages, end, width), f"{len(outages):,} times")
    for tunnel, times in timeline.tunnels_down.items():
        _row(shown, f"tunnel {tunnel} down", _spans(times, end, width), f"{len(times):,} times")
    for receiver, times in timeline.memberships.items():
        _row(shown, f"member {receiver}", _spans(times, end, width), f"{len(times):,} times")
    out.print(Text(f"from 0 to {end:g} s, one repeat", style="bold"))
    out.print(shown)


def _flow(shown: Table, one: FlowLine, end: float, width: int) -> None:
    tcp = one.tcp
    if tcp is not None:
        for name, values in (
            ("congestion window", tcp.congestion_window_bytes),
            ("receive window", tcp.receive_window_bytes),
            ("in flight", tcp.flight_bytes),
        ):
            if any(values):
                _row(shown, name, line(one.time_s, values, end, width), f"max {max(values):,} B")
    if len(one.delivered_bytes) > 1:
        sizes = [8 * (after - before) for before, after in pairwise(one.delivered_bytes)]
        spans = [after - before for before, after in pairwise(one.time_s)]
        rates = [bits / span if span else 0.0 for bits, span in zip(sizes, spans, strict=True)]
        row = line(one.time_s[1:], rates, end, width)
        _row(shown, "delivered", row, f"max {max(rates) / 1e6:,.2f} Mbit/s")
    found = losses(one, width)
    if any(share for _, _, share in found):
        shares = [share for _, _, share in found]
        row = line([begin for begin, _, _ in found], shares, end, width)
        _row(shown, "loss", row, f"max {100 * max(shares):.3g} %")
    if tcp is not None:
        _events(shown, "retransmissions", tcp.retransmissions, end, width)
        _events(shown, "timeouts", tcp.timeouts, end, width)


def _row(shown: Table, name: str, row: str, note: str) -> None:
    shown.add_row(Text(name), Text(row), Text(note, style="dim"))


def _events(shown: Table, name: str, times: Sequence[float], end: float, width: int) -> None:
    if times:
        counts = [0] * width
        for time in times:
            counts[_place(time, end, width)] += 1
        _row(shown, name, "".join("·" if n == 0 else "x" for n in counts), f"{len(times):,} times")


def _spans(spans: Sequence[Sequence[float]], end: float, width: int) -> str:
    """Draw spans of time as full blocks in a line of `width` characters."""
    marks = ["·"] * width
    for begin, until in spans:
        first, last = _place(begin, end, width), _place(until, end, width)
        # The instant at which a span ends is not part of the span.
        last = max(first, last - 1) if until < end else last
        marks[first : last + 1] = "█" * (last + 1 - first)
    return "".join(marks)


def line(times: Sequence[float], values: Sequence[float], end: float, width: int) -> str:
    """Draw values over time as blocks, each as high as the maximum of its part of the time."""
    parts: list[float | None] = [None] * width
    for time, value in zip(times, values, strict=True):
        at = _place(time, end, width)
        before = parts[at]
        parts[at] = value if before is None else max(before, value)
    most = max(values, default=0.0)
    text, last = "", 0.0
    for part in parts:
        last = last if part is None else part
        level = 0 if most <= 0 or last <= 0 else max(1, round(last / most * (len(_BLOCKS) - 1)))
        text += _BLOCKS[level]
    return text


def _place(time: float, end: float, width: int) -> int:
    return max(0, min(width - 1, int(time / end * width))) if end > 0 else 0
