"""`make bench`: speed and memory, measured in one run and set against the targets.

Prints a table and writes `benches/RESULTS.md`. Nothing here is a constant of some machine: where something is
compared, both sides are measured in this run. `--quick` takes less than a minute and its figures are rough.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from figures import Figure, Target, markdown, tables
from machine import ENGPASS, HOT_LOOPS, ROOT, BenchError, Ended, Tools, facts, run
from rich.console import Console

HERE = Path(__file__).resolve().parent
GALLERY = ROOT / "gallery/kyoto-1997/testbed.toml"
KYOTO = str(HERE / "testbeds/kyoto.toml")
UDP_VARIANTS = ("free", "congested", "shaped-16", "shaped-18")
MESSAGE = "traffic.stream.message=9 kB"
LONGEST_CAMPAIGN_S = 120.0
"""A campaign that would take longer is measured in part; the figure says so."""


def line(tools: Tools, quick: bool) -> Iterator[Figure]:
    """The contended line in both engines; they must lose the same cells."""
    group = "Contended line: 3 hops of OC-3c, on-off cross traffic, 512-cell buffers"
    piece = "run.duration=" + ("200 ms" if quick else "1 s")
    oracle = tools.workload("line:3", "oracle", 1 if quick else 3, piece)
    trains = tools.workload("line:3", "simulate", 3 if quick else 7, piece)
    if any(oracle[key] != trains[key] for key in ("cell_hops", "lost", "flows")):
        raise BenchError(f"the engines differ:\noracle   {oracle}\nsimulate {trains}")
    whole = tools.workload("line:3", "simulate", 1 if quick else 5)
    yield Figure(group, "simulate, 10 s", "s", whole["cpu_s"], Target(0.030))
    yield Figure(group, "a cell over a hop in simulate", "s", _per(whole["cpu_s"], whole["cell_hops"]))
    yield Figure(group, f"oracle, {oracle['simulated_s']:g} s", "s", oracle["cpu_s"])
    yield Figure(group, "a cell over a hop in the oracle", "s", _per(oracle["cpu_s"], oracle["cell_hops"]))
    least = min(oracle["cpu_s"]) / min(trains["cpu_s"])
    yield Figure(group, "oracle / simulate, least times", "", [least], Target(20.0, at_least=True))
    yield Figure(
        group,
        "cells lost, in both",
        "",
        [oracle["lost"]],
        note=f"of {oracle['cell_hops']:,} cells over links",
    )


def kyoto(tools: Tools, quick: bool) -> Iterator[Figure]:
    """Single points of the Kyoto study."""
    group = "One point of the Kyoto study: 9 kB, 10 s"
    cases = [(variant, "priority") for variant in UDP_VARIANTS] + [("congested", "fifo")]
    for variant, schedule in cases:
        setting = f"switch.atomis5.schedule={schedule}"
        point = tools.workload(KYOTO, "simulate", 1 if quick else 5, variant, MESSAGE, setting)
        each = _per(point["cpu_s"], point["cell_hops"])
        note = f"{min(each) * 1e9:.2g} ns a cell over a link, {point['events']:,} events"
        yield Figure(group, f"{variant}, {schedule}", "s", point["cpu_s"], note=note)


def ledger(tools: Tools, quick: bool) -> Iterator[Figure]:
    """What the ledger costs: runs with it and without, in turns."""
    group = "Cost of the ledger: a run with it against one without, least times of each"
    cases: list[tuple[str, list[str]]] = [
        (f"Kyoto, {variant}, {schedule}", [KYOTO, variant, MESSAGE, f"switch.atomis5.schedule={schedule}"])
        for variant, schedule in [(variant, "priority") for variant in UDP_VARIANTS] + [("congested", "fifo")]
    ]
    cases.append(("contended line, 3 hops, 0.5 s", ["line:3", "run.duration=500 ms"]))
    cases.append(("ten TCP flows, 0.5 s", ["dumbbell:10", "run.duration=500 ms"]))
    for name, (workload, *rest) in cases:
        times: dict[str, list[float]] = {"simulate": [], "unbooked": []}
        for _ in range(2 if quick else 5):
            for engine, taken in times.items():
                taken.extend(tools.workload(workload, engine, 3 if quick else 40, *rest)["cpu_s"])
        ratio = min(times["simulate"]) / min(times["unbooked"])
        yield Figure(group, name, "", [ratio], Target(1.15))


def hops(tools: Tools, quick: bool) -> Iterator[Figure]:
    """Whether a cell over a hop costs the same on longer lines."""
    group = "Scaling over hops: the contended line, 1 s"
    for count in (1, 3, 10) if quick else (1, 2, 3, 5, 10):
        long = tools.workload(f"line:{count}", "simulate", 1 if quick else 3, "run.duration=1 s")
        note = f"{long['cell_hops']:,} cells over links, {_bytes(long['peak_kib'])}"
        yield Figure(
            group,
            f"{count} hop{'s' if count > 1 else ''}, a cell over a hop",
            "s",
            _per(long["cpu_s"], long["cell_hops"]),
            note=note,
        )


def campaign(_: Tools, quick: bool) -> Iterator[Figure]:
    """The whole UDP campaign of the study through the command, and what a second worker gives."""
    group = "Campaign: 4 UDP variants, 64 sizes, 5 repeats, 10 s = 1,280 runs"
    part = 256
    more = ["--set", "run.duration=1 s"] if quick else []
    one, two = (_campaign(jobs, 1, more) for jobs in (1, 2))
    suffix = "runs of 1 s" if quick else "runs"
    whole = two
    if not quick and 5 * two.wall_s <= LONGEST_CAMPAIGN_S:
        whole = _campaign(2, 5, [])
        yield Figure(group, "1,280 runs, 2 workers", "s", [whole.wall_s], Target(60.0))
    elif not quick:
        note = f"extrapolated from {part}, which took {two.wall_s:.1f} s"
        yield Figure(group, "1,280 runs, 2 workers", "s", [5 * two.wall_s], Target(60.0), note=note)
    yield Figure(group, "most memory of the process", "B", [whole.peak_bytes], Target(500e6))
    note = "half of it is the least that two free cores would need"
    yield Figure(group, "processor time of it", "s", [whole.cpu_s], note=note)
    for jobs, ended in ((1, one), (2, two)):
        workers = f"{jobs} worker{'s' if jobs > 1 else ''}"
        yield Figure(group, f"{part} {suffix}, {workers}", "runs/s", [part / ended.wall_s])
    yield Figure(group, "2 workers / 1 worker", "", [one.wall_s / two.wall_s])


def _campaign(jobs: int, repeats: int, more: list[str]) -> Ended:
    variants = [word for variant in UDP_VARIANTS for word in ("--variant", variant)]
    with tempfile.TemporaryDirectory() as directory:
        store = ["--store", f"{directory}/engpass.db", "--engine", "simulate", "--json"]
        amount = ["--jobs", str(jobs), "--repeats", str(repeats)]
        ended = run([ENGPASS, "run", GALLERY, *store, *amount, *variants, *more])
    lines = len(ended.output.splitlines())
    if lines != 256 * repeats:
        raise BenchError(f"the campaign gave {lines} outcomes, not {256 * repeats}")
    return ended


def sweep(_: Tools, quick: bool) -> Iterator[Figure]:
    """What a point costs that simulates next to nothing: plan, executor, store."""
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
        note = f"most memory {_bytes(ended.peak_bytes / 1024)}"
        yield Figure(group, f"{count:,} points, each", "s", [ended.wall_s / count], note=note)


def start(_: Tools, quick: bool) -> Iterator[Figure]:
    """How long the command takes to answer."""
    group = "Start of the command"
    for name, words in {"engpass --help": ["--help"], "engpass check": ["check", KYOTO]}.items():
        run([ENGPASS, *words])
        ended = [run([ENGPASS, *words]) for _ in range(3 if quick else 10)]
        note = f"processor time at least {min(each.cpu_s for each in ended) * 1e3:.0f} ms"
        yield Figure(group, f"`{name}`", "s", [each.wall_s for each in ended], Target(0.2), note=note)


def loops(tools: Tools, quick: bool) -> Iterator[Figure]:
    """The hot loops in criterion, by cell or event."""
    began = time.time()
    run([*HOT_LOOPS, "--", *(["--quick"] if quick else [])])
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
        name = f"{what['group_id']}: {what['value_str']}"
        yield Figure("Hot loops, by cell over a link or event (criterion)", name, "s", each)


def _fresh(path: Path, began: float) -> bool:
    estimates = path / "estimates.json"
    return estimates.exists() and estimates.stat().st_mtime >= began


def _per(samples: list[float], count: int) -> list[float]:
    return [sample / count for sample in samples]


def _bytes(kib: float) -> str:
    return f"{kib * 1024 / 1e6:.0f} MB"


PARTS: dict[str, Callable[[Tools, bool], Iterator[Figure]]] = {
    "start": start,
    "line": line,
    "hops": hops,
    "kyoto": kyoto,
    "ledger": ledger,
    "campaign": campaign,
    "sweep": sweep,
    "loops": loops,
}


def main() -> int:
    """Measure, print, write; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(description="Speed and memory, as ratios measured in one run.")
    parser.add_argument(
        "--quick", action="store_true", help="rough figures in less than a minute; writes no results"
    )
    parser.add_argument(
        "--only", choices=PARTS, action="append", help="this part; may be given again; writes no results"
    )
    chosen = parser.parse_args()
    # What is no terminal has room for the whole table.
    console = Console(width=None if sys.stdout.isatty() else 150)
    figures: list[Figure] = []
    try:
        where = facts()
        with console.status("building") as status:
            parts = chosen.only or list(PARTS)
            tools = Tools.build("loops" in parts)
            began = time.monotonic()
            for name in parts:
                status.update(f"measuring: {name}")
                figures.extend(PARTS[name](tools, chosen.quick))
    except BenchError as error:
        console.print(f"[red]error:[/red] {error}", highlight=False)
        return 1
    where["took"] = f"{time.monotonic() - began:.0f} s, the build apart"
    for table in tables(figures):
        console.print(table)
    for name, value in where.items():
        console.print(f"{name}: {value}", highlight=False)
    if not chosen.quick and not chosen.only:
        (HERE / "RESULTS.md").write_text(markdown(figures, where), encoding="utf-8")
        console.print("written: benches/RESULTS.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
