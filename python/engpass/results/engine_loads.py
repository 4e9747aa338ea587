"""The loads of CPUs and forwarding engines at every point of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from engpass.formatting import clean
from engpass.results.ledger_series import Place
from engpass.results.outcomes import engines
from engpass.results.samples import LOAD, Samples, Spread
from engpass.types.outcome import Outcome


@dataclass(frozen=True)
class EngineLoads:
    """The load of one engine at every point, from 0 to 1."""

    name: str
    """Node and engine, such as `edge: lan`."""
    at: Mapping[Place, Spread]

    @cached_property
    def most(self) -> float:
        """The greatest load at any point."""
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


class LoadShelf:
    """Collects the loads of outcomes, folded over repeats."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], dict[Place, Samples]] = {}
        """By node and engine: the loads at each point."""

    def add(self, place: Place, outcome: Outcome) -> None:
        """Add the loads of an outcome."""
        for node, name, engine in engines(outcome):
            places = self._kept.setdefault((node, name), {})
            samples = places.get(place)
            if samples is None:
                samples = places[place] = Samples([LOAD])
            samples.add(engine)

    def loads(self) -> tuple[EngineLoads, ...]:
        """All engines that work at some point, in the order of the outcomes."""
        found = (
            EngineLoads(
                f"{clean(node)}: {clean(name)}",
                {
                    place: spread
                    for place, samples in places.items()
                    if (spread := samples.spread(LOAD)) is not None
                },
            )
            for (node, name), places in self._kept.items()
        )
        return tuple(one for one in found if one.at and one.most > 0)
