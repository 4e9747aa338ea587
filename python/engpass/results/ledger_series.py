"""The ledgers of a run by point, and the line that is shown for each flow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engpass.formatting import clean
from engpass.results import ledger
from engpass.results.ledger import Books, Hop
from engpass.types.outcome import Outcome

Place: TypeAlias = tuple[str, str, tuple[int, ...]]
"""Variant, engine and the indices of the swept values."""


@dataclass(frozen=True)
class Line:
    """The direction of a link that is shown for a flow, with its ledger at every point."""

    link: str
    start: str
    end: str
    books: Mapping[Place, Books]

    @property
    def name(self) -> str:
        """Text that names the line."""
        return f"link {self.link}, {self.start} \N{RIGHTWARDS ARROW} {self.end}"


class Shelf:
    """Collects the ledgers of outcomes, summed over the repeats."""

    def __init__(self) -> None:
        self._kept: dict[Hop, dict[Place, Books]] = {}
        self._hops: dict[str, dict[Hop, None]] = {}
        """The hops of each flow at any point."""

    def add(self, place: Place, outcome: Outcome) -> None:
        """Add the ledgers of an outcome; raises `EngpassError` if one does not balance."""
        for side in ledger.directions(outcome):
            books = self._kept.setdefault(side.key, {})
            before = books.get(place)
            total = ledger.add([before, side.books]) if before else side.books
            books[place] = total or side.books
        for flow in outcome.flows:
            self._hops.setdefault(clean(flow), {}).update(dict.fromkeys(ledger.route(outcome, flow)))

    def lines(self, flows: Iterable[str]) -> dict[str, Line]:
        """For each flow, the busiest line on its paths over all points."""
        found = {}
        for flow in flows:
            keys = [hop for hop in self._hops.get(flow, ()) if hop in self._kept]
            if keys:
                key = min(keys, key=lambda key: round(_idle(list(self._kept[key].values())), 9))
                found[flow] = Line(*key, self._kept[key])
        return found


def _idle(books: Sequence[Books]) -> float:
    return sum(one.idle for one in books) / len(books)
