"""Compare outcomes and speed of the working tree with those of a baseline commit: `make same`.

`target/same/base/engine` holds the files of the baseline; `target/same/tree/engine` is a link to this
checkout. The programs of `tools/same/` are built with both engines. They run the testbed files of the
baseline and random files from the strategies of its property tests. The outcomes of the baseline are kept
for the next comparison.

Exit code 1 if an outcome differs or a workload is slower than the limit, 2 if the two cannot be compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tools/same"
PLACE = ROOT / "target/same"
EXCERPT = 160
"""Number of characters of a line shown around its first difference."""

KYOTO = ("kyoto.toml", "traffic.stream.message=9 kB")
TCP = ("traffic.stream.kind=tcp-stream", 'host.ss2.tcp={ profile = "solaris-2.5" }')
WORKLOADS: dict[str, tuple[int, tuple[str, ...]]] = {
    "generator": (20, ("generator.toml",)),
    "port of two classes": (5, ("port.toml",)),
    "phones": (5, ("phones:1000",)),
    "datagrams, 3 hops": (3, ("frames:3", "run.duration=2 s")),
    "datagrams, 10 hops": (3, ("frames:10", "run.duration=1 s")),
    "dumbbell, 2 flows": (5, ("dumbbell:2:sack",)),
    "dumbbell, 10 flows": (5, ("dumbbell:10:sack",)),
    "dumbbell, 100 flows": (5, ("dumbbell:100:sack",)),
    "dumbbell, 100 flows, NewReno": (5, ("dumbbell:100:new-reno",)),
    "dumbbell, 1,000 flows": (2, ("dumbbell:1000:sack:10000", "run.duration=1 s")),
    "long and fat": (2, ("long-fat.toml",)),
    "long and fat, BBR": (2, ("long-fat.toml", "host.a.tcp.congestion=bbr")),
    "Kyoto, free": (10, (*KYOTO, "free")),
    "Kyoto, congested": (10, (*KYOTO, "congested")),
    "Kyoto, congested, FIFO": (10, (*KYOTO, "congested", "switch.atomis5.schedule=fifo")),
    "Kyoto, shaped": (10, (*KYOTO, "shaped-16")),
    "Kyoto, congested, TCP": (10, (*KYOTO, "congested", *TCP)),
}
"""Workloads of `make bench`: runs in a process, and arguments of `engpass-measure` without the engine."""


class SameError(Exception):
    """The two cannot be compared; the text has cause and help."""


@dataclass(frozen=True)
class Program:
    """A program, its package, and its build profile."""

    name: str
    package: str
    profile: str


OUTCOMES = Program("same-outcomes", "same", "outcomes")
NETWORKS = Program("same-networks", "same", "outcomes")
MEASURE = Program("engpass-measure", "engpass-bench", "release")


@dataclass(frozen=True)
class Side:
    """One of the two engines, with the programs built for it."""

    name: str

    @property
    def folder(self) -> Path:
        """The folder of this side."""
        return PLACE / self.name

    def build(self, *programs: Program) -> None:
        """Build the programs."""
        copy = self.folder / "program"
        for file in sources():
            target = copy / file.relative_to(PROGRAMS)
            target.parent.mkdir(parents=True, exist_ok=True)
            # Keep unchanged files, because cargo rebuilds newer ones.
            if not target.exists() or target.read_bytes() != file.read_bytes():
                shutil.copyfile(file, target)
        shutil.copyfile(self.folder / "engine/Cargo.lock", copy / "Cargo.lock")
        environment = os.environ | {"CARGO_TARGET_DIR": str(self.folder / "target")}
        for program in programs:
            command = ["cargo", "build", "--quiet", "--profile", program.profile]
            command += ["--package", program.package, "--bin", program.name]
            # A program of the engine is built in the engine itself: the baseline may be older than the types
            # that `tools/same` needs.
            where = copy if program.package == "same" else self.folder / "engine"
            if subprocess.run(command, cwd=where, env=environment, check=False).returncode:
                raise SameError(
                    f"`{program.name}` cannot be built with the engine in `target/same/{self.name}`\n"
                    "help: programs in `tools/same` use only what both engines have; after a renaming of it, "
                    "compare with BASE set to the commit that renames"
                )

    def run(
        self, program: Program, *arguments: str, given: str = "", out: int | IO[bytes] = subprocess.PIPE
    ) -> str:
        """Run a program in the folder of the baseline and return its output."""
        command = [str(self.folder / "target" / program.profile / program.name), *arguments]
        ended = subprocess.run(command, cwd=BASE.folder, input=given.encode(), stdout=out, check=False)
        if ended.returncode:
            raise SameError(f"`{' '.join(command)}` ended with {ended.returncode}")
        return (ended.stdout or b"").decode()

    def write_outcomes(self, paths: list[str], seconds: int, target: Path) -> None:
        """Run the engines on testbed files and write the outcomes to a file."""
        part = target.with_suffix(".part")
        with part.open("wb") as out:
            self.run(OUTCOMES, str(seconds), given="".join(f"{path}\n" for path in paths), out=out)
        part.rename(target)


BASE = Side("base")
TREE = Side("tree")


def sources() -> list[Path]:
    """List the files of the programs."""
    return sorted(path for path in PROGRAMS.rglob("*") if path.is_file())


def lay_out(wanted: str) -> str:
    """Create the files of the baseline and a link to the tree; return the commit of the baseline."""
    name = ["git", "rev-parse", "--verify", "--quiet", f"{wanted}^{{commit}}"]
    commit = subprocess.run(name, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    if not commit:
        raise SameError(
            f"this repository has no commit `{wanted}`\n"
            "help: give another BASE, or get the history with `git fetch --unshallow`"
        )
    stamp, engine = BASE.folder / "commit", BASE.folder / "engine"
    if not stamp.exists() or stamp.read_text() != commit:
        stamp.unlink(missing_ok=True)
        for old in (engine, BASE.folder / "outcomes", BASE.folder / "random"):
            shutil.rmtree(old, ignore_errors=True)
        engine.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        # New file times make cargo notice the change.
        subprocess.run(["tar", "--extract", "--touch"], cwd=engine, input=archive, check=True)
        stamp.write_text(commit)
    TREE.folder.mkdir(parents=True, exist_ok=True)
    link = TREE.folder / "engine"
    if not link.is_symlink():
        link.symlink_to(Path("../../.."))
    return commit


def testbeds(count: int, seed: int, only: list[str]) -> list[str]:
    """List testbed files relative to the folder of the baseline: those in its tree, and random ones."""
    engine, random = BASE.folder / "engine", BASE.folder / "random" / str(seed)
    found = [path for path in sorted(engine.rglob("*.toml")) if "[run]" in path.read_text(encoding="utf-8")]
    random.mkdir(parents=True, exist_ok=True)
    if len(list(random.iterdir())) < count:
        BASE.run(NETWORKS, str(random), str(count), str(seed))
    # Sort by number, so that each strategy gets its share.
    drawn = sorted(random.iterdir(), key=lambda path: path.stem.rpartition("-")[::-1])[:count]
    paths = [str(path.relative_to(BASE.folder)) for path in found + drawn]
    return [path for path in paths if chosen_by(only, path)]


def chosen_by(only: list[str], name: str) -> bool:
    """Return true if a name contains one of these words, or if there are none."""
    return not only or any(word in name for word in only)


def compare_outcomes(commit: str, paths: list[str], seconds: int) -> bool:
    """Compare the outcomes of all files; print the first difference, and return true if there is none."""
    programs = b"".join(path.read_bytes() for path in sources())
    key = hashlib.sha256(programs + "\n".join([commit, str(seconds), *paths]).encode()).hexdigest()[:16]
    kept, new = BASE.folder / "outcomes" / key, TREE.folder / "outcomes"
    kept.parent.mkdir(exist_ok=True)
    if not kept.exists():
        BASE.write_outcomes(paths, seconds, kept)
    TREE.write_outcomes(paths, seconds, new)
    answers, refused, differing = 0, 0, 0
    for (path, before), (_, after) in zip(blocks(kept), blocks(new), strict=True):
        answers += sum(line.startswith("--- ") for line in before)
        refused += sum(line.startswith("refused: ") for line in before)
        if before != after:
            differing += 1
            if differing == 1:
                print(f"differs: {(BASE.folder / path).relative_to(ROOT)}")
                show(before, after)
    said = f"{answers:,} answers, {refused:,} of them refusals; {differing:,} files differ"
    print(f"outcomes: {len(paths):,} files, {said}", flush=True)
    return differing == 0


def blocks(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each testbed file with its lines."""
    name, lines = "", list[str]()
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("=== "):
                if name:
                    yield name, lines
                name, lines = line[4:].rstrip("\n"), []
            else:
                lines.append(line.rstrip("\n"))
    yield name, lines


