"""A probe of a host: memory, data paths, sockets, the copy model, other results."""

from __future__ import annotations

from engpass.formatting import byte_rate, size
from engpass.probe import FIGURES, OUTCOMES, Probed, facts, measured, predicted, sockets
from engpass.show.blocks import Block, Cell, Column, Fact, Facts, Marked, Prose, Table, columns
from engpass.types.probe import CacheLevel, Kernel, Report

KERNELS: tuple[tuple[Kernel, str], ...] = (
    ("read", "read"),
    ("write", "write"),
    ("write-non-temporal", "write past the caches"),
    ("copy-library", "copy: memcpy"),
    ("copy-non-temporal", "copy past the caches"),
    ("copy-string", "copy: rep movsb"),
    ("checksum", "Internet checksum"),
)
"""The memory kernels that are drawn, with labels; as many as there are marker shapes."""

_NAMES: dict[Kernel, str] = dict(KERNELS) | {
    "copy-vector": "copy: vectors",
    "copy-words": "copy: 64 bits at a time",
}


def view(made: Probed) -> list[Block]:
    """All measurements, and the reason for each that is missing."""
    data = made.data
    tables = [memory(data), *paths(data), streams(data), packets(data)]
    return [*tables, *verdicts(data), rest(data), Prose(made.sentence)]


def host(data: Report) -> Facts:
    """The host that was measured."""
    known = data.host
    caches = ", ".join(f"L{one.level} {size(one.bytes)}" for one in data_caches(data))
    entries = {
        "processor": known.cpu,
        "CPUs": known.cpus,
        "vector width": data.width,
        "data caches": caches,
        "memory": size(known.memory_bytes),
        "kernel": known.kernel,
        "clock": known.clock_source,
        "virtual machine": "yes" if known.virtual_machine else "no",
        "load at the start": known.load,
    }
    return Facts([Fact(name, str(value)) for name, value in entries.items()])


def data_caches(data: Report) -> list[CacheLevel]:
    """The caches that hold data."""
    return [one for one in data.host.caches if one.kind != "Instruction"]


def memory(data: Report) -> Block:
    """The best rate of each kernel by array and number of threads."""
    points = data.memory.measured
    if points is None:
        return Prose(f"memory: not measured: {data.memory.not_measured}")
    kernels = list(dict.fromkeys(point.kernel for point in points))
    lines: dict[tuple[int, int], dict[Kernel, str]] = {}
    for point in points:
        said = f"{point.rate.best / 1e9:.1f}{'' if point.confirmed else '?'}"
        lines.setdefault((point.threads, point.bytes), {})[point.kernel] = said
    rows = [
        [size(count), str(threads), *(found.get(kernel, "") for kernel in kernels)]
        for (threads, count), found in lines.items()
    ]
    title = "Memory, best rate in GB/s (?: not confirmed within 3 % by a second measurement)"
    return Table(title, columns("Array", "Threads", *kernels, left=0), rows)


def points(data: Report) -> Table:
    """All measured points of the memory."""
    rows = [
        [
            _NAMES[point.kernel],
            size(point.bytes),
            str(point.threads),
            *(f"{rate / 1e9:.2f}" for rate in (point.rate.best, point.rate.median, point.rate.least)),
            str(point.visits),
            "yes" if point.confirmed else "no",
        ]
        for point in data.memory.measured or []
    ]
    heads = ("Operation", "Array", "Threads", "Max, GB/s", "Median, GB/s", "Min, GB/s", "Measurements")
    return Table("All points", [*columns(*heads), Column("Confirmed")], rows)


def figures(data: Report) -> Table:
    """The figures for the model, and the point from which each is taken."""
    rows: list[list[Cell]] = [
        [
            FIGURES[one.figure],
            byte_rate(getattr(data.bandwidths, one.figure)),
            _NAMES[one.kernel],
            size(one.bytes),
            str(one.threads),
            Marked("✓ confirmed", "good") if one.confirmed else Marked("✗ not confirmed", "bad"),
        ]
        for one in data.basis
    ]
    heads = ("Figure", "Rate", "Taken from", "Array", "Threads", "Second measurement within 3 %")
    aligned = [Column(head, right=place in (1, 3, 4)) for place, head in enumerate(heads)]
    return Table("Figures for the model", aligned, rows)


def paths(data: Report) -> list[Table]:
    """The upper limit of each data path, over memory alone and over the bus of each device."""
    tables = []
    for roofline in data.rooflines:
        rows = [
            [
                ceiling.path,
                *(
                    "not measured" if rate is None else byte_rate(rate)
                    for rate in (ceiling.from_memory, ceiling.from_cache)
                ),
            ]
            for ceiling in roofline.ceilings
        ]
        over = "memory only" if roofline.device is None else roofline.device
        heads = columns("Data path", "from memory", "from the cache")
        tables.append(Table(f"Upper limit of each data path, {over}", heads, rows))
    return tables


def streams(data: Report) -> Table:
    """TCP over loopback: rates and CPU times."""
    found = data.sockets.measured or []
    controls = ", ".join(dict.fromkeys(one.congestion for one in found))
    rows: list[list[Cell]] = [
        [
            sockets(one),
            byte_rate(one.rate.median),
            f"{one.send_cpu:.3f}",
            f"{one.receive_cpu:.3f}",
            "" if one.copied is None else f"{100 * one.copied:.0f} %",
        ]
        for one in found
    ]
    heads = ("TCP over loopback", "Median rate", "Sender, s/GB", "Receiver, s/GB", "Copied anyway")
    notes = [f"128 KiB per call, congestion control {controls}"]
    return Table("Sockets", columns(*heads), rows, notes)


def packets(data: Report) -> Table:
    """Datagrams over loopback."""
    rows: list[list[Cell]] = [
        [one.calls, f"{one.sent:,.0f}", f"{one.received:,.0f}", f"{one.cpu_us:.2f}"]
        for one in data.packets.measured or []
    ]
    return Table("Packets", columns("Datagrams of 64 B", "sent/s", "received/s", "CPU, us/packet"), rows)


def verdicts(data: Report) -> list[Block]:
    """The copy model compared with the sockets."""
    rows: list[list[Cell]] = [
        [one.what, predicted(one), measured(one), one.rule, _VERDICTS[one.outcome]] for one in data.verdicts
    ]
    if not rows:
        why = data.sockets.not_measured or "the memory was not measured"
        return [Prose(f"the copy model is not compared with sockets: {why}")]
    heads = columns("Prediction", "Model", "Measured", "Rule", "Verdict")
    return [Table("The copy model compared with these sockets", heads, rows), Prose(data.leaves_out)]


_VERDICTS = {
    "holds": Marked(f"✓ {OUTCOMES['holds']}", "good"),
    "fails": Marked(f"✗ {OUTCOMES['fails']}", "bad"),
    "not_told_apart": Marked(f"? {OUTCOMES['not_told_apart']}", "muted"),
}


def rest(data: Report) -> Table:
    """Clock, kernel, devices."""
    return Table("Other results", columns("Item", "Value", left=2), facts(data))
