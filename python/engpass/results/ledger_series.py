"""The ledgers of a run by point, and the line that is shown for each flow."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from engpass.formatting import clean
from engpass.results import ledger
from engpass.results.above_limit import GENERATORS
from engpass.results.ledger import Books, Hop
from engpass.types.outcome import Outcome

Place: TypeAlias = tuple[str, str, tuple[int, ...]]
"""A point without its repeat: variant, engine and the indices of the swept values."""


class Line(msgspec.Struct, frozen=True):
    """The direction of a link that is shown for a flow, with the ledger at every point."""

    link: str
    start: str
    end: str
    books: Mapping[Place, Books]
    own: Mapping[Place, float] = msgspec.field(default_factory=dict)
    """Share of the line that is delivered to the flow, at points where other flows use the line too."""

    @property
    def name(self) -> str:
        """The name of the line for people."""
        return f"link {self.link}, {self.start} \N{RIGHTWARDS ARROW} {self.end}"


class Shelf:
    """Collects the ledgers of outcomes, summed over repeats."""

    def __init__(self) -> None:
        self._kept: dict[Hop, dict[Place, Books]] = {}
        self._hops: dict[str, dict[Hop, None]] = {}
        """The lines that each flow takes at any point."""
        self._own: dict[tuple[str, Hop], dict[Place, list[float]]] = {}
        """By flow and hop: the share of the line that is delivered to the flow, at each point by repeat."""

    def add(self, place: Place, outcome: Outcome) -> None:
        """Add the ledgers of an outcome; raises `EngpassError` if one does not balance."""
        sides = ledger.directions(outcome)
        for side in sides:
            books = self._kept.setdefault(side.key, {})
            before = books.get(place)
            total = ledger.add([before, side.books]) if before else side.books
            books[place] = total or side.books
        rates: dict[Hop, dict[str, float]] = {}
        for name, flow in outcome.flows.items():
            parts = ledger.parts(outcome, name)
            self._hops.setdefault(clean(name), {}).update(dict.fromkeys(parts))
            if flow.kind not in GENERATORS:
                for hop, part in parts.items():
                    rates.setdefault(hop, {})[clean(name)] = flow.goodput_bit_per_s * part
        for side in sides:
            sharing = rates.get(side.key, {})
            whole = sum(sharing.values())
            if len(sharing) > 1 and whole:
                delivered = side.books.share("delivered")
                for name, rate in sharing.items():
                    shares = self._own.setdefault((name, side.key), {})
                    shares.setdefault(place, []).append(delivered * rate / whole)

    def lines(self, flows: Iterable[str]) -> dict[str, Line]:
        """By flow: the line with the least idle time over all points, of the lines on its paths."""
        found = {}
        for flow in flows:
            keys = [hop for hop in self._hops.get(flow, ()) if hop in self._kept]
            if keys:
                key = min(keys, key=lambda key: round(_idle(list(self._kept[key].values())), 9))
                own = {
                    place: sum(shares) / len(shares)
                    for place, shares in self._own.get((flow, key), {}).items()
                }
                found[flow] = Line(*key, self._kept[key], own)
        return found


def _idle(books: Sequence[Books]) -> float:
    return sum(one.idle for one in books) / len(books)
