"""Real traffic between two namespaces: the agents compared with iperf3 and nuttcp, in turns."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from figures import Figure, Row, Skipped, Target
from hosts import SECOND, Hosts, Sample, peers, why_not
from machine import ENGPASS, HEAVY, ROOT, BenchError, Tools, floor, run

GROUP = "Live traffic over a veth pair"
CUBIC = {"socket": {"congestion": "cubic"}}
PACED = {"schedule": {"kind": "cbr", "rate_bit_per_s": 100_000_000}}


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure throughput and CPU time against the best other tool, and pacing."""
    why = why_not()
    if why:
        yield Skipped(GROUP, "live traffic", why)
        return
    run(["cargo", "build", "--release", "--quiet", "-p", "engpass-live", "--bin", "engpass-agent"])
    program: Path = tools.target / "release/engpass-agent"
    times, seconds = (3, 1.0) if quick else (5, 2.0)
    others = peers()
    with Hosts.up(program) as hosts:
        if others:
            for message in (1024, 8192, 65_536, 131_072):
                yield from _tcp(hosts, hosts.comparable(others), message, times, seconds)
            yield from _udp(hosts, others, times, seconds)
        else:
            yield Skipped(GROUP, "comparison", "neither iperf3 nor nuttcp is installed")
        yield from _segmented(hosts, times, seconds)
        with tempfile.TemporaryDirectory() as directory:
            beside = floor(directory)
            for pacing, most in (("busy", 2e-6), ("hybrid", 8e-6)):
                yield from _paced(hosts, pacing, most, times, seconds, beside if pacing == "busy" else None)
    if not quick:
        yield _sweep()


def _sweep() -> Row:
    """Measure the control overhead of a campaign with points of one second."""
    with tempfile.TemporaryDirectory() as directory:
        store = ["--store", f"{directory}/engpass.db", "--engine", "measure", "--repeats", "1", "--json"]
        ended = run([ENGPASS, "run", ROOT / "benches/testbeds/live.toml", *store])
    points = len(ended.output.splitlines())
    if points != 64:
        raise BenchError(f"the campaign gave {points} outcomes, not 64")
    return Figure(GROUP, "a sweep of 64 points of 1 s", "s", [ended.wall_s], Target(70.0))


def _turns(
    others: list[str], times: int, ours: Callable[[], Sample], theirs: Callable[[str], Sample]
) -> tuple[list[Sample], dict[str, list[Sample]]]:
    own: list[Sample] = []
    other: dict[str, list[Sample]] = {name: [] for name in others}
    for _ in range(times):
        own.append(ours())
        for name in others:
            other[name].append(theirs(name))
    return own, other


def _best(samples: dict[str, list[Sample]], of: Callable[[Sample], float], least: bool) -> tuple[str, float]:
    medians = {name: statistics.median(map(of, runs)) for name, runs in samples.items()}
    name = (min if least else max)(medians, key=lambda name: medians[name])
    return name, medians[name]


def _tcp(hosts: Hosts, others: list[str], message: int, times: int, seconds: float) -> Iterator[Row]:
    own, other = _turns(
        *(others, times),
        lambda: hosts.engpass("tcp-stream", message, seconds, **CUBIC),
        lambda name: getattr(hosts, name)("tcp-stream", message, seconds),
    )
    what = f"TCP {message // 1024} KiB"
    if not others:
        rates, cpu = [sample.bit_per_s for sample in own], [sample.cpu_s_per_gb for sample in own]
        yield Figure(GROUP, what, "bit/s", rates)
        yield Figure(GROUP, f"{what}, CPU per GB", "s", cpu)
        return
    name, best = _best(other, lambda sample: sample.bit_per_s, least=False)
    rates = [sample.bit_per_s for sample in own]
    yield Figure(GROUP, f"{what}, target: {name}", "bit/s", rates, Target(best, at_least=True))
    name, best = _best(other, lambda sample: sample.cpu_s_per_gb, least=True)
    # Below 8 KiB every write is a packet with every tool.
    target = Target(best) if message >= 8192 else None
    yield Figure(GROUP, f"{what}, CPU per GB, target: {name}", "s", [s.cpu_s_per_gb for s in own], target)


