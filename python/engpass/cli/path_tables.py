"""Tables of a measured path, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from engpass import formatting
from engpass.cli.tables import grid, plain

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.store import RunRecord


def show(record: RunRecord, out: Console) -> None:
    """Print the path and the TCP transfers over it, with the sections of RFC 6349."""
    result = record.result
    if result is None:
        out.print(Text("the measurement has not ended"))
        return
    ends = f"{record.settings['from']} → {record.settings['to']}"
    table = Table.grid(padding=(0, 2))
    for name, value, source in formatting.path(result):
        table.add_row(Text(name, style="bold"), Text(value), Text(source))
    out.print(Text(f"path {ends} (RFC 6349)", style="bold"))
    out.print(table)
    out.print(_transfers(record))
    if invalid := result.get("invalid_runs"):
        text = f"invalid: packets of the emulated network were too late in {invalid} of the runs"
        out.print(Text(f"{text}, so the results do not describe the path", style="bold"))
    asked, tried = len(record.settings["fractions"]), len(result["transfers"])
    if tried < asked:
        out.print(Text(f"{asked - tried} smaller windows were skipped: they have less than two segments"))
    for note in result.get("notes", []):
        out.print(Text(f"note: {note}"))
    for departure in result.get("departures", []):
        out.print(Text(f"not conforming: {departure}"))


def _shared(connections: int) -> str:
    """The number of connections that share a window; empty for one."""
    return f", {connections} connections" if connections > 1 else ""


def _transfers(record: RunRecord) -> Table:
    table = grid(
        "Window (share of BDP)",
        "Requested",
        "Granted",
        "Expected",
        "Achieved",
        "Transfer time ratio",
        "TCP efficiency",
        "Buffer delay",
        title=f"TCP over the path (4.1, 4.2, 4.3){_shared((record.result or {}).get('connections', 1))}",
    )
    for one in (record.result or {})["transfers"]:
        table.add_row(*plain(*formatting.transfer(one)))
    return table
