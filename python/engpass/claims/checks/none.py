"""`none`: no datagram is lost, or no retransmission timer expires."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, say_reach
from engpass.claims.missing import NoDataError
from engpass.claims.quantity import Quantity

COUNTED = ("lost", "timeouts")


@dataclass(frozen=True)
class Nothing(Check):
    """A count of losses or timeouts is zero in every repeat of every point of the range."""

    count: str
    """`lost` counts lost datagrams of the flow, `timeouts` expired retransmission timers of all flows."""
    from_: Quantity | None = None
    to: Quantity | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` if `count` is neither of the two."""
        if self.count not in COUNTED:
            raise ValueError(f"`count` is `{self.count}`; use one of {', '.join(COUNTED)}")

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Add up the losses or timeouts of all points of the range."""
        found = self._sum(curves, self.count)
        if self.count == "timeouts":
            return Verdict(f"{found:,.0f} timeouts", found == 0)
        sent = self._sum(curves, "sent")
        if sent <= 0:
            raise NoDataError("nothing was sent")
        return Verdict(f"{found:,.0f} of {sent:,.0f} lost", found == 0)

    def _sum(self, curves: Curves, quantity: str) -> float:
        samples = curves(self.variant, quantity).between(*bounds(self.from_, self.to)).samples
        return math.fsum(sample.value for sample in samples)

    def criterion(self) -> str:
        """The rule and the range of the sweep, as text."""
        said = "none lost" if self.count == "lost" else "no timeout in any flow"
        return f"{said} {say_reach(self.from_, self.to)}".strip()
