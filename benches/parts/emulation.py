"""Real programs across the emulated network: how fast its driver is, and how exact."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from figures import Figure, Row, Skipped, Target
from hosts import why_not
from machine import Tools, run

GROUP = "Emulation: a driver between two hosts of this machine"
HEAVY = 'echo -20 2>/dev/null >/proc/self/autogroup; exec "$@"'


@dataclass(frozen=True)
class Asked:
    """A figure of a part of the program that measures."""

    part: str
    key: str
    what: str
    unit: str
    scale: float
    target: Target | None = None


# 64 B in UDP in IP in AAL5 with LLC/SNAP are three cells; a line of 149.76 Mbit/s has room for so many.
ATM = Target(0.98 * 117_736, at_least=True)
ASKED = (
    Asked("tcp-1500", "bit_per_s", "TCP, super-packets, MTU 1500", "bit/s", 1, Target(20e9, at_least=True)),
    Asked("tcp-1500", "cpu_s_a_gigabyte", "the same: CPU of the driver per GB", "s", 1),
    Asked("tcp-9000", "bit_per_s", "TCP, super-packets, MTU 9000", "bit/s", 1, Target(20e9, at_least=True)),
    Asked("tcp-9000", "cpu_s_a_gigabyte", "the same: CPU of the driver per GB", "s", 1),
    Asked("tcp-wire-true", "bit_per_s", "TCP, wire-true, MTU 1500", "bit/s", 1),
    Asked("packets-wire-true", "packets_per_s", "22 B, wire-true", "/s", 1, Target(2e5, at_least=True)),
    Asked("packets-wire-true", "cpu_ns_a_packet", "the same: CPU of the driver per packet", "s", 1e-9),
    Asked("packets-atm", "packets_per_s", "64 B over 155 Mbit/s ATM", "/s", 1, ATM),
    Asked("packets-atm", "cpu_ns_a_packet", "the same: CPU of the driver per packet", "s", 1e-9),
    Asked("round-trip-sleep", "veth_p50_us", "round trip over veth alone", "s", 1e-6),
    Asked("round-trip-sleep", "added_p50_us", "added to it, sleeping", "s", 1e-6, Target(40e-6)),
    Asked("round-trip-hybrid", "added_p50_us", "added to it, hybrid", "s", 1e-6),
    Asked("round-trip-spin", "added_p50_us", "added to it, spinning", "s", 1e-6, Target(16e-6)),
    Asked("release-sleep", "late_p99_ns", "release error sleeping, p99", "s", 1e-9, Target(60e-6)),
    Asked("release-spin", "late_p99_ns", "release error spinning, p99", "s", 1e-9, Target(1e-6)),
    Asked("idle", "cpu_share", "an idle testbed: share of a core", "", 1, Target(0.02)),
)


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """What gets through, what it costs, and how late it is."""
    why = why_not()
    if why:
        yield Skipped(GROUP, "the driver", why)
        return
    run(["cargo", "build", "--release", "--quiet", "-p", "engpass-live", "--example", "emulate_speed"])
    program = tools.target / "release/examples/emulate_speed"
    parts = list(dict.fromkeys(asked.part for asked in ASKED))
    found: dict[str, list[dict[str, Any]]] = {}
    for _ in range(1 if quick else 3):
        # The scheduler groups processes by sessions: one with the most weight, for others may be at work.
        said = run(["setsid", "--wait", "sh", "-c", HEAVY, "-", program, "1", *parts])
        for line in said.output.splitlines():
            result = json.loads(line)
            found.setdefault(result["part"], []).append(result)
    for asked in ASKED:
        samples = [float(result[asked.key]) * asked.scale for result in found[asked.part]]
        yield Figure(GROUP, asked.what, asked.unit, samples, asked.target)
