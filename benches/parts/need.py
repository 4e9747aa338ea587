"""The estimated memory of runs compared with the peak of their process."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from figures import Figure, Row, Target, quantity
from machine import ENGPASS, KYOTO, ROOT, Tools, run

from engpass import load
from parts.campaign import GALLERY
from parts.cells import MESSAGE, UDP_VARIANTS

GROUP = (
    "Memory: estimated by `engpass run`, to the peak of its process (interpreter included), or the inverse"
)
ONE_SECOND = ("run.duration=1 s",)
LENGTHS = str(ROOT / "benches/testbeds/lengths.toml")
FAT = str(ROOT / "benches/testbeds/long-fat.toml")


@dataclass(frozen=True)
class Load:
    """A workload of the other parts, for `engpass run`."""

    what: str
    workload: str
    """A file, or a workload name of `engpass-measure`."""
    settings: Sequence[str] = ()
    variant: str | None = None
    repeats: int | None = 1
    jobs: int = 1


def _loads(quick: bool) -> Iterator[Load]:
    for flows in (2, 10, 100, 1000):
        for tcp in ("sack", "new-reno"):
            yield Load(f"dumbbell, {flows:,} flows, {tcp}", f"dumbbell:{flows}:{tcp}")
    for flows in (100, 1000) if quick else (100, 1000, 10_000):
        what = f"dumbbell of 10 Gbit/s, {flows:,} flows"
        yield Load(what, f"dumbbell:{flows}:sack:10000", ONE_SECOND)
    kinds = {"linux-6": (), "SACK": ("host.a.tcp.recovery=sack", "host.b.tcp.recovery=sack")}
    for name, settings in {**kinds, "BBR": ("host.a.tcp.congestion=bbr",)}.items():
        yield Load(f"long fat line, {name}", FAT, settings)
    for hops in (1, 3, 10):
        yield Load(f"cells, {hops} hops", f"line:{hops}", ONE_SECOND)
        yield Load(f"packets, {hops} hops", f"frames:{hops}", ONE_SECOND)
    for count in (10, 100, 1000, 5000):
        yield Load(f"{count:,} phones", f"phones:{count}", ONE_SECOND)
    for variant in UDP_VARIANTS:
        yield Load(f"Kyoto, {variant}", KYOTO, (MESSAGE,), variant)
    stack = ("traffic.stream.kind=tcp-stream", 'host.ss2.tcp={ profile = "solaris-2.5" }')
    yield Load("Kyoto, free, TCP", KYOTO, (MESSAGE, *stack), "free")
    yield Load("datagrams of random lengths", LENGTHS)
    yield Load("the same in fragments", LENGTHS, ("traffic.stream.message=3000 B",))
    yield Load("the Kyoto study, 2 workers", str(GALLERY), ONE_SECOND, None, None, 2)


def measure(tools: Tools, quick: bool) -> Iterator[Row]:
    """Run each workload of the other parts once."""
    with tempfile.TemporaryDirectory() as directory:
        # The peak of a child process includes the memory of its parent at the fork. Therefore all peaks are
        # measured before anything large is loaded here.
        peaks = [(one, *_peak(tools, one, Path(directory, str(n)))) for n, one in enumerate(_loads(quick))]
        for one, file, peak in peaks:
            need = _need(one, file)
            note = f"{quantity(need, 'B')} estimated, {quantity(peak, 'B')} at the peak"
            yield Figure(GROUP, one.what, "", [max(need / peak, peak / need)], Target(2.0), note=note)


def _peak(tools: Tools, one: Load, directory: Path) -> tuple[Path, float]:
    """Return the testbed of a workload and the peak memory of the process that runs it."""
    directory.mkdir()
    file = Path(one.workload)
    if not file.is_file():
        file = directory / "workload.toml"
        file.write_text(run([tools.measure, one.workload]).output, encoding="utf-8")
    words = ["--engine", "simulate", "--jobs", str(one.jobs), "--store", f"{directory}/engpass.db"]
    words += [] if one.variant is None else ["--variant", one.variant]
    words += [] if one.repeats is None else ["--repeats", str(one.repeats)]
    for setting in one.settings:
        words += ["--set", setting]
    return file, run([ENGPASS, "run", file, *words, "--yes"]).peak_bytes


def _need(one: Load, file: Path) -> int:
    pairs = [(path, value) for path, _, value in (setting.partition("=") for setting in one.settings)]
    testbed = load(file, pairs)
    variants = None if one.variant is None else [one.variant]
    return testbed.memory(testbed.plan(["simulate"], variants, one.repeats), one.jobs).total