def _udp(hosts: Hosts, others: list[str], times: int, seconds: float) -> Iterator[Row]:
    own, other = _turns(
        *(others, times),
        lambda: hosts.engpass("udp-stream", 64, seconds),
        lambda name: getattr(hosts, name)("udp-stream", 64, seconds),
    )
    name, best = _best(other, lambda sample: sample.packets_per_s, least=False)
    rates = [sample.packets_per_s for sample in own]
    target = Target(1.1 * best, at_least=True)
    yield Figure(GROUP, f"UDP 64 B received, target: 1.1 of {name}", "/s", rates, target)
    yield Figure(GROUP, "UDP 64 B, share received", "", [1 - s.lost for s in own], Target(1.0, at_least=True))


def _segmented(hosts: Hosts, times: int, seconds: float) -> Iterator[Row]:
    runs = [hosts.engpass("udp-stream", 64, seconds, segmentation=True) for _ in range(times)]
    rates = [sample.packets_per_s for sample in runs]
    yield Figure(GROUP, "UDP 64 B segmented by the kernel", "/s", rates, Target(15e6, at_least=True))
    yield Figure(
        GROUP, "the same, share received", "", [1 - s.lost for s in runs], Target(1.0, at_least=True)
    )


def _paced(
    hosts: Hosts, pacing: str, most: float, times: int, seconds: float, beside: Path | None
) -> Iterator[Row]:
    flow = {"kind": "udp-stream", "message_bytes": 1472, "pacing": pacing, **PACED}
    runs, alone = [], []
    for _ in range(times):
        runs.append(hosts.run(seconds, **flow))
        if beside:
            # In turns with a thread that only spins from instant to instant.
            late: list[str | Path] = [*HEAVY, beside, "late", "spin", str(max(1, round(seconds))), "117760"]
            alone.append(float(run(late).output.split()[3]) / SECOND)
    deviations = [got["gaps"]["sd_ns"] / SECOND for _, got in runs]
    what = f"100 Mbit/s of 1472 B, {pacing}"
    yield Figure(GROUP, f"{what}: deviation of the gap", "s", deviations, Target(most))
    if alone:
        yield Figure(GROUP, f"{what}: deviation of the gaps of a thread that only spins", "s", alone)
        share = statistics.median(deviations) / statistics.median(alone)
        yield Figure(GROUP, f"{what}: deviation of the gap, to that one's", "", [share])
    # Statistics that a few stalls do not change, and the causes of the stalls: docs/measure.md, pacing.
    for key, word in (("mad_ns", "median deviation of the gap"), ("p999_ns", "p99.9 of the gap")):
        yield Figure(GROUP, f"{what}: {word}", "s", [got["gaps"][key] / SECOND for _, got in runs])
    worst = [float(got["gaps"]["worst_ms"]) for _, got in runs]
    yield Figure(GROUP, f"{what}: datagrams in the fullest millisecond", "", worst)
    stalls = [sent["pacing"]["stalls"] for sent, _ in runs if "stalls" in sent["pacing"]]
    causes = (("waited", "other threads"), ("stolen", "the hypervisor"), ("kernel", "the kernel"))
    for cause, who in causes if stalls else ():
        shares = [stall[cause]["squares_ppm"] / 1e6 for stall in stalls]
        yield Figure(GROUP, f"{what}: share of the stalls' squares that was {who}'s", "", shares)
    ideal = 1472 * 8 / 100_000_000
    errors = [abs(got["gaps"]["mean_ns"] / SECOND / ideal - 1) for _, got in runs]
    yield Figure(GROUP, f"{what}: error of the mean", "", errors, Target(1e-3))
    cores = [(s["cpu"]["user_ns"] + s["cpu"]["system_ns"]) / s["elapsed_ns"] for s, _ in runs]
    yield Figure(GROUP, f"{what}: cores of the sender", "", cores, Target(1.0 if pacing == "busy" else 0.5))
