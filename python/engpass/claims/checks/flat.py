"""`flat`: a constant throughput."""

from __future__ import annotations

from dataclasses import dataclass

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, say_reach
from engpass.claims.quantity import Quantity, say_range


@dataclass(frozen=True)
class Flat(Check):
    """The goodput over a range of the sweep deviates from its mean by at most ± a share of the mean."""

    within: Quantity
    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Compare the greatest and the least goodput of the range."""
        curve = curves(self.variant, "goodput").between(*bounds(self.from_, self.to))
        least, greatest = curve.least().value, curve.greatest().value
        said = say_range(least, greatest, curve.unit)
        mean = sum(s.value for s in curve.samples) / len(curve.samples)
        return Verdict(said, mean > 0 and greatest - least <= 2 * self.within.value * mean)

    def criterion(self) -> str:
        """The largest accepted deviation and the range, as text."""
        return f"within ±{self.within} {say_reach(self.from_, self.to)}".strip()
