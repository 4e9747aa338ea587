"""Real programs across the emulated network: speed and timing accuracy of the driver."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import Figure, Row, Skipped, Target, quantity
from hosts import why_not
from machine import HEAVY, Tools, floor, run

GROUP = "Emulation: a driver between two hosts of this machine"


@dataclass(frozen=True)
class Asked:
    """A figure that one part of `emulate_speed` reports."""

    part: str
    key: str
    what: str
    unit: str
    scale: float
    target: Target | None = None


# 64 B in UDP, IP and AAL5 with LLC/SNAP take three cells; a line of 149.76 Mbit/s has room for 117,736/s.
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
    Asked("idle", "cpu_share", "an idle testbed: share of a core", "", 1, Target(0.02)),
)


# Figures that the baseline program also has: its part, and the target as a share of its result. That was
# 43.3 Gbit/s of TCP and 250 k/s of packets between two TUN devices on the reference machine of the targets.
BESIDE: dict[tuple[str, str], tuple[str, Target | None]] = {
    ("tcp-1500", "bit_per_s"): ("floor-tcp-1500", Target(20 / 43.3, at_least=True)),
    ("packets-wire-true", "packets_per_s"): ("floor-packets", Target(0.8, at_least=True)),
    # The line is the limit here, not the program, so there is no target.
    ("packets-atm", "packets_per_s"): ("floor-packets", None),
    ("round-trip-sleep", "added_p50_us"): ("floor-round-trip", None),
}

# By kind of waiting: its name, the target of the 99th percentile of lateness on a quiet machine, and the same
# percentile of a thread that only waits, on the reference machine of the targets. The latter was measured at
# instants in step with the kernel's tick, and is therefore too optimistic.
RELEASES = {"sleep": ("sleeping", 60e-6, 57e-6), "spin": ("spinning", 1e-6, 0.05e-6)}


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure throughput, CPU cost and lateness of the driver and of the baseline program, in turns."""
    why = why_not()
    if why:
        yield Skipped(GROUP, "the driver", why)
        return
    run(["cargo", "build", "--release", "--quiet", "-p", "engpass-live", "--example", "emulate_speed"])
    program = tools.target / "release/examples/emulate_speed"
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as directory:
        beside = floor(directory)
        for _ in range(1 if quick else 3):
            for part, result in _round(program, beside):
                found.setdefault(part, []).append(result)
        for clock in RELEASES:
            yield from _released(clock, program, beside, 2 if quick else 10)
    for asked in ASKED:
        samples = [float(result[asked.key]) * asked.scale for result in found[asked.part]]
        yield Figure(GROUP, asked.what, asked.unit, samples, asked.target)
    if beside is None:
        yield Skipped(GROUP, "the simplest program", "there is no C compiler: none of `cc`, `gcc`, `clang`")
        return
    for asked in ASKED:
        if (asked.part, asked.key) not in BESIDE:
            continue
        other, target = BESIDE[asked.part, asked.key]
        ours, theirs = (
            statistics.median(float(result[asked.key]) * asked.scale for result in found[name])
            for name in (asked.part, other)
        )
        note = f"{quantity(ours, asked.unit)} to {quantity(theirs, asked.unit)}"
        what = f"share of the simplest program's: {asked.what}"
        yield Figure(GROUP, what, "", [ours / theirs], target, note)


def _round(program: Path, beside: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run every part once."""
    parts = [asked.part for asked in ASKED]
    environment: list[str | Path] = ["env"]
    if beside:
        parts += [other for other, _ in BESIDE.values()]
        environment.append(f"ENGPASS_FLOOR={beside}")
    for line in run([*environment, *HEAVY, program, "1", *dict.fromkeys(parts)]).output.splitlines():
        result = json.loads(line)
        yield result["part"], result


def _released(clock: str, program: Path, beside: Path | None, turns: int) -> Iterator[Row]:
    """Measure the p99 lateness of packets and of a thread that only waits, in turns of one second."""
    name, wanted, best = RELEASES[clock]
    ours, alone = [], []
    for _ in range(turns):
        result = json.loads(run([*HEAVY, program, "1", f"release-{clock}"]).output)
        ours.append(float(result["late_p99_ns"]) * 1e-9)
        if beside:
            late = run([*HEAVY, beside, "late", clock, "1", "250000"]).output.split()
            alone.append(float(late[1]) * 1e-9)
    what = f"release error {name}, p99"
    within = [sum(late <= wanted for late in lates) for lates in (ours, alone)]
    note = f"within {quantity(wanted, 's')} in {within[0]} of {turns} seconds"
    yield Figure(GROUP, what, "s", ours, Target(wanted), note)
    if alone:
        note = f"within {quantity(wanted, 's')} in {within[1]} of {turns} seconds"
        yield Figure(GROUP, f"lateness of a thread that only waits, {name}, p99", "s", alone, None, note)
        share = statistics.median(ours) / statistics.median(alone)
        yield Figure(GROUP, f"share of that thread's: {what}", "", [share], Target(wanted / best))
