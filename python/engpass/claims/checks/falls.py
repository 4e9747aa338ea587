"""`falls`: a curve falls at one swept value."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from engpass.claims.checks.base import Check, Curves, Interval, Verdict
from engpass.claims.missing import NoDataError
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Falls(Check):
    """The goodput at one swept value is clearly below the goodput at the swept value before."""

    at: Quantity
    by: Quantity
    """Least fall that counts, as a share of the goodput at the swept value before."""

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Compare the goodput at the swept value with that at the one before."""
        curve = curves(self.variant, "goodput")
        there = curve.at(self.at.value)
        before = next((a for a, b in pairwise(curve.samples) if b is there), None)
        if before is None:
            raise NoDataError("no point before this value")
        said = f"{say(before.value, curve.unit)} to {say(there.value, curve.unit)}"
        return Verdict(said, there.value <= before.value * (1 - self.by.value))

    def criterion(self) -> str:
        """The least fall and the swept value, as text."""
        return f"less by {self.by} or more at {self.at}"
