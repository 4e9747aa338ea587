"""Shows curves and events over time in a terminal: a line of characters for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from engpass.formatting import count, quantity

if TYPE_CHECKING:
    from engpass.show.blocks import Marks, OverTime, Panel

_BLOCKS = " ▁▂▃▄▅▆▇█"


def sparklines(block: OverTime, width: int) -> Table:
    """A row for each curve with its maximum, and for each kind of event with its number."""
    # The names and figures beside a line take about 52 characters.
    width = max(20, min(100, width - 52))
    shown = Table.grid(padding=(0, 1))
    for panel in block.panels:
        for curve in panel.curves:
            row = line(curve.times_s, curve.values, block.end_s, width)
            shown.add_row(Text(curve.name), Text(row), Text(_most(panel, curve.values), style="dim"))
    for marks in block.marks:
        number = len(marks.times_s) + len(marks.spans_s)
        row = _events(marks, block.end_s, width)
        shown.add_row(Text(marks.name), Text(row), Text(count(number, "time"), style="dim"))
    return shown


def _most(panel: Panel, values: Sequence[float]) -> str:
    most = quantity(max(values, default=0), panel.unit)
    if panel.full is None or not panel.unit:
        return f"max {most}"
    number, unit = most.rsplit(" ", 1)
    full = quantity(panel.full, panel.unit)
    # One of 20 packets, but 500 kB of 1 MB.
    same = unit.removesuffix("s") == full.rsplit(" ", 1)[1].removesuffix("s")
    return f"max {number if same else most} of {full}"


def _events(marks: Marks, end: float, width: int) -> str:
    """Draw instants as crosses and spans of time as full blocks in a line of `width` characters."""
    row = ["·"] * width
    for begin, until in marks.spans_s:
        first, last = _place(begin, end, width), _place(until, end, width)
        # The instant at which a span ends is not part of the span.
        last = max(first, last - 1) if until < end else last
        row[first : last + 1] = "█" * (last + 1 - first)
    for time in marks.times_s:
        row[_place(time, end, width)] = "x"
    return "".join(row)


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
