"""What was booked of a measured point, and what it says about one flow. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engpass.ledger import Hop
from engpass.types.outcome import LinkOutcome


@dataclass(frozen=True)
class Line:
    """A line on the way of a flow, by its books: shares of its capacity."""

    link: str
    busy: float
    delivered: float
    """To all flows together."""
    rate: float
    """Of the line in bit/s, as far as the window tells."""


@dataclass(frozen=True)
class Kept:
    """The books of a point by link, the ways of its flows, and what there is to say about the books."""

    links: Mapping[str, LinkOutcome]
    ways: Mapping[str, list[Hop]]
    notes: list[str]
    seconds: float = 0.0

    def lines(self, flow: str) -> list[Line]:
        """The lines on the way of a flow that have books, in its order."""
        found = []
        for link, start, _ in self.ways.get(flow, []):
            booked = self.links.get(link)
            for side in () if booked is None else booked.directions:
                if side.from_ != start or side.ledger is None or not side.ledger.capacity:
                    continue
                whole, accounts = side.ledger.capacity, side.ledger.accounts
                idle = sum(n for account, n in accounts.items() if account.startswith("idle:"))
                given = accounts.get("delivered", 0)
                found.append(
                    Line(link, 1 - idle / whole, given / whole, whole / self.seconds if self.seconds else 0.0)
                )
        return found