def show(before: list[str], after: list[str]) -> None:
    """Print the first three differing lines around their first difference, with the name of the outcome."""
    part, shown = "", 0
    for one, other in zip_longest(before, after, fillvalue="(nothing)"):
        if one == other:
            part = one if one.startswith("--- ") else part
        elif shown < 3:
            if part:
                print(f"  {part[4:]}")
            part, shown = "", shown + 1
            alike = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
            start = max(0, alike - EXCERPT // 2)
            for name, line in (("baseline", one), ("tree", other)):
                print(f"    {name:<9}{'…' * (start > 0)}{line[start : start + EXCERPT]}")


def compare_speed(names: list[str], turns: int, limit: float) -> bool:
    """Run workloads in turns; print the median ratio of each, and return true if none exceeds the limit."""
    good = True
    for name in names:
        times, (workload, *rest) = WORKLOADS[name]
        file = BASE.folder / "engine/benches/testbeds" / workload
        if not workload.endswith(".toml"):
            file = BASE.folder / "workload.toml"
            file.write_text(BASE.run(MEASURE, workload))
        ratios = []
        for turn in range(turns):
            sides = (BASE, TREE) if turn % 2 == 0 else (TREE, BASE)
            said = {side: side.run(MEASURE, str(file), "simulate", str(times), *rest) for side in sides}
            base, tree = (json.loads(said[side]) for side in (BASE, TREE))
            if any(base[key] != tree[key] for key in ("sent", "lost", "received", "goodput_bit_per_s")):
                raise SameError(
                    f"outcomes of workload `{name}` differ\nhelp: `make same SPEED=0` shows where"
                )
            # The fastest run was disturbed least.
            ratios.append(min(tree["cpu_s"]) / min(base["cpu_s"]))
        median = statistics.median(ratios)
        good = good and median <= limit
        slow = "" if median <= limit else f"  above the limit, {limit:g}"
        print(f"speed: {name:<30}{median:6.3f}  ({min(ratios):.3f} to {max(ratios):.3f}){slow}", flush=True)
    return good


def main() -> int:
    """Build and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("base", help="commit of the baseline")
    parser.add_argument("--count", type=int, default=2000, help="random testbed files")
    parser.add_argument("--seed", type=int, default=1, help="of the random files")
    parser.add_argument("--seconds", type=int, default=3, help="longest virtual time of a run")
    parser.add_argument("--no-outcomes", action="store_true", help="leave outcomes out")
    parser.add_argument("--turns", type=int, default=7, help="of each workload; 0 leaves speed out")
    parser.add_argument("--limit", type=float, default=1.1, help="greatest median ratio of processor times")
    parser.add_argument("--only", default="", help="files and workloads with one of these words, by comma")
    chosen = parser.parse_args()
    only = [word for word in chosen.only.split(",") if word]
    names = [name for name in WORKLOADS if chosen.turns and chosen_by(only, name)]
    programs = [] if chosen.no_outcomes else [OUTCOMES]
    programs += [MEASURE] if names else []
    try:
        commit = lay_out(chosen.base)
        BASE.build(*programs, *([] if chosen.no_outcomes else [NETWORKS]))
        TREE.build(*programs)
        paths = [] if chosen.no_outcomes else testbeds(chosen.count, chosen.seed, only)
        same = compare_outcomes(commit, paths, chosen.seconds) if paths else True
        fast = compare_speed(names, chosen.turns, chosen.limit)
    except SameError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not paths and not names:
        print(f"error: no file and no workload has `{chosen.only}` in its name", file=sys.stderr)
        return 2
    return 0 if same and fast else 1


if __name__ == "__main__":
    sys.exit(main())
