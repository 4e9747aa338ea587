"""`fairness`: how evenly all flows share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed
from engpass.claims.quantity import Quantity, say_range


@dataclass(frozen=True)
class Fairness(Check):
    """The index of Jain, Chiu and Hawe (1984) over the goodput of all flows is accepted.

    It is 100 % if all get the same and 10 % if one of ten gets all.
    """

    numeric: ClassVar[bool] = True

    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compare the least and the greatest index with what is accepted."""
        curve = curves(self.variant, "fairness").between(*bounds(self.from_, self.to))
        least, greatest = curve.least().value, curve.greatest().value
        inside = least in needed(accept) and greatest in needed(accept)
        return Verdict(say_range(least, greatest, curve.unit, needed(accept).decimals), inside)

    def criterion(self) -> str:
        """Which index."""
        return "Jain's index of all flows"
