"""`oscillation`: a curve rises and falls with a constant period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed
from engpass.claims.curves import Sample
from engpass.claims.missing import NoDataError
from engpass.claims.quantity import Quantity


@dataclass(frozen=True)
class Oscillation(Check):
    """The mean distance between maxima of the goodput, if there are enough and their distances are similar.

    A maximum exceeds the value before it, and the value after it is lower by at least `by`.
    """

    numeric: ClassVar[bool] = True

    by: Quantity
    """Least fall after a maximum, as a share of the maximum."""
    periods: Quantity
    """Least number of periods, written as a percentage: `500 %` means five."""
    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Find the maxima, and compare their mean distance with the claim's interval."""
        curve = curves(self.variant, "goodput").between(*bounds(self.from_, self.to))
        count = len(curve.samples)
        if count < 3:
            raise NoDataError(f"an oscillation needs at least 3 points in its range, but there are {count}")
        tops = maxima(curve.samples, self.by.value)
        periods = len(tops) - 1
        if periods < 1:
            return Verdict("fewer than two maxima", False)
        period = (tops[-1].x - tops[0].x) / periods
        step = min(after.x - before.x for before, after in pairwise(curve.samples))
        even = all(abs(b.x - a.x - period) <= step * (1 + 1e-9) for a, b in pairwise(tops))
        said = f"{needed(accept).say(period)}; {periods} periods, from {tops[0].text} to {tops[-1].text}"
        if not even:
            said += ", uneven"
        return Verdict(said, even and periods >= self.periods.value and period in needed(accept))

    def criterion(self) -> str:
        """The number of periods and the depth of the falls, as text."""
        return f"{self.periods.value:.0f} periods or more, equal within one step, falls of {self.by} or more"


def maxima(samples: Sequence[Sample], by: float) -> list[Sample]:
    """The samples above the sample before and clearly above the sample after."""
    return [
        top
        for before, top, after in zip(samples, samples[1:], samples[2:], strict=False)
        if before.value < top.value and after.value <= (1 - by) * top.value
    ]
