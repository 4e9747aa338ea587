"""Why a goodput is above its limit: pure.

`limit` gives each flow its fair share of what flows have in common, for all of the time and on average, of
what the testbed says. So a flow can have more where another one does not take its share, by chance, or where
real hosts give more than the file says of them.
"""

from __future__ import annotations

import enum
import math
import tomllib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engpass import say
from engpass.settings import Settings

AT = 0.005
"""What exceeds its limit by no more than this share is at it."""

_NAMED = 3
"""Flows that a sentence names."""

_TENFOLD = 10.0
"""From this excess on it is not told: the limit is nearly nothing."""

RANDOM = frozenset({"poisson", "udp-on-off", "on-off"})
"""Traffic whose times are drawn: its limit is that of the mean."""

GENERATORS = frozenset({"cbr", "on-off"})
"""Traffic that takes what it takes and only loads the network: figures and explanations are of the others."""

REAL = frozenset({"emulate", "measure"})
"""Engines with real hosts."""


@dataclass(frozen=True)
class Got:
    """What a flow got at a point by an engine, and its limit there, in bit/s."""

    place: Hashable
    engine: str
    flow: str
    kind: str
    goodput: float
    limit: float
    passed: frozenset[str] = frozenset()
    """Its hosts and links; empty where no path is known."""

    @property
    def above(self) -> bool:
        """Whether it is more than the limit, by more than the ends of a run explain."""
        return self.goodput > self.limit * (1 + AT) and self.kind not in GENERATORS

    def meets(self, other: Got) -> bool:
        """Whether two flows have a host or a link in common; yes where a path is not known."""
        return not self.passed or not other.passed or not self.passed.isdisjoint(other.passed)

    @property
    def below(self) -> bool:
        """Whether it left some of its share to others."""
        return self.goodput < self.limit * (1 - AT)


def part_time_in(tables: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The flows of a testbed's tables that do not send all the time."""
    return frozenset(
        str(name)
        for table in tables
        for name, traffic in table.get("traffic", {}).items()
        if isinstance(traffic, Mapping) and not traffic.keys().isdisjoint(("start", "stop"))
    )


def part_time_in_run(
    text: str, variants: Iterable[str], overrides: Iterable[tuple[str, str]]
) -> frozenset[str]:
    """The same from the record of a run."""
    kept = list(overrides)
    try:
        return part_time_in(Settings.at(text, variant, (), kept).tables for variant in variants)
    except tomllib.TOMLDecodeError:
        return frozenset()


def passed(flow: Mapping[str, Any]) -> frozenset[str]:
    """The hosts and links of the paths of an outcome's flow."""
    steps = [step for path in flow.get("paths", ()) for step in path["steps"]]
    ends = [steps[0]["from"], *(path["steps"][-1]["to"] for path in flow["paths"])] if steps else []
    return frozenset([f"host {end}" for end in ends] + [f"link {step['link']}" for step in steps])


def reason(one: Got, others: Sequence[Got], part_time: Collection[str]) -> str:
    """Why this flow has more than its limit, from what all flows got at the same place by the same engine."""
    return _words(*_cause(one, _leaving(others), part_time))


class _Cause(enum.Enum):
    PART_TIME = "`{}` does not send all the time, as the limit has it"
    UNFAIR = "`{}` gets less than its own limit there, and what flows share the limit divides fairly"
    RANDOM = "datagrams are drawn at random, and the limit takes their mean"
    REAL = "the limit is that of the hosts, lines and rates in the file, and the real ones give more"
    WAITED = "what waited in queues when counting began is counted, too; a longer `duration` makes that less"


def _cause(one: Got, leaving: Iterable[Got], part_time: Collection[str]) -> tuple[_Cause, Got | None]:
    """The cause, and who left its share: the first of those who did that meets this flow."""
    most = next((other for other in leaving if other.flow != one.flow and one.meets(other)), None)
    if most is not None:
        return (_Cause.PART_TIME if most.flow in part_time else _Cause.UNFAIR), most
    if one.kind in RANDOM:
        return _Cause.RANDOM, None
    return (_Cause.REAL if one.engine in REAL else _Cause.WAITED), None


def _leaving(all_: Iterable[Got]) -> list[Got]:
    """Who left some of its share, the greatest part first."""
    return sorted((got for got in all_ if got.below), key=lambda got: -_left(got))


def _left(other: Got) -> float:
    return other.limit - other.goodput


def _words(cause: _Cause, other: Got | None) -> str:
    return cause.value.format(other.flow if other else "")


@dataclass
class _Excess:
    """Goodputs above their limits for one cause: whose, how many, the greatest, and who left the most."""

    flows: dict[str, None]
    points: set[Hashable]
    most: float
    other: Got | None


def notes(all_: Iterable[Got], part_time: Collection[str]) -> list[str]:
    """A sentence for each engine and cause of goodputs above their limits, the greatest excess first."""
    places: dict[tuple[Hashable, str], list[Got]] = {}
    for got in all_:
        places.setdefault((got.place, got.engine), []).append(got)
    found: dict[tuple[str, _Cause], _Excess] = {}
    for (place, engine), together in places.items():
        leaving = _leaving(together)
        for got in together:
            if not got.above:
                continue
            cause, other = _cause(got, leaving, part_time)
            excess = found.setdefault((engine, cause), _Excess({}, set(), 0.0, other))
            excess.flows[got.flow] = None
            excess.points.add(place)
            excess.most = max(excess.most, got.goodput / got.limit - 1 if got.limit else math.inf)
            if other is not None and (excess.other is None or _left(other) > _left(excess.other)):
                excess.other = other
    told = []
    for (engine, cause), excess in sorted(found.items(), key=lambda item: -item[1].most):
        names = [f"`{flow}`" for flow in excess.flows]
        who = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        one = len(names) == 1
        count = sum(1 for _, at in places if at == engine)
        several = len(excess.points) > 1 or not one
        by = f" by {'up to ' if several else ''}{say.percent(excess.most)}" if excess.most < _TENFOLD else ""
        where = f" at {len(excess.points)} of {say.count(count, 'point')}" if count > 1 else ""
        verb = "is above its limit" if one else "are above their limits"
        told.append(f"{who} {verb}{by} ({engine}{where}): {_words(cause, excess.other)}")
    return told
