"""Loads of engines and longest queues of ports at every point of a run."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import msgspec

from engpass.formatting import clean
from engpass.results.ledger_series import Place
from engpass.results.outcomes import engines, lines
from engpass.results.samples import LOAD, Samples, Spread
from engpass.types.outcome import DirectionOutcome, EngineOutcome, Outcome
from engpass.types.signals import LINE, Signal

_BY_NAME = {signal.name: signal for signal in LINE}
PACKETS, CELLS = _BY_NAME["longest_queue_packets"], _BY_NAME["longest_queue_cells"]
"""The longest queue of a port in packets, and in cells; a port has one of the two."""


class Resource(msgspec.Struct, frozen=True, dict=True):
    """A signal of one engine or port at every point, in the unit of the signal."""

    name: str
    """Node and engine, such as `edge: lan`, or link and direction, such as `trunk: west → east`."""
    signal: Signal
    at: Mapping[Place, Spread]

    @cached_property
    def most(self) -> float:
        """The greatest value at any point."""
        return max(spread.value for spread in self.at.values())

    @cached_property
    def difference(self) -> float:
        """The greatest difference of two points that one engine of Engpass has answered."""
        return difference(self.at)


def difference(values: Mapping[Place, Spread]) -> float:
    """The greatest difference of a quantity at two points that one engine of Engpass has answered."""
    found: dict[str, list[float]] = {}
    for (_, engine, _), spread in values.items():
        found.setdefault(engine, []).append(spread.value)
    return max((max(each) - min(each) for each in found.values()), default=0.0)


class ResourceShelf:
    """Collects the loads and queues of outcomes, folded over repeats."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Signal], dict[Place, Samples]] = {}

    def add(self, place: Place, outcome: Outcome) -> None:
        """Add the loads and queues of an outcome."""
        for name, signal, subject in _of(outcome):
            places = self._kept.setdefault((name, signal), {})
            samples = places.get(place)
            if samples is None:
                samples = places[place] = Samples([signal])
            samples.add(subject)

    def resources(self) -> tuple[Resource, ...]:
        """All engines that work and queues that are not empty at some point, in the order of the outcomes."""
        found = (
            Resource(
                clean(name),
                signal,
                {
                    place: spread
                    for place, samples in places.items()
                    if (spread := samples.spread(signal)) is not None
                },
            )
            for (name, signal), places in self._kept.items()
        )
        return tuple(one for one in found if one.at and one.most > 0)


def _of(outcome: Outcome) -> Iterator[tuple[str, Signal, EngineOutcome | DirectionOutcome]]:
    for node, name, engine in engines(outcome):
        yield f"{node}: {name}", LOAD, engine
    for link, side in lines(outcome):
        if side.queue is not None:
            signal = PACKETS if side.queue.longest_cells is None else CELLS
            yield f"{link}: {side.from_} → {side.to}", signal, side
