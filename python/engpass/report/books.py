"""The ledgers of a run by point: which line stands for a flow, and its books over the sweep."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from engpass import ledger
from engpass.ledger import Books
from engpass.report.record import Outcome

Place: TypeAlias = tuple[str, str, tuple[int, ...]]
"""Variant, engine and the indices of the swept values."""


@dataclass(frozen=True)
class Line:
    """The direction of a link that is shown for a flow, with its books at every point."""

    link: str
    start: str
    end: str
    books: Mapping[Place, Books]

    @property
    def name(self) -> str:
        """The line in words."""
        return f"link {self.link}, {self.start} \N{RIGHTWARDS ARROW} {self.end}"


class Shelf:
    """Takes the ledgers of outcomes and adds up those of the repeats."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], dict[Place, Books]] = {}

    def add(self, place: Place, outcome: Outcome) -> None:
        """The ledgers of an outcome; raises `EngpassError` where they do not balance."""
        for side in ledger.directions(outcome):
            books = self._kept.setdefault(side.key, {})
            before = books.get(place)
            total = ledger.add([before, side.books]) if before else side.books
            books[place] = total or side.books

    def lines(self, topology: Mapping[str, Any], flows: Iterable[str]) -> dict[str, Line]:
        """For each flow the line of its way that was busiest over all points."""
        ends = {flow["name"]: (flow["from"], flow["to"]) for flow in topology.get("flows", ())}
        ways = ledger.Ways(topology)
        found = {}
        for flow in flows:
            if flow not in ends:
                continue
            keys = [hop for hop in ways.route(*ends[flow]) if hop in self._kept]
            if keys:
                key = min(keys, key=lambda key: round(_idle(list(self._kept[key].values())), 9))
                found[flow] = Line(*key, self._kept[key])
        return found


def _idle(books: Sequence[Books]) -> float:
    return sum(one.idle for one in books) / len(books)
