"""Results of a benchmark run: rows of several kinds, rendered as terminal tables and as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, Protocol

from rich import box
from rich.table import Table

SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps")),
    "B": ((1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "/s": ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
}
"""Units with their smaller ones, the largest first."""


class Row(Protocol):
    """A row of a table. Consecutive rows of one kind in one group form a table."""

    @property
    def group(self) -> str:
        """Title of the section."""

    @property
    def head(self) -> Sequence[str]:
        """Names of the columns."""

    @property
    def holds(self) -> bool | None:
        """True if its target is met; `None` without a target."""

    def cells(self) -> Sequence[str]:
        """Texts of the columns."""


@dataclass(frozen=True)
class Target:
    """The target of a figure."""

    value: float
    at_least: bool = False
    pace: float | None = None
    """For a time: how many times longer this machine takes than the machine of the target."""


@dataclass(frozen=True)
class Figure:
    """A quantity measured in this run, once or several times."""

    group: str
    what: str
    unit: str
    samples: Sequence[float]
    target: Target | None = None
    note: str = ""
    head: ClassVar[Sequence[str]] = (
        *("what", "median", "least to greatest", "n", "target", "ratio to it"),
        "at this machine's pace",
    )

    @property
    def median(self) -> float:
        """Median of the samples."""
        return statistics.median(self.samples)

    @property
    def ratio(self) -> float | None:
        """Ratio to the target: good if at most 1, or at least 1 for an `at_least` target."""
        return self.median / self.target.value if self.target else None

    @property
    def holds(self) -> bool | None:
        """True if the target is met; `None` without a target."""
        if self.target is None:
            return None
        return self.median >= self.target.value if self.target.at_least else self.median <= self.target.value

    def cells(self) -> Sequence[str]:
        """Name, median, range, count, target, ratio to it, and the ratio at this machine's pace."""
        name = f"{self.what} ({self.note})" if self.note else self.what
        target = ratio = paced = ""
        if self.target is not None and self.ratio is not None:
            target = ("≥ " if self.target.at_least else "≤ ") + quantity(self.target.value, self.unit)
            ratio = f"{self.ratio:.2f} {'holds' if self.holds else 'missed'}"
            if self.target.pace is not None:
                share = self.ratio / self.target.pace
                paced = f"{share:.2f} {'holds' if share <= 1 else 'missed'}"
        spread = _spread(self.samples, self.unit)
        return name, quantity(self.median, self.unit), spread, str(len(self.samples)), target, ratio, paced


@dataclass(frozen=True)
class Work:
    """Runs of one workload: amount of work, time and memory."""

    group: str
    what: str
    samples: Sequence[float]
    """Processor time in seconds."""
    hops: int
    """Number of packets or cells over links."""
    events: int | None
    """Events of the engine; `None` if it does not count them."""
    peak_bytes: float
    """Peak memory of the process."""
    heap_bytes: float | None = None
    """Peak heap use of the run."""
    flows: int = 0
    holds: ClassVar[None] = None
    head: ClassVar[Sequence[str]] = (
        *("what", "time", "least to greatest", "n", "hops", "hops/s", "a hop"),
        *("events", "a hop has", "an event", "peak", "a flow"),
    )

    @property
    def each(self) -> float:
        """Seconds per packet or cell over a link."""
        return statistics.median(self.samples) / self.hops

    def cells(self) -> Sequence[str]:
        """Columns as in `head`: times are medians, `a flow` is the memory per flow."""
        time = statistics.median(self.samples)
        events = per_hop = each = ""
        if self.events is not None:
            events, per_hop = f"{self.events:,}", f"{self.events / self.hops:.3g}"
            each = quantity(time / self.events, "s") if self.events else ""
        flow = quantity(self.heap_bytes / self.flows, "B") if self.heap_bytes and self.flows else ""
        return (
            *(self.what, quantity(time, "s"), _spread(self.samples, "s"), str(len(self.samples))),
            *(f"{self.hops:,}", quantity(self.hops / time, "/s"), quantity(self.each, "s")),
            *(events, per_hop, each, quantity(self.peak_bytes, "B"), flow),
        )


@dataclass(frozen=True)
class Beside:
    """A quantity of two programs, which should be nearly equal."""

    group: str
    what: str
    unit: str
    ours: float
    other: str
    theirs: float
    holds: ClassVar[None] = None

    @property
    def head(self) -> Sequence[str]:
        """Names of the columns."""
        return "what", "Engpass", self.other, "ratio"

    def cells(self) -> Sequence[str]:
        """Name, both values, and their ratio."""
        ratio = f"{self.ours / self.theirs:.3f}" if self.theirs else ""
        return self.what, quantity(self.ours, self.unit), quantity(self.theirs, self.unit), ratio


@dataclass(frozen=True)
class Skipped:
    """A measurement that was not possible here, and the reason."""

    group: str
    what: str
    why: str
    holds: ClassVar[None] = None
    head: ClassVar[Sequence[str]] = ("skipped", "why")

    def cells(self) -> Sequence[str]:
        """Name and reason."""
        return self.what, self.why


def quantity(value: float, unit: str, like: float | None = None) -> str:
    """Format a value with its unit and three digits, scaled as `like` if given."""
    for scale, name in SCALES.get(unit, ()):
        if abs(value if like is None else like) >= scale:
            return f"{_digits(value / scale)} {name}"
    return f"{_digits(value)} {unit}".rstrip()


def _spread(samples: Sequence[float], unit: str) -> str:
    if len(samples) < 2:
        return ""
    middle = statistics.median(samples)
    return " to ".join(quantity(end(samples), unit, middle) for end in (min, max))


def _digits(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def _sections(rows: Iterable[Row]) -> Iterator[tuple[str, list[list[Row]]]]:
    """Yield the groups in order, each with its tables."""
    for group, section in groupby(rows, key=lambda row: row.group):
        yield group, [list(table) for _, table in groupby(section, key=lambda row: row.head)]


def tables(rows: Iterable[Row]) -> Iterator[Table]:
    """Render all rows as tables for a terminal."""
    for group, parts in _sections(rows):
        for part in parts:
            drawn = Table(
                title=group, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
            )
            for place, column in enumerate(part[0].head):
                drawn.add_column(column, justify="right" if place else "left", no_wrap=place > 0)
            for row in part:
                drawn.add_row(*row.cells(), style="red" if row.holds is False else None)
            yield drawn


def markdown(rows: Iterable[Row], facts: dict[str, str]) -> str:
    """Render all rows as a Markdown page, with the facts about the run."""
    lines = [
        "# Results of `make bench`",
        "",
        "Written by `benches/run.py`; everything was measured in one run on one machine, what is compared in",
        "turns. Times of single runs are processor time of their one thread, which neighbours on the machine",
        "change less; times of campaigns and commands are those of the clock on the wall. A hop is a packet,",
        "or cell, over a link (those that a port refused are counted, too). A ratio to a target of at most 1",
        "is good; where the target has ≥, one of at least 1. The last column takes the pace of this machine",
        "into account: how much longer ns-3 takes, here and now, than on the machine that the targets were",
        "named for. The workloads are in [README.md](README.md).",
        "",
        *(f"- {name}: {value}" for name, value in facts.items()),
    ]
    for group, parts in _sections(rows):
        lines += ["", f"## {group}"]
        for part in parts:
            head = part[0].head
            lines += ["", f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
            lines += [f"| {' | '.join(row.cells())} |" for row in part]
    return "\n".join([*lines, ""])
