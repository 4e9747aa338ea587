"""The share of datagrams that are lost, of one flow or over repeats."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engpass.types.outcome import FlowOutcome


class Losses(msgspec.Struct, frozen=True):
    """Counts of datagrams sent and lost. A share over repeats is the ratio of sums, not a mean of ratios."""

    sent: int = 0
    lost: int = 0

    @staticmethod
    def of(flow: FlowOutcome) -> Losses:
        """The counts of a flow in an outcome; 0 if the engine counts no datagrams."""
        return Losses() if flow.datagrams is None else Losses(flow.datagrams.sent, flow.datagrams.lost)

    @staticmethod
    def sum(parts: Iterable[Losses]) -> Losses:
        """The counts of all repeats added up."""
        parts = list(parts)
        return Losses(sum(part.sent for part in parts), sum(part.lost for part in parts))

    @property
    def share(self) -> float | None:
        """The share of the datagrams sent that were lost, 0 to 1; `None` if no datagram was sent."""
        # More datagrams may be lost in the window than sent: a lost one may have been sent before.
        return min(1.0, self.lost / self.sent) if self.sent else None
