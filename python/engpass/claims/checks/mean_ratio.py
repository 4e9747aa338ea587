"""`mean-ratio`: the ratio of the mean goodputs of two variants."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, say_reach
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class MeanRatio(Check):
    """The mean goodput over a range is at least `least` times the reference's: `500 %` is five times."""

    reference: str
    least: Quantity
    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Compare the mean goodputs of the variant and the reference."""
        low, high = bounds(self.from_, self.to)
        curve = curves(self.variant, "goodput").between(low, high)
        other = curves(self.reference, "goodput").between(low, high)
        mean, base = (math.fsum(s.value for s in c.samples) / len(c.samples) for c in (curve, other))
        said = f"{say(mean, curve.unit)} against {say(base, other.unit)}"
        return Verdict(said, mean > 0 and mean >= self.least.value * base)

    def criterion(self) -> str:
        """The least ratio and the range, as text."""
        return f"mean at least {self.least} {say_reach(self.from_, self.to)}".strip()
