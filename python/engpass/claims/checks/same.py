"""`same`: two variants have about the same goodput."""

from __future__ import annotations

from dataclasses import dataclass

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, say_reach
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Same(Check):
    """The goodputs of two variants differ by at most a share of the reference's over a range of the sweep."""

    reference: str
    within: Quantity
    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Find the greatest difference over the range."""
        low, high = bounds(self.from_, self.to)
        curve = curves(self.variant, "goodput").between(low, high)
        other = curves(self.reference, "goodput")
        worst, where = 0.0, curve.samples[0]
        for sample in curve.samples:
            reference = other.at(sample.x).value
            apart = abs(sample.value - reference) / reference if reference else float(sample.value != 0)
            if apart > worst:
                worst, where = apart, sample
        return Verdict(f"{say(worst, '')} difference at {where.text}", worst <= self.within.value)

    def criterion(self) -> str:
        """The largest accepted difference and the range, as text."""
        return f"within {self.within} {say_reach(self.from_, self.to)}".strip()
