"""Quantities of all flows of an outcome together: total goodput, fairness, round trip times, timeouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from engpass.types.outcome import FlowOutcome

Flows = Iterable[FlowOutcome]


def _goodputs(flows: Flows) -> list[float]:
    return [flow.goodput_bit_per_s for flow in flows]


def total(flows: Flows) -> float | None:
    """Sum of the goodputs of all flows in bit/s."""
    return math.fsum(_goodputs(flows))


def fairness(flows: Flows) -> float | None:
    """Fairness index of Jain, Chiu and Hawe (1984): 1 if all flows get the same, 1/n if one of n gets all."""
    goodputs = _goodputs(flows)
    squares = math.fsum(one * one for one in goodputs)
    return math.fsum(goodputs) ** 2 / (len(goodputs) * squares) if squares else None


def _round_trips(flows: Flows) -> list[float]:
    found = (flow.tcp.smoothed_rtt_s for flow in flows if flow.tcp is not None)
    return [one for one in found if one is not None]


def shortest_round_trip(flows: Flows) -> float | None:
    """Least smoothed round trip time at the end of the run, over all TCP flows, in seconds."""
    return min(_round_trips(flows), default=None)


def longest_round_trip(flows: Flows) -> float | None:
    """Greatest smoothed round trip time at the end of the run, over all TCP flows, in seconds."""
    return max(_round_trips(flows), default=None)


def timeouts(flows: Flows) -> float | None:
    """Number of retransmission timeouts of all flows that count them."""
    counts = (flow.tcp.timeouts for flow in flows if flow.tcp is not None)
    found = [one for one in counts if one is not None]
    return float(sum(found)) if found else None


TOGETHER: dict[str, tuple[str, Callable[[Flows], float | None]]] = {
    "total": ("bit/s", total),
    "fairness": ("", fairness),
    "shortest round trip": ("s", shortest_round_trip),
    "longest round trip": ("s", longest_round_trip),
    "timeouts": ("timeouts", timeouts),
}
"""Quantities by the names that checks use: the unit and a function, which returns `None` without data."""
