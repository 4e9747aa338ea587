"""The hot loops in criterion."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, Row
from machine import HOT_LOOPS, QUEUES, BenchError, Tools, run

QUEUE = "event queue, "
"""How groups of that benchmark begin."""


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Time for one hop, cell, segment or event, as criterion takes it."""
    began = time.time()
    for loops in (HOT_LOOPS, QUEUES):
        # Its building is not measured with it.
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
        # What takes a parameter has its value, what has a name has it as function.
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
