"""The dumbbell in Engpass and in ns-3, in turns."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from figures import Beside, Figure, Row, Skipped, Target, Work
from machine import Tools, work
from ns3 import REFERENCE_S, NotThereError, Ns3

TARGETS_S = {10: 0.015, 100: 0.025}
# With 100 flows the target is 25 ms for the whole run, which is 40 ns a hop. There is no target per hop.
A_HOP_S = {2: 25e-9, 10: 25e-9}
FLOWS = (2, 10, 100)
TCP = ("sack", "new-reno")


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure the times of both, and compare what they simulate."""
    seconds = 1 if quick else 10
    group = f"TCP dumbbell, {seconds} s: 155 Mbit/s, round trip of 10 ms, queue of 200 packets"
    try:
        ns3 = Ns3.ready()
    except NotThereError as error:
        yield Skipped(group, "ns-3", str(error))
        ns3 = None
    works: list[Work] = []
    figures: list[Row] = []
    beside: list[Row] = []
    runs: dict[tuple[int, str], list[dict[str, Any]]] = defaultdict(list)
    # All workloads in turns, several times: a machine may be slower for a minute.
    for _ in range(1 if quick else 5):
        for flows in FLOWS:
            for tcp in TCP:
                duration = f"run.duration={seconds} s"
                times = 1 if quick else 4
                workload = f"dumbbell:{flows}:{tcp}"
                runs[flows, tcp].append(tools.workload(workload, "simulate", times, duration))
            if ns3:
                runs[flows, "ns-3"].append(ns3.run(flows, seconds))
    for flows in FLOWS:
        sack, new_reno = (
            work(group, f"{flows} flows, {name}", runs[flows, tcp])
            for tcp, name in (("sack", "SACK"), ("new-reno", "NewReno"))
        )
        works += [sack, new_reno]
        pace = None
        if ns3 and not quick:
            pace = statistics.median(each["cpu_s"] for each in runs[flows, "ns-3"]) / REFERENCE_S[flows]
            figures.append(Figure(group, f"{flows} flows: this machine's pace", "", [pace]))
        if flows in TARGETS_S and not quick:
            goal = Target(TARGETS_S[flows], pace=pace)
            figures.append(Figure(group, f"{flows} flows, SACK", "s", sack.samples, goal))
        per_hop = [sample / sack.hops for sample in sack.samples]
        a_hop = Target(A_HOP_S[flows], pace=pace) if flows in A_HOP_S else None
        figures.append(Figure(group, f"{flows} flows, SACK, a hop", "s", per_hop, a_hop))
        if ns3:
            # Counting hops takes time, so this run is not timed. ns-3 simulates the same in every run.
            counted = ns3.run(flows, seconds, count=True)
            theirs = Work(
                group,
                f"{flows} flows, ns-3 {ns3.version}",
                [each["cpu_s"] for each in runs[flows, "ns-3"]],
                counted["hops"],
                counted["events"],
                counted["peak_kib"] * 1024,
            )
            works.append(theirs)
            ratio = min(theirs.samples) / min(sack.samples)
            figures.append(
                Figure(group, f"{flows} flows, ns-3 / Engpass with SACK, least times", "", [ratio])
            )
            beside += _beside(group, f"{flows} flows", runs[flows, "sack"][0], counted, f"ns-3 {ns3.version}")
    yield from works
    yield from figures
    yield from beside


def _beside(
    group: str, flows: str, ours: dict[str, Any], theirs: dict[str, Any], other: str
) -> Iterator[Row]:
    """Compare what both simulate. Drops and fairness may differ: they depend on which packets are lost."""
    for what, unit, our, their in (
        ("packets over links", "", "sent", "hops"),
        ("lost at the bottleneck", "", "lost", "drops"),
        ("goodput of all", "bit/s", "goodput_bit_per_s", "goodput_bit_per_s"),
        ("Jain's index", "", "jain", "jain"),
    ):
        yield Beside(group, f"{flows}, SACK: {what}", unit, ours[our], other, theirs[their])
