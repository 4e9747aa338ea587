"""Campaigns with the `engpass` command: a whole study, and points with very short runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, Row, Target, quantity
from machine import ENGPASS, KYOTO, ROOT, BenchError, Ended, Tools, run
from ns3 import pace

GALLERY = ROOT / "gallery/kyoto-1997/testbed.toml"
VARIANTS, SIZES, REPEATS = 10, 64, 5
LONGEST_S = 120.0
"""A campaign that would take longer is measured in part. The figure says so."""


def measure(_: Tools, quick: bool) -> Iterator[Row]:
    """Measure the whole Kyoto study, and the speedup by a second worker."""
    total, part = VARIANTS * SIZES * REPEATS, VARIANTS * SIZES
    amount = f"{VARIANTS} variants, {SIZES} sizes, {REPEATS} repeats"
    group = f"Campaign: the Kyoto study, {amount}, 10 s = {total:,} runs"
    more = ["--set", "run.duration=1 s"] if quick else []
    one, two = (_campaign(jobs, 1, more) for jobs in (1, 2))
    runs = "runs of 1 s" if quick else "runs"
    whole = two
    goal = None if quick else Target(20.0, pace=pace())
    if not quick and REPEATS * two.wall_s <= LONGEST_S:
        whole = _campaign(2, REPEATS, [])
        yield Figure(group, f"{total:,} runs, 2 workers", "s", [whole.wall_s], goal)
    elif not quick:
        note = f"extrapolated from {part}, which took {two.wall_s:.1f} s"
        yield Figure(group, f"{total:,} runs, 2 workers", "s", [REPEATS * two.wall_s], goal, note=note)
    yield Figure(group, "most memory of the process", "B", [whole.peak_bytes], Target(300e6))
    note = "half of it is the least that two free cores would need"
    yield Figure(group, "processor time of it", "s", [whole.cpu_s], note=note)
    for jobs, ended in ((1, one), (2, two)):
        workers = f"{jobs} worker{'s' if jobs > 1 else ''}"
        yield Figure(group, f"{part} {runs}, {workers}", "runs/s", [part / ended.wall_s])
    yield Figure(group, "2 workers / 1 worker", "", [one.wall_s / two.wall_s])


def _campaign(jobs: int, repeats: int, more: list[str]) -> Ended:
    with tempfile.TemporaryDirectory() as directory:
        store = ["--store", f"{directory}/engpass.db", "--engine", "simulate", "--json"]
        amount = ["--jobs", str(jobs), "--repeats", str(repeats)]
        ended = run([ENGPASS, "run", GALLERY, *store, *amount, *more])
    lines = len(ended.output.splitlines())
    if lines != VARIANTS * SIZES * repeats:
        raise BenchError(f"the campaign gave {lines} outcomes, not {VARIANTS * SIZES * repeats}")
    return ended


def sweep(_: Tools, quick: bool) -> Iterator[Row]:
    """Measure the overhead per point (plan, executor, store) with very short runs."""
    group = "Scaling over sweep points: 1 ms each, 2 workers"
    text = Path(KYOTO).read_text(encoding="utf-8")
    for count in (100, 1000) if quick else (100, 1000, 4000):
        values = f'{{ from = "1001 B", to = "{1000 + count} B", step = "1 B" }}'
        swept = text.replace('{ from = "1 kB", to = "64 kB", step = "1 kB" }', values)
        with tempfile.TemporaryDirectory() as directory:
            testbed = Path(directory) / "testbed.toml"
            testbed.write_text(swept, encoding="utf-8")
            store = ["--store", f"{directory}/engpass.db", "--engine", "simulate", "--json", "--yes"]
            few = ["--variant", "free", "--repeats", "1", "--jobs", "2", "--set", "run.duration=1 ms"]
            ended = run([ENGPASS, "run", testbed, *store, *few])
        if len(ended.output.splitlines()) != count:
            raise BenchError(f"{count} points gave {len(ended.output.splitlines())} outcomes")
        note = f"most memory {quantity(ended.peak_bytes, 'B')}"
        yield Figure(group, f"{count:,} points, each", "s", [ended.wall_s / count], note=note)
