"""The cost of routers that choose among equal links for each packet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from figures import Figure, Row, Target
from machine import Tools

HOPS = 3
SECOND = (
    'link.second={ ends = ["left", "right"], medium = "point-to-point", rate = "77500 kbit/s", '
    'delay = "3 ms", overhead = "2 B" }'
)
PARALLEL = (SECOND, "link.bottleneck.rate=77500 kbit/s")
# With one seed all routers split the flows alike: lines never merge, and lookahead carries a packet over all
# hops without an event. With a seed each, flows of several lines meet at every hop.
SEEDS = [f"router.s{number}.ecmp={{ hash = {{ seed = {number} }} }}" for number in range(1, HOPS + 1)]


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure a hop by policy, and decisions for each packet against cached ones, in turns."""
    group = "Routers that choose: ten flows, two equal links to the next router"
    seconds = "run.duration=1 s" if quick else "run.duration=10 s"

    def hop(workload: str, engine: str, *settings: str) -> float:
        """Return seconds per packet over a link, from the fastest of four runs."""
        run: dict[str, Any] = tools.workload(workload, engine, 4, *settings)
        return float(min(run["cpu_s"])) / int(run["sent"])

    policies = ("first", "hash", "round-robin")
    hashed = [f"router.{side}.ecmp=hash" for side in ("left", "right")]
    turns: list[list[float]] = []
    for _ in range(3 if quick else 9):
        by_policy = [hop(f"ways:{HOPS}:{policy}", "simulate", seconds) for policy in policies]
        # Both give the same outcome: `asking` decides for each packet, `simulate` once.
        engines = ("simulate", "asking")
        alike = [hop(f"ways:{HOPS}:hash", engine, seconds) for engine in engines]
        udp = [hop(f"ways:{HOPS}:hash", engine, *SEEDS, seconds) for engine in engines]
        tcp = [hop("dumbbell:10:sack", engine, *PARALLEL, *hashed, seconds) for engine in engines]
        ratios = [once_and_each[1] / once_and_each[0] for once_and_each in (alike, udp, tcp)]
        turns.append([*by_policy, by_policy[2] / by_policy[0], *ratios])
    samples = [list(column) for column in zip(*turns, strict=True)]
    for policy, column in zip(policies, samples, strict=False):
        yield Figure(group, f"UDP over {HOPS} hops, {policy}, a hop", "s", column)
    yield Figure(group, f"UDP over {HOPS} hops, round-robin / first", "", samples[3])
    yield Figure(
        group, f"UDP over {HOPS} hops, hash for each packet / once, lines that never merge", "", samples[4]
    )
    yield Figure(group, f"UDP over {HOPS} hops, hash for each packet / once", "", samples[5], Target(2.0))
    yield Figure(group, "TCP dumbbell, hash for each packet / once", "", samples[6], Target(2.0))
