"""Tables of a host probe, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from engpass.formatting import byte_rate, size
from engpass.probe import OUTCOMES, Probed, facts, measured, predicted, sockets

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.types.probe import Kernel, Report


def show(made: Probed, out: Console) -> None:
    """Print all measurements, and the reason for each that is missing."""
    data = made.data
    _memory(data, out)
    _paths(data, out)
    _sockets(data, out)
    _verdicts(data, out)
    _rest(data, out)
    out.print(made.sentence, markup=False, soft_wrap=True)


def _table(out: Console, title: str, head: Sequence[str], rows: Sequence[Sequence[str]], right: int) -> None:
    """Print a table; the columns from index `right` on are right-aligned."""
    from rich.table import Table

    if not rows:
        return
    table = Table(title=title, title_justify="left", title_style="bold")
    for index, name in enumerate(head):
        table.add_column(name, justify="right" if index >= right else "left")
    for row in rows:
        table.add_row(*row)
    out.print(table)
    out.print()


def _memory(data: Report, out: Console) -> None:
    points = data.memory.measured
    if points is None:
        out.print(f"memory: not measured: {data.memory.not_measured}", markup=False)
        return
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
    _table(out, title, ["Array", "Threads", *kernels], rows, 0)


def _paths(data: Report, out: Console) -> None:
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
        title = f"Upper limit of each data path, {over}"
        _table(out, title, ["Data path", "from memory", "from the cache"], rows, 1)


def _sockets(data: Report, out: Console) -> None:
    rows = [
        [
            sockets(one),
            byte_rate(one.rate.median),
            f"{one.send_cpu:.3f}",
            f"{one.receive_cpu:.3f}",
            "" if one.copied is None else f"{100 * one.copied:.0f} %",
        ]
        for one in data.sockets.measured or []
    ]
    head = ["TCP over loopback", "Median rate", "Sender, s/GB", "Receiver, s/GB", "Copied anyway"]
    _table(out, "Sockets", head, rows, 1)
    rows = [
        [packets.calls, f"{packets.sent:,.0f}", f"{packets.received:,.0f}", f"{packets.cpu_us:.2f}"]
        for packets in data.packets.measured or []
    ]
    head = ["Datagrams of 64 B", "sent/s", "received/s", "CPU, us/packet"]
    _table(out, "Packets", head, rows, 1)


def _verdicts(data: Report, out: Console) -> None:
    rows = [
        [one.what, predicted(one), measured(one), one.rule, OUTCOMES[one.outcome]] for one in data.verdicts
    ]
    head = ["Prediction", "Model", "Measured", "Rule", "Verdict"]
    _table(out, "The copy model compared with these sockets", head, rows, 1)
    if rows:
        out.print(data.leaves_out + "\n", markup=False, soft_wrap=True)


def _rest(data: Report, out: Console) -> None:
    rows = [[name, value] for name, value in facts(data)]
    _table(out, "Other results", ["Item", "Value"], rows, 2)
