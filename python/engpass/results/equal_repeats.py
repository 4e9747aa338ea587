"""Notes that the repeats of a point are equal although TCP flows share a line: nothing in it is random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from engpass.formatting import count
from engpass.results import ledger

if TYPE_CHECKING:
    from engpass.types.outcome import Outcome

FULL = "buffer full"
"""The cause of drops in a full queue, which draws no random numbers."""

_Place = tuple[str, tuple[tuple[str, object], ...]]


class EqualRepeats:
    """Compares the simulated repeats of points at which TCP flows share a line."""

    def __init__(self) -> None:
        self._first: dict[_Place, int | None] = {}
        """By point, a hash of the flows of its first repeat; `None` where phases cannot matter."""
        self._equal: dict[_Place, bool] = {}

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a point; the repeats may come in any order."""
        if outcome.engine != "simulate":
            return
        place = outcome.variant, tuple(outcome.sweep.items())
        if place not in self._first:
            self._first[place] = _digest(outcome) if _may_lock(outcome) else None
        elif (first := self._first[place]) is not None:
            self._equal[place] = self._equal.get(place, True) and _digest(outcome) == first

    def lines(self) -> list[str]:
        """A sentence, if the repeats of some point are equal."""
        equal = sum(self._equal.values())
        if not equal:
            return []
        where = "" if equal == len(self._first) else f" at {equal:,} of {count(len(self._first), 'point')}"
        text = (
            f"simulate{where}: the repeats are equal, because nothing in the file is random."
            " The shares of TCP flows on a line may then depend on the phase of their packets: a `jitter` of"
            " links that carry packets, or other `start` times, show whether they do"
        )
        return [text]


def _digest(outcome: Outcome) -> int:
    return hash(msgspec.json.encode(outcome.flows))


def _may_lock(outcome: Outcome) -> bool:
    """True if two TCP flows take the same line in the same direction, and a full queue drops packets."""
    if not any(drop.cause == FULL for drop in outcome.drops):
        return False
    seen: set[ledger.Hop] = set()
    for name, flow in outcome.flows.items():
        taken = ledger.route(outcome, name) if flow.kind == "tcp-stream" else []
        if not seen.isdisjoint(taken):
            return True
        seen.update(taken)
    return False
