"""`value`: a quantity at a point, or over a range of the sweep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed, say_reach
from engpass.claims.curves import Curve
from engpass.claims.quantity import Quantity

STATISTICS = ("each", "mean", "greatest", "least")


@dataclass(frozen=True)
class Value(Check):
    """A statistic of a quantity over the sweep is in the interval; `each` means that all values are."""

    numeric: ClassVar[bool] = True

    at: Quantity | None = None
    """One swept value, instead of a range."""
    from_: Quantity | None = None
    to: Quantity | None = None
    quantity: str = "goodput"
    """A quantity of `Campaign.curve`, such as `goodput`, `delay p99` or the name of a stage of the limit."""
    statistic: str = "each"
    """`each`, `mean`, `greatest` or `least`."""
    per: Quantity | None = None
    """Divides the quantity, so that the result is a share."""
    times: Quantity | None = None
    """Multiplies a share, so that the result has the unit of this quantity."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for an unknown statistic, or for a point together with a range."""
        if self.statistic not in STATISTICS:
            raise ValueError(f"`statistic` is `{self.statistic}`; use one of {', '.join(STATISTICS)}")
        if self.at is not None and (self.from_ is not None or self.to is not None):
            raise ValueError("use `at` for one point, or `from` and `to` for a range, not both")

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compute the statistic and compare it with the claim's interval."""
        curve = curves(self.variant, self.quantity)
        curve = curve.between(*self.reach()) if self.at is None else curve.only(self.at.value)
        curve = self._scaled(curve)
        accepted = needed(accept)
        least, greatest = curve.least(), curve.greatest()
        if self.statistic == "each":
            inside = least.value in accepted and greatest.value in accepted
            return Verdict(accepted.say_range(least.value, greatest.value), inside)
        if self.statistic == "mean":
            mean = math.fsum(sample.value for sample in curve.samples) / len(curve.samples)
            return Verdict(f"{accepted.say(mean)} on average", mean in accepted)
        sample = greatest if self.statistic == "greatest" else least
        where = f" at {sample.text}" if sample.text else ""
        return Verdict(f"{accepted.say(sample.value)}{where}", sample.value in accepted)

    def _scaled(self, curve: Curve) -> Curve:
        if self.per is not None:
            whole = curve.in_bytes() if self.per.unit == "B/s" else curve
            curve = whole.scaled(1 / self.per.value, "")
        return curve if self.times is None else curve.scaled(self.times.value, self.times.unit)

    def criterion(self) -> str:
        """The statistic, and the swept value or range, as text."""
        where = f"at {self.at}" if self.at else say_reach(self.from_, self.to)
        what = {"each": "each value" if where and not self.at else "", "mean": "mean"}.get(self.statistic, "")
        return f"{what} {where}".strip()

    def reach(self) -> tuple[float | None, float | None]:
        """The swept value, or the bounds of the range."""
        return bounds(self.at or self.from_, self.at or self.to)
