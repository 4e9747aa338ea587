"""What the ledger costs."""

from __future__ import annotations

from collections.abc import Iterator

from figures import Figure, Row, Target
from machine import KYOTO, ROOT, Tools

from parts.cells import MESSAGE, UDP_VARIANTS


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Runs with it and without, in turns."""
    group = "Cost of the ledger: a run with it against one without, in turns"
    cases: list[tuple[str, list[str]]] = [
        (f"Kyoto, {variant}, {schedule}", [KYOTO, variant, MESSAGE, f"switch.atomis5.schedule={schedule}"])
        for variant, schedule in [(variant, "priority") for variant in UDP_VARIANTS] + [("congested", "fifo")]
    ]
    cases.append(("contended line, 3 hops, 0.5 s", ["line:3", "run.duration=500 ms"]))
    cases.append(("ten TCP flows, 0.5 s", ["dumbbell:10:sack", "run.duration=500 ms"]))
    cases.append(("ten TCP flows, 10 s", ["dumbbell:10:sack"]))
    cases.append(("UDP over 3 hops of routers, 0.5 s", ["frames:3", "run.duration=500 ms"]))
    lengths = str(ROOT / "benches/testbeds/lengths.toml")
    cases.append(("UDP of random lengths, 500 B, 0.5 s", [lengths]))
    longer = "traffic.stream.message=3000 B"
    cases.append(("UDP of random lengths, 3 kB in fragments, 0.5 s", [lengths, longer]))
    routers = ["link.in.mtu=9000 B", "link.out.mtu=576 B"]
    cases.append(("the same, cut by routers for 1,500 and 576 B, 0.5 s", [lengths, longer, *routers]))
    for name, (workload, *rest) in cases:
        # The two of a turn are near each other: a machine may be slower for seconds.
        ratios = []
        for _ in range(5 if quick else 25):
            booked, unbooked = (
                min(tools.workload(workload, engine, 4, *rest)["cpu_s"])
                for engine in ("simulate", "unbooked")
            )
            ratios.append(booked / unbooked)
        yield Figure(group, name, "", ratios, Target(1.15))
