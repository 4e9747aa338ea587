"""`round-trip`: the round trip of every TCP flow, queueing included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed
from engpass.claims.quantity import Quantity


@dataclass(frozen=True)
class RoundTrip(Check):
    """The smoothed round trip time of every TCP flow, as its sender estimates it at the end of the run."""

    numeric: ClassVar[bool] = True

    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Compare the shortest and the longest round trip with the claim's interval."""
        low, high = bounds(self.from_, self.to)
        shortest = curves(self.variant, "shortest round trip").between(low, high).least()
        longest = curves(self.variant, "longest round trip").between(low, high).greatest()
        inside = shortest.value in needed(accept) and longest.value in needed(accept)
        return Verdict(needed(accept).say_range(shortest.value, longest.value), inside)

    def criterion(self) -> str:
        """The flows that the check reads, as text."""
        return "every flow"
