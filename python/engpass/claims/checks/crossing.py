"""`crossing`: where a curve passes a level."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, needed
from engpass.claims.curves import Curve
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Crossing(Check):
    """The swept value at which the goodput first passes a level upwards, interpolated between two points."""

    numeric: ClassVar[bool] = True

    level: Quantity

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compare the place of the crossing with what is accepted."""
        curve = curves(self.variant, "goodput")
        place = crossing(curve, self.level.value)
        if place is None:
            return Verdict(f"never passes {self.level}", False)
        return Verdict(say(place, curve.x_unit), place in needed(accept))


def crossing(curve: Curve, level: float) -> float | None:
    """Where a curve first goes from below a level to at least it; `None` if it never does."""
    for before, sample in pairwise(curve.samples):
        if before.value < level <= sample.value:
            share = (level - before.value) / (sample.value - before.value)
            return before.x + share * (sample.x - before.x)
    return None
