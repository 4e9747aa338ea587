"""The ledgers of a measured point, and the lines of one flow. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engpass.results.ledger import Hop
from engpass.types.outcome import Drop, LinkOutcome


@dataclass(frozen=True)
class Line:
    """A line on the path of a flow; `busy` and `delivered` are shares of its capacity, from the ledger."""

    link: str
    busy: float
    delivered: float
    """Share of the capacity that is payload delivered to all flows."""
    rate: float
    """Rate of the line in bit/s; 0 if the length of the window is unknown."""


@dataclass(frozen=True)
class Kept:
    """The ledgers of a point by link, the hops of the flows, and notes on the ledgers."""

    links: Mapping[str, LinkOutcome]
    ways: Mapping[str, list[Hop]]
    notes: list[str]
    seconds: float = 0.0
    drops: Sequence[Drop] = ()
    """Losses of the flows in an emulated network, each with place and cause."""

    def worst_drop(self, flow: str) -> Drop | None:
        """The place and cause that account for most losses of a flow; `None` without losses."""
        own = [drop for drop in self.drops if drop.flow == flow and drop.datagrams]
        return max(own, key=lambda drop: drop.datagrams, default=None)

    def lines(self, flow: str) -> list[Line]:
        """The lines on the path of a flow that have ledgers, in order."""
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
