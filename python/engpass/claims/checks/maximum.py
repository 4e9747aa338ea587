"""`maximum`: the greatest value of a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Maximum(Check):
    """The greatest goodput over the sweep, or a part of it."""

    numeric: ClassVar[bool] = True

    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compare the maximum with what is accepted."""
        curve = curves(self.variant, "goodput").between(*bounds(self.from_, self.to))
        top = curve.greatest()
        return Verdict(f"{say(top.value, curve.unit)} at {top.text}", top.value in needed(accept))
