"""A timeline in a terminal: one line of blocks for each quantity, marks for what happened."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

_BLOCKS = " ▁▂▃▄▅▆▇█"
_LEVELS = (
    ("congestion_window_bytes", "congestion window"),
    ("receive_window_bytes", "receive window"),
    ("flight_bytes", "in flight"),
)
_EVENTS = (("retransmissions", "retransmissions"), ("timeouts", "timeouts"))


def show(timeline: dict[str, Any], flow: str, out: Console) -> None:
    """Print the timeline of a flow and of the queues on its way."""
    width = max(20, min(100, out.width - 52))
    end = float(timeline["duration_s"])
    shown = Table.grid(padding=(0, 1))
    one = timeline["flows"].get(flow, {})
    times = one.get("time_s", [])
    for key, name in _LEVELS:
        values = [float(v or 0) for v in one.get(key, ())]
        if any(values):
            _row(shown, name, line(times, values, end, width), f"to {max(values):,.0f} B")
    delivered = one.get("delivered_bytes", [])
    if len(delivered) > 1:
        rates = [8 * (b - a) for a, b in pairwise(delivered)]
        spans = [b - a for a, b in pairwise(times)]
        values = [bits / span if span else 0.0 for bits, span in zip(rates, spans, strict=True)]
        _row(shown, "delivered", line(times[1:], values, end, width), f"to {max(values) / 1e6:,.2f} Mbit/s")
    for key, name in _EVENTS:
        _events(shown, name, one.get(key, ()), end, width)
    for place, queue in timeline["queues"].items():
        values = [float(v) for v in queue["length"]]
        if any(values) or queue["drops"]:
            most = f"to {max(values, default=0):,.0f}"
            if queue.get("capacity") is not None:
                most += f" of {queue['capacity']:,}"
            row = line(queue["time_s"], values, end, width)
            _row(shown, f"queue {place.replace('->', '→')}", row, f"{most} {queue['unit']}")
            _events(shown, "  drops", queue["drops"], end, width)
    out.print(Text(f"from 0 to {end:g} s, one repeat", style="bold"))
    out.print(shown)


def _row(shown: Table, name: str, row: str, note: str) -> None:
    shown.add_row(Text(name), Text(row), Text(note, style="dim"))


def _events(shown: Table, name: str, times: Sequence[float], end: float, width: int) -> None:
    if times:
        counts = [0] * width
        for time in times:
            counts[_place(time, end, width)] += 1
        _row(shown, name, "".join("·" if n == 0 else "x" for n in counts), f"{len(times):,} times")


def line(times: Sequence[float], values: Sequence[float], end: float, width: int) -> str:
    """Values over time as blocks: the greatest of each part of the time."""
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
