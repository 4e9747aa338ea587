"""`make bench`: measure speed and memory in one run and compare them with the targets.

Prints tables and writes `benches/RESULTS.md`. Comparisons measure both sides in this run, in turns, so that
they do not depend on the machine. `--quick` takes a minute or two; its figures are rough.
"""

from __future__ import annotations

import argparse
import sys
import time

from figures import Row, markdown, tables
from machine import ROOT, BenchError, Tools, facts
from parts import PARTS
from rich.console import Console


def main() -> int:
    """Measure, print and write the results; return 1 if a measurement failed."""
    parser = argparse.ArgumentParser(description="Speed and memory, as ratios measured in one run.")
    parser.add_argument("--quick", action="store_true", help="rough figures; writes no results")
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="this part; may be given again; writes no results"
    )
    chosen = parser.parse_args()
    # Output that is not a terminal gets the full width of the tables.
    console = Console(width=None if sys.stdout.isatty() else 200)
    rows: list[Row] = []
    try:
        where = facts()
        with console.status("building") as status:
            tools = Tools.build()
            began = time.monotonic()
            for name in chosen.only or PARTS:
                status.update(f"measuring: {name}")
                rows.extend(PARTS[name](tools, chosen.quick))
    except BenchError as error:
        console.print(f"[red]error:[/red] {error}", highlight=False)
        return 1
    where["took"] = f"{time.monotonic() - began:.0f} s"
    for table in tables(rows):
        console.print(table)
    for name, value in where.items():
        console.print(f"{name}: {value}", highlight=False)
    if not chosen.quick and not chosen.only:
        (ROOT / "benches/RESULTS.md").write_text(markdown(rows, where), encoding="utf-8")
        console.print("written: benches/RESULTS.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
