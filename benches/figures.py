"""What a benchmark run came to: figures with their spread and target, as a table and as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps")),
    "B": ((1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}
"""Units that have smaller ones, the greatest first."""


@dataclass(frozen=True)
class Target:
    """What a figure is to reach."""

    value: float
    at_least: bool = False


@dataclass(frozen=True)
class Figure:
    """Something measured in this run, once or several times."""

    group: str
    what: str
    unit: str
    samples: Sequence[float]
    target: Target | None = None
    note: str = ""

    @property
    def median(self) -> float:
        """Half of the samples are below it."""
        return statistics.median(self.samples)

    @property
    def ratio(self) -> float | None:
        """To the target; at most 1 is good, for something that is to be large at least 1."""
        return self.median / self.target.value if self.target else None

    @property
    def holds(self) -> bool | None:
        """Whether the target is reached."""
        if self.target is None:
            return None
        return self.median >= self.target.value if self.target.at_least else self.median <= self.target.value

    def cells(self) -> tuple[str, str, str, str, str, str]:
        """What stands in a row: name, median, least to greatest, how many, target, ratio to it."""
        spread = ""
        if len(self.samples) > 1:
            least, greatest = min(self.samples), max(self.samples)
            spread = (
                f"{quantity(least, self.unit, self.median)} to {quantity(greatest, self.unit, self.median)}"
            )
        name = f"{self.what} ({self.note})" if self.note else self.what
        target = ratio = ""
        if self.target is not None and self.ratio is not None:
            target = ("≥ " if self.target.at_least else "≤ ") + quantity(self.target.value, self.unit)
            ratio = f"{self.ratio:.2f} {'holds' if self.holds else 'missed'}"
        return name, quantity(self.median, self.unit), spread, str(len(self.samples)), target, ratio


def quantity(value: float, unit: str, like: float | None = None) -> str:
    """A value with its unit, three digits; in the unit that suits `like`."""
    for scale, name in SCALES.get(unit, ()):
        if abs(value if like is None else like) >= scale:
            return f"{_digits(value / scale)} {name}"
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


HEAD = ("what", "median", "least to greatest", "n", "target", "ratio to it")


def groups(figures: Iterable[Figure]) -> list[str]:
    """Groups in the order in which they come."""
    return list(dict.fromkeys(figure.group for figure in figures))


def tables(figures: Sequence[Figure]) -> Iterator[Table]:
    """All figures for a terminal, a table for each group."""
    for group in groups(figures):
        drawn = Table(
            title=group, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
        )
        for column in HEAD:
            left = column == "what"
            drawn.add_column(column, justify="left" if left else "right", no_wrap=not left)
        for figure in figures:
            if figure.group == group:
                drawn.add_row(*figure.cells(), style="red" if figure.holds is False else None)
        yield drawn


def markdown(figures: Sequence[Figure], facts: dict[str, str]) -> str:
    """All figures for a reader, and where they are from."""
    lines = [
        "# Results of `make bench`",
        "",
        "Written by `benches/run.py`; everything was measured in one run on one machine. Times of single",
        "runs are processor time of their one thread, which neighbours on the machine change less; times",
        "of campaigns and commands are those of the clock on the wall. A ratio to a target of at most 1 is",
        "good; where the target has ≥, one of at least 1.",
        "",
        *(f"- {name}: {value}" for name, value in facts.items()),
    ]
    for group in groups(figures):
        lines += ["", f"## {group}", "", f"| {' | '.join(HEAD)} |", f"| {' | '.join(['---'] * len(HEAD))} |"]
        lines += [f"| {' | '.join(figure.cells())} |" for figure in figures if figure.group == group]
    return "\n".join([*lines, ""])
