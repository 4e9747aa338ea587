"""`rises`: a curve rises at every swept value."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, say_reach
from engpass.claims.missing import NoDataError
from engpass.claims.quantity import Quantity, say, say_range


@dataclass(frozen=True)
class Rises(Check):
    """The goodput at every swept value is greater than at the one before."""

    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Look for a swept value at which the goodput is not greater than before."""
        curve = curves(self.variant, "goodput").between(*bounds(self.from_, self.to))
        if len(curve.samples) < 2:
            raise NoDataError("too few points to see a rise")
        for before, sample in pairwise(curve.samples):
            if sample.value <= before.value:
                there = f"{say(sample.value, curve.unit)} at {sample.text}"
                return Verdict(f"{there}, after {say(before.value, curve.unit)}", False)
        first, last = curve.samples[0], curve.samples[-1]
        return Verdict(f"{say_range(first.value, last.value, curve.unit)}", True)

    def criterion(self) -> str:
        """The rule and the range of the sweep, as text."""
        return f"each value above the previous one {say_reach(self.from_, self.to)}".strip()
