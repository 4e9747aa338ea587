"""Fair shares and bounds of the limit engine, and reasons why a goodput is above its bound. Pure functions.

Engines of the model exceed a bound only by the backlog at the end of the warm-up. Real hosts and lines may
give more than the file declares.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import msgspec

from engpass import formatting
from engpass.types.outcome import FlowOutcome

AT = 0.005
"""A goodput that exceeds a rate by no more than this share counts as equal to it."""

_NAMED = 3
"""Maximum number of flows that a sentence names."""

_TENFOLD = 10.0
"""A sentence does not state an excess of more than this: the bound is nearly 0."""

GENERATORS = frozenset({"cbr", "on-off"})
"""Kinds of traffic that only load the network; figures and explanations leave them out."""

REAL = frozenset({"emulate", "measure"})
"""Engines with real hosts."""


def bound(limited: FlowOutcome) -> float:
    """The bound of a flow in bit/s, according to the limit engine.

    Outcomes of older versions have no bound: then the fair share is returned.
    """
    found = limited.limit.bound if limited.limit is not None else None
    return limited.goodput_bit_per_s if found is None else found.bit_per_s


def differ(fair: float, most: float) -> bool:
    """True if a fair share and a bound differ enough for a table to show both."""
    return abs(most - fair) > AT * fair


class Got(msgspec.Struct, frozen=True):
    """The goodput of a flow at a point by an engine, and its bound there, in bit/s."""

    place: Hashable
    engine: str
    flow: str
    kind: str
    goodput: float
    bound: float
    chose_otherwise: bool = False
    """True if a real router may have sent the flow over another path than the one of its bound."""

    @property
    def above(self) -> bool:
        """True if the goodput exceeds the bound by more than the backlog explains; False for generators."""
        return self.goodput > self.bound * (1 + AT) and self.kind not in GENERATORS


def reason(engine: str, *, chose_otherwise: bool = False) -> str:
    """A clause that says why an engine can give a flow more than its bound."""
    if chose_otherwise:
        return (
            "the bound is for the path that the model's hash chooses, and for the rates in the file;"
            " a real router may choose another path"
        )
    if engine in REAL:
        return "the bound is for the hosts, lines and rates in the file, but the real ones allow more"
    return (
        "data that was queued at the end of the warm-up also counts; a longer `duration` reduces this effect"
    )


def notes(all_: Iterable[Got]) -> list[str]:
    """A sentence for each engine that gave flows a goodput above their bounds."""
    engines: dict[str, list[Got]] = {}
    for got in all_:
        engines.setdefault(got.engine, []).append(got)
    return [_note(engine, group) for engine, group in engines.items() if any(got.above for got in group)]


def _note(engine: str, group: list[Got]) -> str:
    excess = [got for got in group if got.above]
    names = [f"`{flow}`" for flow in dict.fromkeys(got.flow for got in excess)]
    points, count = {got.place for got in excess}, len({got.place for got in group})
    most = max(got.goodput / got.bound - 1 if got.bound else math.inf for got in excess)
    who = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    several = len(excess) > 1
    by = f" by {'up to ' if several else ''}{formatting.percent(most)}" if most < _TENFOLD else ""
    where = f" at {len(points)} of {formatting.count(count, 'point')}" if count > 1 else ""
    chose = any(got.chose_otherwise for got in excess)
    verb = "is above its bound" if len(names) == 1 else "are above their bounds"
    return f"{who} {verb}{by} ({engine}{where}): {reason(engine, chose_otherwise=chose)}"
