"""`value`: the quantity at one point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, needed
from engpass.claims.curves import NoDataError
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Value(Check):
    """The quantity at a swept value, or at the only point."""

    numeric: ClassVar[bool] = True

    at: Quantity | None = None
    quantity: str = "goodput"
    """`goodput`, `offered`, `idle delay`, `delay p99` and the like, or a stage of the limit by its name."""
    per: Quantity | None = None
    """Divide by this: what comes out is a share."""

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compare the value with what is accepted."""
        curve = curves(self.variant, self.quantity)
        if self.at is None and len(curve.samples) > 1:
            raise NoDataError("several points, and the claim does not say which")
        sample = curve.samples[0] if self.at is None else curve.at(self.at.value)
        value, unit = sample.value, curve.unit
        if self.per is not None:
            value, unit = value / self.per.value, ""
        return Verdict(say(value, unit, needed(accept).decimals), value in needed(accept))
