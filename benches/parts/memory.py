"""The probe's memory loops compared with the same loops in C, in turns."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, Row, Skipped, Target
from machine import ROOT, BenchError, Tools, c_compiler, run

GROUP = "Memory: the probe beside a program in C, the best of one thread"
SOURCE = ROOT / "benches/memory/stream.c"
LOOPS = ("read", "write", "copy-vector", "copy-library")
SIZES_KIB = (8, 256, 128 << 10)
"""Sizes for the first-level cache, the second or third level, and memory."""
SHARE = 0.95


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Measure the bandwidth of the probe as a share of that of the C program."""
    compiler = c_compiler()
    if compiler is None:
        yield Skipped(GROUP, "a program in C", "there is no C compiler: none of `cc`, `gcc`, `clang`")
        return
    run(["cargo", "build", "--release", "--quiet", "-p", "engpass-live", "--example", "memory"])
    ours = tools.target / "release/examples/memory"
    rounds = 3 if quick else 9
    with tempfile.TemporaryDirectory() as directory:
        theirs = Path(directory) / "stream"
        run([compiler, "-O3", "-march=native", "-o", theirs, SOURCE])
        for kib in SIZES_KIB:
            found: dict[Path, dict[str, list[float]]] = {ours: {}, theirs: {}}
            for _ in range(rounds):
                for program, loops in found.items():
                    for name, rate in _rates(program, kib):
                        loops.setdefault(name, []).append(rate)
            size = f"{kib} KiB" if kib < 1024 else f"{kib >> 10} MiB"
            for loop in LOOPS:
                if not (found[ours].get(loop) and found[theirs].get(loop)):
                    raise BenchError(f"no `{loop}` from one of the programs")
                best, other = max(found[ours][loop]), max(found[theirs][loop])
                if other == 0:
                    yield Skipped(GROUP, f"{size}, {loop}", "other work took the CPU in every repeat")
                    continue
                note = f"{best / 1e9:.2f} to {other / 1e9:.2f} GB/s"
                what = f"{size}, {loop}"
                yield Figure(GROUP, what, "", [best / other], Target(SHARE, at_least=True), note)


def _rates(program: Path, kib: int) -> Iterator[tuple[str, float]]:
    """Yield the name of each loop and its best rate of nine repeats, in bytes per second."""
    for line in run([program, str(kib), "9"]).output.splitlines():
        name, best, *_ = line.split()
        yield name, float(best)
