"""`no-timeout`: no retransmission timer expires."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds
from engpass.claims.quantity import Quantity


@dataclass(frozen=True)
class NoTimeout(Check):
    """No retransmission timer of any flow expires, in any repeat of any point of the range."""

    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Count what expired."""
        curve = curves(self.variant, "timeouts").between(*bounds(self.from_, self.to))
        count = math.fsum(sample.value for sample in curve.samples)
        return Verdict(f"{count:,.0f} timeouts", count == 0)

    def criterion(self) -> str:
        """None at all."""
        return "none in any flow"
