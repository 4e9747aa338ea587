"""Invented reports of probes, for tests of their pages and tables: nothing was measured."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from engpass import _engpass
from engpass.probe import Probed
from engpass.types.probe import (
    Bandwidths,
    Basis,
    Ceiling,
    Device,
    Gpu,
    GpuSection,
    Link,
    Point,
    PointSection,
    Report,
    Roofline,
    Sending,
    Spread,
    Stream,
    StreamSection,
    Timer,
    Verdict,
)
from engpass.views.probe import KERNELS


def full(report: Report) -> Report:
    """Add an adapter, a GPU and sockets to a report."""
    spread = Spread(least=1e9, median=2e9, best=3e9)
    link = Link(
        gigatransfers=8.0,
        generation=3,
        lanes=8,
        bytes_per_s=7.88e9,
        payload_per_s=7.1e9,
        below_its_best=True,
    )
    gpu = Gpu(
        name="Some GPU",
        address="0",
        bytes=1,
        pinned_to=spread,
        pinned_from=spread,
        pageable_to=spread,
        pageable_from=spread,
    )
    ways: tuple[Sending, ...] = ("copy", "sendfile", "zerocopy")
    sockets = [
        Stream(
            sending=sending,
            receiving="copy",
            message=131072,
            rate=spread,
            send_cpu=0.1,
            receive_cpu=0.1,
            cpus=[[0.1, 0.1]],
            copied=1.0 if sending == "zerocopy" else None,
            congestion="cubic",
        )
        for sending in ways
    ]
    ceilings = [
        Ceiling(path="one-copy-pipelined", from_memory=4e9, from_cache=8e9),
        Ceiling(path="sendfile", from_memory=7e9, from_cache=9e9),
        Ceiling(path="ktls"),
    ]
    over_buses = [
        Roofline(bus=bus, ceilings=[replace(ceilings[0], from_memory=min(bus, 4e9))])
        for bus in (1e9, 4e9, 32e9)
    ]
    verdict = Verdict(
        what="the copy of `send`",
        predicted=0.05,
        measured=0.2,
        unit="s/GB",
        between=[0.15, 0.3],
        rule="within a factor of 2",
        outcome="fails",
    )
    unsure = replace(verdict, what="the copy of `recv`", between=[0.01, 0.3], outcome="not_told_apart")
    figures = {"copy": False, "copy_cached": True, "memory_all": True}
    return replace(
        report,
        bandwidths=Bandwidths(
            memory_one=8e9,
            memory_all=12e9,
            copy=4e9,
            copy_cached=2e10,
            checksum=5e9,
            checksum_cached=1e10,
            cached_bytes=8192,
            cache_bytes=16384,
            memory_bytes=1 << 20,
        ),
        devices=[
            Device(kind="network", name="eth0", driver="x", link=link),
            Device(kind="nvme", name="nvme0", driver="x", why="no <link>"),
        ],
        gpus=GpuSection(measured=[gpu]),
        sockets=StreamSection(measured=sockets),
        rooflines=[Roofline(ceilings=ceilings)],
        over_buses=over_buses,
        others=0.25,
        verdicts=[verdict, unsure],
        basis=[
            Basis(figure=figure, kernel="copy-string", bytes=8192, threads=1, confirmed=sure)
            for figure, sure in figures.items()
        ],
    )


def probed(report: Report) -> Probed:
    return Probed("a <host>", "today", report, "[host.a]\n")


def with_threads() -> Report:
    """A host measured with four threads over several working sets, with the kernels that are drawn."""

    def rate(value: float) -> Spread:
        return Spread(least=value, median=value, best=value)

    points = [
        Point(
            kernel=kernel,
            bytes=8192 << (2 * step),
            threads=threads,
            rate=rate(2e11 * threads / (number + 2) / 4**step),
            visits=3,
            confirmed=step % 2 == 0,
        )
        for threads in (1, 4)
        for number, (kernel, _) in enumerate(KERNELS)
        for step in range(6)
    ]
    empty = msgspec.json.decode(_engpass.Probe(True, "/nowhere").report(), type=Report)
    timer = Timer(
        reading=20.0,
        resolution=1,
        system_call=100.0,
        late_half=50_000,
        late_99=60_000,
        late_most=70_000,
        longest_gap=8_000,
        stolen=0.0,
    )
    return replace(full(replace(empty, timer=timer)), memory=PointSection(measured=points))
