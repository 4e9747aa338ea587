"""`within`: all values of a curve are in an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed
from engpass.claims.quantity import Quantity, say_range


@dataclass(frozen=True)
class Within(Check):
    """All values of a range are within an interval, whatever is lost: `plateau` forbids losses."""

    numeric: ClassVar[bool] = True

    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compare the least and the greatest value with what is accepted."""
        curve = curves(self.variant, "goodput").between(*bounds(self.from_, self.to))
        least, greatest = curve.least().value, curve.greatest().value
        inside = least in needed(accept) and greatest in needed(accept)
        return Verdict(say_range(least, greatest, curve.unit), inside)

    def criterion(self) -> str:
        """Where."""
        low = f"from {self.from_} " if self.from_ else ""
        return f"all sizes {low}" + (f"to {self.to}" if self.to else "on" if self.from_ else "")
