"""The hot loops in criterion."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, Row
from machine import HOT_LOOPS, QUEUES, BenchError, Tools, run

QUEUE = "event queue, "
"""Prefix of the group names of the event queue benchmark."""


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure the time per hop, cell, segment or event with criterion."""
    began = time.time()
    for loops in (HOT_LOOPS, QUEUES):
        # Build first, so that building is not measured.
        run([*loops, "--no-run"])
        run([*loops, "--", *(["--quick"] if quick else [])])
    results = [path for path in tools.target.glob("criterion/**/new") if _fresh(path, began)]
    if not results:
        raise BenchError(f"criterion left nothing in {tools.target / 'criterion'}")
    for path in sorted(results, key=lambda path: (path / "estimates.json").stat().st_mtime):
        what = json.loads((path / "benchmark.json").read_text(encoding="utf-8"))
        times = json.loads((path / "sample.json").read_text(encoding="utf-8"))
        each = [
            t / n / what["throughput"]["Elements"] * 1e-9
            for t, n in zip(times["times"], times["iters"], strict=True)
        ]
        # A benchmark with a parameter has a value, one with a name has a function.
        name = f"{what['group_id']}: {what['value_str'] or what['function_id']}"
        queue = name.startswith(QUEUE)
        group = (
            "Queues of events, for one that is entered and taken (criterion)"
            if queue
            else "Hot loops, for one hop, cell, segment or event (criterion)"
        )
        yield Figure(group, name.removeprefix(QUEUE), "s", each)


def _fresh(path: Path, began: float) -> bool:
    estimates = path / "estimates.json"
    return estimates.exists() and estimates.stat().st_mtime >= began
