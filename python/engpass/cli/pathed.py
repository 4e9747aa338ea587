"""What was found of a path, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from engpass.cli.tables import grid, plain
from engpass.say import duration, percent, rate

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.store import SearchRecord


def show(record: SearchRecord, out: Console) -> None:
    """The path, and TCP over it; every figure with the section of RFC 6349 that it comes from."""
    result = record.result
    if result is None:
        out.print(Text("it has not ended"))
        return
    ends = f"{record.settings['from']} → {record.settings['to']}"
    known = "given" if result["bandwidth_known"] else "of IP packets"
    rows = [
        ("path MTU", f"{result['mtu_bytes']:,} B", "RFC 6349 section 3.1"),
        ("baseline round trip", duration(result["rtt_s"]), "section 3.2.1, the least"),
        ("bottleneck bandwidth", rate(result["bandwidth_bit_per_s"]), f"section 3.2.2, {known}"),
        ("bandwidth-delay product", f"{result['bdp_bytes']:,.0f} B", "section 3.3.1"),
        ("ideal TCP throughput", rate(result["ideal_bit_per_s"]), "section 4.1.1"),
    ]
    table = Table.grid(padding=(0, 2))
    for name, value, source in rows:
        table.add_row(Text(name, style="bold"), Text(value), Text(source))
    out.print(Text(f"path {ends}", style="bold"))
    out.print(table)
    out.print(_transfers(record))
    if invalid := result.get("invalid_runs"):
        text = f"invalid: the emulated network was too late in {invalid} of the runs"
        out.print(Text(f"{text}; what was found is not the path's", style="bold"))
    asked, tried = len(record.settings["fractions"]), len(result["transfers"])
    if tried < asked:
        out.print(
            Text(f"{asked - tried} smaller windows are not tried: they would be less than two segments")
        )
    for departure in result.get("departures", []):
        out.print(Text(f"not conforming: {departure}"))


def _shared(result: dict[str, Any]) -> str:
    """How many connections share a window, if several do."""
    connections = result.get("connections", 1)
    return f", {connections} connections" if connections > 1 else ""


def _transfers(record: SearchRecord) -> Table:
    table = grid(
        "Window",
        "asked",
        "granted",
        "Expected",
        "Achieved",
        "Transfer time ratio",
        "TCP efficiency",
        "Buffer delay",
        title=f"TCP over it (sections 4.1, 4.2, 4.3){_shared(record.result or {})}",
    )
    for one in (record.result or {})["transfers"]:
        granted = one["granted_bytes"]
        mark = "" if one["finished"] else " (ended early)"
        delay = one["buffer_delay"]
        table.add_row(
            *plain(
                f"{one['fraction']:.0%} of the product",
                f"{one['window_bytes']:,} B",
                "" if granted is None else f"{granted:,} B",
                rate(one["expected_bit_per_s"]),
                rate(one["achieved_bit_per_s"]) + mark,
                f"{one['transfer_time_ratio']:.2f}",
                percent(one["efficiency"]),
                "" if delay is None else percent(delay),
            )
        )
    return table
