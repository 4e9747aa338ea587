"""The timeline of one run of a point: windows, flight, queues and events over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

from engpass import _engpass
from engpass.error import EngpassError
from engpass.types.outcome import EngineLine, FlowLine, Timeline

T = TypeVar("T")

SAMPLES = 1_000
"""Number of instants at which a timeline is sampled."""

MOST_ENGINES = 8
"""Maximum number of engines of which the load is shown over time."""


def timeline(
    campaign: _engpass.Campaign,
    variant: str,
    sweep: Sequence[tuple[str, str]],
    repeat: int = 0,
    samples: int = SAMPLES,
    interrupt: _engpass.Interrupt | None = None,
) -> Timeline:
    """Simulate a point and record the state of its flows and queues, each at most `samples` times.

    Raises what `Campaign.run` raises.
    """
    record = getattr(campaign, "timeline", None)
    if record is None:
        raise EngpassError("this build of the core cannot record a timeline", "build it again: `make dev`")
    text = record(variant, list(sweep), repeat, samples, interrupt or _engpass.Interrupt())
    return msgspec.json.decode(text, type=Timeline)


def thinned(samples: Sequence[T], intervals: int) -> list[T]:
    """About `intervals + 1` of the samples at equal distances, the first and the last among them."""
    kept = list(samples[:: max(1, len(samples) // intervals)])
    if kept and kept[-1] != samples[-1]:
        kept.append(samples[-1])
    return kept


def losses(flow: FlowLine, intervals: int) -> list[tuple[float, float, float]]:
    """The loss of a UDP flow over time, as its receiver sees it: begin and end of an interval, and the share.

    The share is RTCP's fraction lost (RFC 3550 section 6.4.1): datagrams missing of those expected in the
    interval, at least 0. The time is divided into about `intervals` parts. Empty for other flows.
    """
    counts = flow.datagrams
    if counts is None:
        return []
    samples = list(zip(flow.time_s, counts.received, counts.missing, strict=True))
    found = []
    for (begin, received, missing), (end, more_received, more_missing) in pairwise(
        thinned(samples, intervals)
    ):
        lost = more_missing - missing
        expected = more_received - received + lost
        found.append((begin, end, max(0.0, lost / expected) if expected > 0 else 0.0))
    return found


def busiest(timeline: Timeline) -> list[tuple[str, EngineLine]]:
    """The CPUs and forwarding engines that work, those with the greatest loads, in the order of the file."""
    working = [
        (f"{node}: {name}", engine)
        for node, found in timeline.nodes.items()
        for name, engine in found.engines.items()
        if any(engine.load)
    ]
    kept = sorted(working, key=lambda one: -sum(one[1].load))[:MOST_ENGINES]
    return [one for one in working if one in kept]


def loads(engine: EngineLine, intervals: int) -> list[tuple[float, float, float]]:
    """The load of an engine over time in about `intervals` parts: begin and end of each, and the share."""
    spans = list(zip([0.0, *engine.time_s], engine.time_s, engine.load, strict=False))
    step = max(1, -(-len(spans) // intervals))
    parts = [spans[first : first + step] for first in range(0, len(spans), step)]
    found = []
    for part in parts:
        begin, end = part[0][0], part[-1][1]
        busy = sum((until - since) * load for since, until, load in part)
        found.append((begin, end, busy / (end - begin) if end > begin else 0.0))
    return found
