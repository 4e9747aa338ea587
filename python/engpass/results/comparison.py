"""Compares runs point by point: signals that differ by more than chance explains. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from engpass.results import receivers
from engpass.results.outcomes import sweep
from engpass.results.samples import Samples
from engpass.results.student import Mean, half_width
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
    means: tuple[Mean | None, ...]
    """Mean of the signal over the repeats of each run; `None` for a run without the signal."""

    @property
    def pair(self) -> tuple[Mean, Mean] | None:
        """The means of the first run and of the run that differs most from it.

        `None` if the first run or all others lack the signal.
        """
        base, *others = self.means
        found = [other for other in others if other is not None]
        return (base, max(found, key=lambda other: _factor(base, other))) if base and found else None

    @property
    def size(self) -> float:
        """The size of the change for the order of differences: equal for a rise and a fall by one factor."""
        return 0.0 if self.pair is None else _factor(*self.pair)

    @property
    def change(self) -> float | None:
        """The change as a share of the first run's mean; `None` if that is 0 or a run lacks the signal."""
        if self.pair is None:
            return None
        base, other = self.pair
        return (other.value - base.value) / abs(base.value) if base.value else None

    @property
    def uncertainty(self) -> float | None:
        """Half the width of the confidence interval of `change`; 0 if no repeats scatter."""
        if self.pair is None or not self.pair[0].value:
            return None
        return half_width(*self.pair) / abs(self.pair[0].value)

    @property
    def verdict(self) -> str:
        """`better` or `worse`, by the change; empty if the signal has no better direction."""
        if self.signal.better is None or self.pair is None:
            return ""
        base, other = self.pair
        return "better" if (other.value > base.value) == (self.signal.better == "higher") else "worse"


class Comparison(msgspec.Struct, frozen=True):
    """The differences between runs at the places that all of them have."""

    common: int
    """Number of places that all runs have."""
    alone: tuple[tuple[Place, ...], ...]
    """Places of each run that some other run lacks."""
    differences: tuple[Difference, ...]
    """Differences by place: the place with the greatest change is first."""


def compare(runs: Sequence[Iterable[Outcome]], signals: Sequence[Signal]) -> Comparison:
    """Compare the signals of all runs with those of the first run. A run has an outcome for each repeat."""
    found = [_collect(outcomes, signals) for outcomes in runs]
    common = [place for place in found[0] if all(place in run for run in found[1:])]
    shared = set(common)
    groups = []
    for place in common:
        group = []
        # Welch's test needs equal numbers of repeats. Single ones are compared otherwise.
        least = min((run[place].repeats for run in found if run[place].repeats > 1), default=None)
        for signal in signals:
            means = tuple(run[place].mean(signal, least) for run in found)
            if any(_differ(means[0], other) for other in means[1:]):
                group.append(Difference(place, signal, means))
        if group:
            groups.append(group)
    groups.sort(key=lambda group: -max(one.size for one in group))
    return Comparison(
        len(common),
        tuple(tuple(place for place in run if place not in shared) for run in found),
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


def _differ(one: Mean | None, other: Mean | None) -> bool:
    """True if two means differ by more than chance, and by more than rounding.

    A signal that only one run has differs. Without scatter, any difference is more than chance.
    """
    if one is None or other is None:
        return (one is None) != (other is None)
    apart = abs(one.value - other.value)
    rounding = LEAST * max(abs(one.value), abs(other.value))
    return apart > rounding and apart > half_width(one, other)


def _factor(base: Mean, other: Mean) -> float:
    """The difference as a share of the value of larger size; 0 if both values are 0."""
    larger = max(abs(base.value), abs(other.value))
    return abs(other.value - base.value) / larger if larger else 0.0
