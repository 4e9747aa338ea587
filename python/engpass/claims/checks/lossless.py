"""`lossless`: nothing is lost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds
from engpass.claims.curves import NoDataError
from engpass.claims.quantity import Quantity


@dataclass(frozen=True)
class Lossless(Check):
    """No datagram is lost, in any repeat of any point of the range."""

    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Count what was lost."""
        return Verdict(*count(curves, self.variant, *bounds(self.from_, self.to)))

    def criterion(self) -> str:
        """None at all."""
        return "none lost"


def count(curves: Curves, variant: str, low: float | None, high: float | None) -> tuple[str, bool]:
    """Losses in a range in words, and whether there are none."""
    lost = math.fsum(s.value for s in curves(variant, "lost").between(low, high).samples)
    sent = math.fsum(s.value for s in curves(variant, "sent").between(low, high).samples)
    if sent <= 0:
        raise NoDataError("nothing was sent")
    return f"{lost:,.0f} of {sent:,.0f} lost", lost == 0
