"""Cells: the contended line in both engines, and points of the Kyoto study."""

from __future__ import annotations

from collections.abc import Iterator

from figures import Figure, Row, Target
from machine import KYOTO, BenchError, Tools, work

UDP_VARIANTS = ("free", "congested", "shaped-16", "shaped-18")
MESSAGE = "traffic.stream.message=9 kB"


def line(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure the contended line in both engines, which must lose the same cells."""
    group = "Contended line: 3 hops of OC-3c, on-off cross traffic, 512-cell buffers"
    piece = "run.duration=" + ("200 ms" if quick else "1 s")
    oracle, trains, whole = [], [], []
    for _ in range(1 if quick else 3):
        oracle.append(tools.workload("line:3", "oracle", 1, piece))
        trains.append(tools.workload("line:3", "simulate", 3, piece))
        whole.append(tools.workload("line:3", "simulate", 1 if quick else 3))
    if any(oracle[0][key] != trains[0][key] for key in ("sent", "lost", "received")):
        raise BenchError(f"the engines differ:\noracle   {oracle[0]}\nsimulate {trains[0]}")
    short = f"{oracle[0]['simulated_s']:g} s"
    ten = work(group, "simulate, 10 s", whole)
    one = work(group, f"simulate, {short}", trains)
    slow = work(group, f"oracle, {short}", oracle)
    yield from (ten, one, slow)
    least = min(slow.samples) / min(one.samples)
    yield Figure(group, f"oracle / simulate, {short}, least times", "", [least], Target(20.0, at_least=True))
    yield Figure(group, "cells lost, in both", "", [oracle[0]["lost"]], note=f"of {slow.hops:,}")


def kyoto(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure single points of the Kyoto study."""
    group = "One point of the Kyoto study: 9 kB, 10 s"
    cases: list[tuple[str, list[str]]] = [(variant, []) for variant in UDP_VARIANTS]
    cases.append(("congested", ["switch.atomis5.schedule=fifo"]))
    for variant, more in cases:
        name = f"{variant}, {'fifo' if more else 'priority'}"
        times = 1 if quick else 5
        yield work(group, name, [tools.workload(KYOTO, "simulate", times, variant, MESSAGE, *more)])
    # The study's TCP, with profiles of 1995, is in the testbed of the gallery.
    stack = ["traffic.stream.kind=tcp-stream", 'host.ss2.tcp={ profile = "solaris-2.5" }']
    for variant in ("free", "congested"):
        times = 1 if quick else 5
        runs = [tools.workload(KYOTO, "simulate", times, variant, MESSAGE, *stack)]
        yield work(group, f"{variant}, priority, TCP", runs)
