"""`total`: what all flows get together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed
from engpass.claims.quantity import Quantity, say_range


@dataclass(frozen=True)
class Total(Check):
    """The sum of the goodput of all flows is accepted, at all points of the range."""

    numeric: ClassVar[bool] = True

    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compare the least and the greatest sum with what is accepted."""
        curve = curves(self.variant, "total").between(*bounds(self.from_, self.to))
        least, greatest = curve.least().value, curve.greatest().value
        inside = least in needed(accept) and greatest in needed(accept)
        return Verdict(say_range(least, greatest, curve.unit, needed(accept).decimals), inside)

    def criterion(self) -> str:
        """Of whom."""
        return "sum of all flows"
