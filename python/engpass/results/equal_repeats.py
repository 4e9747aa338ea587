"""Notes that the repeats of a point are equal although TCP flows share a line: nothing in it is random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engpass.formatting import count
from engpass.results import ledger

if TYPE_CHECKING:
    from engpass.types.outcome import Outcome

_Place = tuple[str, tuple[tuple[str, object], ...]]


class EqualRepeats:
    """Compares the simulated repeats of points at which TCP flows share a line."""

    def __init__(self) -> None:
        self._first: dict[_Place, Outcome] = {}
        self._equal: dict[_Place, bool] = {}
        self._most = 0

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a point; the repeats may come in any order."""
        if outcome.engine != "simulate":
            return
        place = outcome.variant, tuple(outcome.sweep.items())
        first = self._first.setdefault(place, outcome)
        if first is not outcome and (place in self._equal or _tcp_shares(first)):
            self._equal[place] = self._equal.get(place, True) and outcome.flows == first.flows
            self._most = max(self._most, outcome.repeat + 1, first.repeat + 1)

    def lines(self) -> list[str]:
        """A sentence, if the repeats of some point are equal."""
        equal = sum(self._equal.values())
        if not equal:
            return []
        where = "" if equal == len(self._first) else f" at {equal:,} of {count(len(self._first), 'point')}"
        text = (
            f"simulate{where}: all {self._most:,} repeats are equal, because nothing in the file is random."
            " The shares of TCP flows on a line may then depend on the phase of their packets: a `jitter` of"
            " the links or other `start` times show whether they do"
        )
        return [text]


def _tcp_shares(outcome: Outcome) -> bool:
    """True if two TCP flows take the same line in the same direction."""
    seen: set[ledger.Hop] = set()
    for name, flow in outcome.flows.items():
        taken = ledger.route(outcome, name) if flow.kind == "tcp-stream" else []
        if not seen.isdisjoint(taken):
            return True
        seen.update(taken)
    return False
