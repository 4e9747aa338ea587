"""The cost of a hop with more flows, more hops and more cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, Row, Target
from machine import KYOTO, ROOT, Tools, work
from ns3 import pace

from parts.cells import MESSAGE

COUNTS = ROOT / "crates/engpass-simulate/tests/counts/table.txt"


def flows(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure more flows through a bottleneck that they fill, and through a wider one."""
    group = "Scaling over flows: the dumbbell with SACK, each flow with hosts and links of its own"
    slow, fast = ((2, 100), (100, 1000)) if quick else ((2, 10, 100, 1000), (100, 1000, 10_000))
    seconds = 1 if quick else 10
    for count in slow:
        name = f"{count:,} flows, 155 Mbit/s, {seconds} s"
        runs = [tools.workload(f"dumbbell:{count}:sack", "simulate", 2, f"run.duration={seconds} s")]
        yield work(group, name, runs)
    many = None
    for count in fast:
        name = f"{count:,} flows, 10 Gbit/s, 1 s"
        runs = [tools.workload(f"dumbbell:{count}:sack:10000", "simulate", 1, "run.duration=1 s")]
        many = work(group, name, runs)
        yield many
    if many and many.flows >= 10_000:
        yield Figure(group, many.what, "s", many.samples, Target(2.0, pace=pace()))
    for count in (100,) if quick else (100, 10_000):
        name = f"{count:,} flows: reading the testbed, not counted above"
        short = [
            tools.workload(f"dumbbell:{count}:sack", "simulate", 1, "run.duration=1 ms") for _ in range(3)
        ]
        yield Figure(group, name, "s", [each["load_s"] for each in short])
    yield from _memory(group)


def _memory(group: str) -> Iterator[Row]:
    """Yield the bytes per flow that the count test recorded: exact, and equal on every machine."""
    text = COUNTS.read_text(encoding="utf-8").split("\nmemory: ")[1]
    for what, value in re.findall(r"^(flow .+?) +(\d+)$", text, re.MULTILINE):
        goal = Target(1024) if "idle" in what else None
        yield Figure(group, f"one {what}", "B", [int(value)], goal, note="counted")


def losses(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure losses with much data in flight, which makes acknowledgments expensive."""
    group = "Scaling over what is in the network: one flow, 10 Gbit/s, 50 ms, 2 s"
    file = str(ROOT / "benches/testbeds/long-fat.toml")
    kinds = {
        "linux-6 (CUBIC, RACK)": [],
        "CUBIC with SACK": ["host.a.tcp.recovery=sack", "host.b.tcp.recovery=sack"],
        "BBR": ["host.a.tcp.congestion=bbr"],
    }
    for name, settings in kinds.items():
        runs = [tools.workload(file, "simulate", 1 if quick else 2, *settings)]
        yield work(group, name, runs)


def hops(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure longer chains of links, with cells and with frames."""
    group = "Scaling over hops: lines on which every hop is shared, 1 s"
    for kind, name in (("line", "cells"), ("frames", "packets")):
        for count in (1, 3, 10) if quick else (1, 2, 3, 5, 10):
            times = 1 if quick else 3
            runs = [tools.workload(f"{kind}:{count}", "simulate", times, "run.duration=1 s")]
            yield work(group, f"{name}, {count} hop{'s' if count > 1 else ''}", runs)


def sources(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure sources whose packets arrive at the same instants."""
    group = "Scaling over sources in step: phones at a switch, 1 s"
    for count in (10, 1000) if quick else (10, 100, 1000, 5000):
        yield work(group, f"{count:,} phones", [tools.workload(f"phones:{count}", "simulate", 2)])


def cells(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure more cells: longer runs, and faster generators."""
    group = "Scaling over cells: duration and rate"
    for seconds in (1, 10) if quick else (1, 3, 10, 30):
        times = 1 if quick else 3
        runs = [tools.workload("line:3", "simulate", times, f"run.duration={seconds} s")]
        yield work(group, f"contended line of 3 hops, {seconds} s", runs)
    for rate in (10, 130) if quick else (10, 40, 70, 100, 130, 149):
        setting = f"traffic.interference.rate={rate} Mbit/s line"
        times = 1 if quick else 3
        runs = [tools.workload(str(Path(KYOTO)), "simulate", times, "congested", MESSAGE, setting)]
        yield work(group, f"Kyoto 9 kB, 10 s, {rate} Mbit/s of CBR beside it", runs)
