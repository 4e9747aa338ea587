"""Compares runs point by point: signals that differ by more than their repeats scatter. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from engpass.results import receivers
from engpass.results.outcomes import sweep
from engpass.results.samples import Samples, Spread
from engpass.types.outcome import Outcome
from engpass.types.signals import Signal

LEAST = 1e-3
"""Largest relative difference that counts as rounding, even if the repeats of a run are equal. Our choice."""


class Place(msgspec.Struct, frozen=True):
    """A flow, or one of its receivers, at a point of one engine. Runs are compared place by place."""

    variant: str
    swept: tuple[tuple[str, float | str], ...]
    """Swept paths with their values: numbers in base units, or text."""
    flow: str
    engine: str


class Difference(msgspec.Struct, frozen=True):
    """A signal that differs between runs at one place."""

    place: Place
    signal: Signal
    spreads: tuple[Spread | None, ...]
    """Spread of the signal over the repeats of each run; `None` for a run without the signal."""

    @property
    def change(self) -> float | None:
        """The change of greatest size from the first run to another, as a share of the value of larger size.

        It is from -1 to 1 for values of one sign; `None` if the first run or all others lack the signal.
        """
        base, *others = self.spreads
        changes = [_change(base, other) for other in others if base is not None and other is not None]
        return max(changes, key=abs, default=None)

    @property
    def verdict(self) -> str:
        """`better` or `worse`, by the change; empty if the signal has no better direction."""
        if self.signal.better is None or not self.change:
            return ""
        return "better" if (self.change > 0) == (self.signal.better == "higher") else "worse"


class Comparison(msgspec.Struct, frozen=True):
    """The differences between runs at the places that all of them have."""

    common: int
    """Number of places that all runs have."""
    alone: tuple[int, ...]
    """Number of places of each run that some other run lacks."""
    differences: tuple[Difference, ...]
    """Differences by place: the place with the greatest change is first."""


def compare(runs: Sequence[Iterable[Outcome]], signals: Sequence[Signal]) -> Comparison:
    """Compare the signals of all runs with those of the first run. A run has an outcome for each repeat."""
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
    """Group the outcomes of a run by place; repeats of a place become samples."""
    places: dict[Place, Samples] = {}
    for outcome in outcomes:
        swept = tuple(sorted(sweep(outcome).items()))
        for name, _, flow in receivers.rows(outcome):
            place = Place(outcome.variant, swept, name, outcome.engine)
            places.setdefault(place, Samples(signals)).add(flow)
    return places


def _differ(one: Spread | None, other: Spread | None) -> bool:
    """True if two values differ by more than half the sum of their ranges, and by more than rounding.

    A signal that only one run has differs.
    """
    if one is None or other is None:
        return (one is None) != (other is None)
    scatter = (one.high - one.low + other.high - other.low) / 2
    rounding = LEAST * max(abs(one.value), abs(other.value))
    return abs(one.value - other.value) > max(scatter, rounding)


def _change(base: Spread, other: Spread) -> float:
    """Compute the change from `base` as a share of the value of larger size; 0 if both values are 0."""
    larger = max(abs(base.value), abs(other.value))
    return (other.value - base.value) / larger if larger else 0.0
