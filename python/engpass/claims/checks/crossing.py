"""`crossing`: the swept value at which a curve passes a level."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, needed, say_reach
from engpass.claims.curves import Curve, Sample
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Crossing(Check):
    """The first swept value at which the goodput is at least `level` after a value at which it is less."""

    numeric: ClassVar[bool] = True

    level: Quantity
    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Find the crossing and compare its swept value with the claim's interval."""
        curve = curves(self.variant, "goodput").between(*self.reach())
        passed = crossing(curve, self.level.value)
        if passed is None:
            return Verdict(f"never passes {self.level}", False)
        before, after = passed
        said = f"{after.text}: {say(before.value, curve.unit)} before, {say(after.value, curve.unit)} there"
        return Verdict(said, after.x in needed(accept))

    def criterion(self) -> str:
        """The level and the range of the sweep, as text."""
        return f"passes {self.level} {say_reach(self.from_, self.to)}".strip()


def crossing(curve: Curve, level: float) -> tuple[Sample, Sample] | None:
    """The samples just before and at the first rise of a curve to `level` or more; `None` without one."""
    return next((pair for pair in pairwise(curve.samples) if pair[0].value < level <= pair[1].value), None)
