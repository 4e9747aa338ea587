"""Why a goodput is above its limit: pure.

`limit` gives each flow its fair share of what flows have in common, for all of the time and on average, of
what the testbed says. So a flow can have more where another one does not take its share, by chance, or where
real hosts give more than the file says of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engpass import ledger, say
from engpass.settings import Settings

AT = 0.005
"""What exceeds its limit by no more than this share is at it."""

RANDOM = frozenset({"poisson", "udp-on-off", "on-off"})
"""Traffic whose times are drawn: its limit is that of the mean."""

GENERATORS = frozenset({"cbr", "on-off"})
"""Traffic that the limit does not make yield."""

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

    @property
    def above(self) -> bool:
        """Whether it is more than the limit, by more than the ends of a run explain."""
        return self.goodput > self.limit * (1 + AT) and self.kind not in GENERATORS

    @property
    def below(self) -> bool:
        """Whether it left some of its share to others."""
        return self.goodput < self.limit * (1 - AT)


@dataclass(frozen=True)
class Network:
    """What a reason asks of a testbed: which flows meet, and which do not send all the time."""

    ways: Mapping[str, frozenset[tuple[str, str]]]
    part_time: Collection[str]

    def meet(self, one: str, other: str) -> bool:
        """Whether two flows have a host or a link in common; yes where a way is not known."""
        ways = self.ways.get(one), self.ways.get(other)
        return ways[0] is None or ways[1] is None or bool(ways[0] & ways[1])


def network(topology: Mapping[str, Any], tables: Iterable[Mapping[str, Any]]) -> Network:
    """The network of a run: its topology, and its testbed's tables, with variants and what was set."""
    ways = {}
    for flow in topology.get("flows", ()):
        start, end = str(flow["from"]), str(flow["to"])
        links = {("link", hop[0]) for hop in ledger.route(topology, start, end)}
        ways[str(flow["name"])] = frozenset({("host", start), ("host", end), *links})
    part_time = {
        str(name)
        for table in tables
        for name, traffic in table.get("traffic", {}).items()
        if isinstance(traffic, Mapping) and not traffic.keys().isdisjoint(("start", "stop"))
    }
    return Network(ways, part_time)


def of_run(
    topology: Mapping[str, Any], text: str, variants: Iterable[str], overrides: Iterable[tuple[str, str]]
) -> Network:
    """The same from the record of a run."""
    kept = list(overrides)
    try:
        return network(topology, [Settings.at(text, variant, (), kept).tables for variant in variants])
    except tomllib.TOMLDecodeError:
        return network(topology, ())


def reason(one: Got, others: Sequence[Got], of: Network) -> str:
    """Why this flow has more than its limit, from what all flows got at the same place by the same engine."""
    left = [
        other for other in others if other.flow != one.flow and other.below and of.meet(one.flow, other.flow)
    ]
    if left:
        most = max(left, key=lambda other: other.limit - other.goodput)
        if most.flow in of.part_time:
            return f"`{most.flow}` does not send all the time, as the limit has it"
        return (
            f"`{most.flow}` gets less than its own limit there, and what flows share the limit divides fairly"
        )
    if one.kind in RANDOM:
        return "its datagrams are drawn at random, and the limit takes their mean"
    if one.engine in REAL:
        return "the limit is that of the hosts, lines and rates in the file, and the real ones give more"
    return "what waited in queues when counting began is counted, too; a longer `duration` makes that less"


def notes(all_: Iterable[Got], of: Network) -> list[str]:
    """A sentence for each flow, engine and reason of goodputs above their limits, the greatest first."""
    places: dict[tuple[Hashable, str], list[Got]] = {}
    for got in all_:
        places.setdefault((got.place, got.engine), []).append(got)
    total: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, str, str], list[float]] = {}
    for together in places.values():
        for got in together:
            total[got.flow, got.engine] = total.get((got.flow, got.engine), 0) + 1
            if got.above:
                excess = got.goodput / got.limit - 1 if got.limit else float("inf")
                found.setdefault((got.flow, got.engine, reason(got, together, of)), []).append(excess)
    told = []
    for (flow, engine, why), excesses in sorted(found.items(), key=lambda item: -max(item[1])):
        most = max(excesses)
        by = f" by {'up to ' if len(excesses) > 1 else ''}{say.percent(most)}" if most < 10 else ""
        count = total[flow, engine]
        where = f" at {len(excesses)} of {say.count(count, 'point')}" if count > 1 else ""
        told.append(f"`{flow}` is above its limit{by} ({engine}{where}): {why}")
    return told
