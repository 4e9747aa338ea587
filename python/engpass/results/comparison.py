"""Compares runs point by point: signals that differ by more than their repeats scatter. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engpass.results import receivers
from engpass.results.outcomes import sweep
from engpass.results.samples import Samples, Spread
from engpass.types.outcome import Outcome
from engpass.types.signals import Signal

LEAST = 1e-3
"""A relative difference up to this counts as rounding, even if repeats do not differ: our choice."""


@dataclass(frozen=True)
class Place:
    """A flow at a point of one engine; `swept` has the swept paths with their values in base units."""

    variant: str
    swept: tuple[tuple[str, float | str], ...]
    flow: str
    engine: str


@dataclass(frozen=True)
class Difference:
    """A signal that differs between runs at one place; `spreads` has the spread of each run."""

    place: Place
    signal: Signal
    spreads: tuple[Spread | None, ...]

    @property
    def change(self) -> float | None:
        """The greatest change from the first run to another, as a share of the larger value: -1 to 1.

        `None` if the first run or all others lack the signal.
        """
        base, *others = self.spreads
        changes = [_change(base, other) for other in others if base is not None and other is not None]
        return max(changes, key=abs, default=None)

    @property
    def verdict(self) -> str:
        """`better` or `worse`; empty if the signal has no better direction."""
        if self.signal.better is None or not self.change:
            return ""
        return "better" if (self.change > 0) == (self.signal.better == "higher") else "worse"


@dataclass(frozen=True)
class Comparison:
    """Places that all runs have, the number of places that only some have, and the differences.

    Differences at one place stand together; the place with the greatest change is first.
    """

    common: int
    alone: tuple[int, ...]
    """For each run: the number of its places that some other run lacks."""
    differences: tuple[Difference, ...]


def compare(runs: Sequence[Iterable[Outcome]], signals: Sequence[Signal]) -> Comparison:
    """Compare the given signals of the runs with those of the first run."""
    found = [_collect(outcomes, signals) for outcomes in runs]
    common = [place for place in found[0] if all(place in run for run in found[1:])]
    groups = []
    for place in common:
        group = []
        for signal in signals:
            spreads = tuple(run[place].spread(signal) for run in found)
            if any(_differ(spreads[0], other) for other in spreads[1:]):
                group.append(Difference(place, signal, spreads))
        if group:
            groups.append(group)
    groups.sort(key=lambda group: -max(abs(one.change or 0.0) for one in group))
    return Comparison(
        len(common),
        tuple(len(run) - len(common) for run in found),
        tuple(one for group in groups for one in group),
    )


def _collect(outcomes: Iterable[Outcome], signals: Sequence[Signal]) -> dict[Place, Samples]:
    places: dict[Place, Samples] = {}
    for outcome in outcomes:
        swept = tuple(sorted(sweep(outcome).items()))
        for name, _, flow in receivers.rows(outcome):
            place = Place(outcome.variant, swept, name, outcome.engine)
            places.setdefault(place, Samples(signals)).add(flow)
    return places


def _differ(one: Spread | None, other: Spread | None) -> bool:
    """True if two folded values differ by more than half the ranges of both, and by more than rounding."""
    if one is None or other is None:
        return (one is None) != (other is None)
    scatter = (one.high - one.low + other.high - other.low) / 2
    rounding = LEAST * max(abs(one.value), abs(other.value))
    return abs(one.value - other.value) > max(scatter, rounding)


def _change(base: Spread, other: Spread) -> float:
    larger = max(abs(base.value), abs(other.value))
    return (other.value - base.value) / larger if larger else 0.0
