"""The cost of the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from figures import Figure, Row, Target
from machine import KYOTO, ROOT, Tools

from parts.cells import MESSAGE, UDP_VARIANTS


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure runs with and without the ledger, in turns."""
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
    for what, kind in (
        ("that send evenly", 'kind = "udp-stream"'),
        ("on and off", 'kind = "udp-on-off", on = "1 ms", off = "1 ms", lengths = "exponential"'),
    ):
        traffic = f'{{ {kind}, to = "to", message = "500 B", rate = "300 Mbit/s", from = '
        other = [
            "host.other={}",
            'link.other={ ends = ["other", "first"], medium = "ethernet-1g" }',
            f'traffic.stream={traffic}"from" }}',
            f'traffic.other={traffic}"other" }}',
        ]
        cases.append((f"two senders {what} on one line, 0.5 s", [lengths, *other]))
    writes = '{ kind = "tcp-stream", from = "from", to = "to", message = "700 B", rate = "25 Mbit/s" }'
    cases.append(
        ("TCP that writes 700 B at 25 Mbit/s, 5 s", [lengths, f"traffic.stream={writes}", "run.duration=5 s"])
    )
    for name, (workload, *rest) in cases:
        # Both runs of a turn are close in time, because a machine may be slower for seconds.
        ratios = []
        for _ in range(5 if quick else 25):
            booked, unbooked = (
                min(tools.workload(workload, engine, 4, *rest)["cpu_s"])
                for engine in ("simulate", "unbooked")
            )
            ratios.append(booked / unbooked)
        yield Figure(group, name, "", ratios, Target(1.15))
