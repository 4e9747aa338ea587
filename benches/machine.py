"""Build and run the measured programs, and describe the machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import Work

from engpass.environment import environment

ROOT = Path(__file__).resolve().parent.parent
ENGPASS = ROOT / ".venv/bin/engpass"
KYOTO = str(ROOT / "benches/testbeds/kyoto.toml")
LOOPS = ("cargo", "bench", "--quiet", "-p", "engpass-bench")
HOT_LOOPS = (*LOOPS, "--features", "hot", "--bench", "hot")
QUEUES = (*LOOPS, "--no-default-features", "--features", "queues", "--bench", "queues")

HEAVY = ("setsid", "--wait", "sh", "-c", 'echo -20 2>/dev/null >/proc/self/autogroup; exec "$@"', "-")
"""Command prefix that gives a program a session with high priority, so that other work delays it less."""


class BenchError(Exception):
    """A measurement failed."""


@dataclass(frozen=True)
class Ended:
    """A program that ended successfully."""

    output: str
    wall_s: float
    cpu_s: float
    peak_bytes: float


def run(command: Sequence[str | Path]) -> Ended:
    """Run a program and measure wall-clock time, CPU time and peak memory."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            said = errors.read()[-2000:]
            raise BenchError(f"`{' '.join(map(str, command))}` ended with {process.returncode}:\n{said}")
        peak = usage.ru_maxrss * 1024
        return Ended(output.read(), wall, usage.ru_utime + usage.ru_stime, peak)


@dataclass(frozen=True)
class Tools:
    """The programs built for this run."""

    measure: Path
    target: Path

    @classmethod
    def build(cls) -> Tools:
        """Build `engpass-measure` with the release profile."""
        run(["cargo", "build", "--release", "--quiet", "-p", "engpass-bench", "--bin", "engpass-measure"])
        metadata = json.loads(run(["cargo", "metadata", "--format-version", "1", "--no-deps"]).output)
        target = Path(metadata["target_directory"])
        return cls(target / "release/engpass-measure", target)

    def workload(self, workload: str, engine: str, times: int, *more: str) -> dict[str, Any]:
        """Run a workload `times` times in one process."""
        result: dict[str, Any] = json.loads(run([self.measure, workload, engine, str(times), *more]).output)
        return result


def work(group: str, what: str, runs: Sequence[dict[str, Any]]) -> Work:
    """Return runs of one workload, in one or several processes, as a row. They differ only in their times."""
    first = runs[0]
    return Work(
        group,
        what,
        [sample for each in runs for sample in each["cpu_s"]],
        first["sent"] + first["lost"],
        first["events"],
        max(each["peak_kib"] for each in runs) * 1024,
        first["heap_bytes"],
        first["flows"],
    )


def c_compiler() -> str | None:
    """Return a C compiler, if there is one."""
    return os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def floor(directory: str) -> Path | None:
    """Build the baseline program `floor.c` in a directory; `None` without a compiler."""
    compiler = c_compiler()
    if compiler is None:
        return None
    program = Path(directory) / "floor"
    run([compiler, "-O2", "-pthread", "-o", program, ROOT / "benches/floor/floor.c", "-lm"])
    return program


def git(*arguments: str) -> str:
    """Return the output of git, empty without a repository."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def facts() -> dict[str, str]:
    """Return machine, programs and commit, for the head of the results."""
    here = environment(jobs=1, executor="none")
    changed = [line for line in git("status", "--porcelain").splitlines() if "benches/RESULTS.md" not in line]
    commit = git("rev-parse", "--short=12", "HEAD") or "unknown"
    load = os.getloadavg()
    memory = int(str(here["memory_bytes"])) / 2**30
    loads = ", ".join(f"{value:.1f}" for value in load) + " (over 1, 5, 15 minutes)"
    if load[0] > int(str(here["cores"])) / 2:
        loads += "; **the machine was busy: times on the wall are too long**"
    return {
        "command": "`make bench`",
        "date": str(here["started"])[:16].replace("T", " ") + " UTC",
        "commit": commit + (" with changes" if changed else ""),
        "processor": f"{here['cpu']}, {here['cores']} cores, {memory:.0f} GiB",
        "system": f"{here['system']}, {here['kernel']}",
        "programs": f"{run(['rustc', '--version']).output.strip()}, Python {here['python']}",
        "load before the run": loads,
    }
