"""`plateau`: a constant throughput."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed
from engpass.claims.checks.lossless import count
from engpass.claims.quantity import Quantity, say_range


@dataclass(frozen=True)
class Plateau(Check):
    """All values of a range of the sweep are within an interval, and nothing is lost there."""

    numeric: ClassVar[bool] = True

    from_: Quantity
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compare the least and the greatest value with what is accepted, and count losses."""
        low, high = bounds(self.from_, self.to)
        curve = curves(self.variant, "goodput").between(low, high)
        least, greatest = curve.least().value, curve.greatest().value
        lost, none = count(curves, self.variant, low, high)
        inside = least in needed(accept) and greatest in needed(accept)
        return Verdict(f"{say_range(least, greatest, curve.unit)}; {lost}", inside and none)

    def criterion(self) -> str:
        """Where, and without loss."""
        return f"from {self.from_} on, none lost"


@dataclass(frozen=True)
class Flat(Check):
    """The values of a range of the sweep differ by at most a share of their mean."""

    from_: Quantity
    within: Quantity
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Compare the greatest with the least."""
        curve = curves(self.variant, "goodput").between(*bounds(self.from_, self.to))
        least, greatest = curve.least().value, curve.greatest().value
        said = say_range(least, greatest, curve.unit)
        mean = sum(s.value for s in curve.samples) / len(curve.samples)
        return Verdict(said, mean > 0 and greatest - least <= 2 * self.within.value * mean)

    def criterion(self) -> str:
        """How flat, and where."""
        return f"within ±{self.within} from {self.from_} on"
