"""Memory: the use of reading a hostile file, and estimates and actual use of runs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Program
from engpass import NeedsMemoryError, loads, memory
from engpass.cli import console
from engpass.memory import Need

MIB = 1 << 20


# A child's peak includes the memory of the process that forked it, so a small wrapper starts it.
WRAPPER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(process.returncode, usage.ru_maxrss * 1024)
"""


def peak(command: list[str], directory: Path) -> tuple[int, int]:
    """Exit code and peak memory of a program, in bytes."""
    wrapped = [sys.executable, "-I", "-S", "-c", WRAPPER, *command]
    done = subprocess.run(wrapped, cwd=directory, capture_output=True, text=True, check=True)
    code, most = done.stdout.split()
    return int(code), int(most)


@pytest.mark.parametrize("table", ["", "[host.a]\n", "[variant.v]\n"])
def test_million_unknown_keys_are_reported_in_bounded_memory(program: Program, table: str) -> None:
    keys = "".join(f"k{number:x}=1\n" for number in range(1_000_000))
    (program.directory / "keys.toml").write_text(table + keys)
    code, most = peak(program.command("check", "keys.toml"), program.directory)
    assert code == 2
    # It took 1.5 GiB when every finding was kept; the tree of the file takes 0.4 to 0.5 GiB.
    assert most < 700 * MIB


PAIR = """\
name = "pair"
host = { a = {}, b = {} }
link.wire = { ends = ["a", "b"], medium = "ethernet-10g", delay = "1 ms" }
run = { duration = "1 ms", repeats = 2 }
[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "1 Mbit/s"
"""

# 600,000 connections in 60 lines of the file.
CROWD = PAIR.partition("[traffic")[0] + "".join(
    f'traffic.t{number} = {{ kind = "tcp-stream", from = "a", to = "b", message = "1 B", streams = 10000 }}\n'
    for number in range(60)
)


def test_run_above_one_gibibyte_is_rejected_before_it_begins(cli: Cli) -> None:
    (cli.directory / "crowd.toml").write_text(CROWD)
    said = cli("run", "crowd.toml", "--jobs", "2", code=5).stderr
    assert (
        "error: this run needs about 3.6 GiB of memory, more than 1.0 GiB: 1.8 GiB for each of 2 jobs" in said
    )
    assert "help: `--jobs 1` needs about 1.8 GiB; fewer flows or connections" in said
    assert "`--yes` (in Python `max_memory=None`) runs it anyway" in said
    assert "needs about 1.8 GiB of memory" in cli("run", "crowd.toml", "--jobs", "1", code=5).stderr
    assert "there are no runs" in cli("runs", code=None).stderr + cli("show", code=2).stderr
    # The limit engine has no connections, so it needs little memory.
    assert "1 points" in cli("run", "crowd.toml", "--engine", "limit").stderr


def test_python_run_raises_above_max_memory() -> None:
    crowd = loads(CROWD)
    with pytest.raises(NeedsMemoryError, match=r"needs about 1\.8 GiB") as caught:
        crowd.run(jobs=1)
    assert caught.value.bytes > memory.MOST
    pair = loads(PAIR)
    with pytest.raises(NeedsMemoryError):
        pair.run(max_memory=10 * MIB)
    assert pair.run(max_memory=None).points.num_rows == 3
    assert pair.run(max_memory=200 * MIB).points.num_rows == 3


@pytest.mark.parametrize("answer", [b"n\n", b"\x04"], ids=["no", "end-of-input"])
def test_memory_question_is_asked_at_a_terminal(program: Program, answer: bytes) -> None:
    (program.directory / "crowd.toml").write_text(CROWD)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        program.command("run", "crowd.toml"),
        cwd=program.directory,
        env=program.environment(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as asked:
        os.close(theirs)
        said = b""
        while b"[y/N]" not in said:
            said += os.read(ours, 4096)
        os.write(ours, answer)
        assert asked.wait(timeout=60) == 5
    os.close(ours)
    assert b"warning: this run needs about" in said
    assert b"run it anyway? [y/N]" in said


@pytest.fixture
def much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the default memory limit to a kilobyte."""
    monkeypatch.setattr(memory, "MOST", 1000)


@pytest.mark.usefixtures("much")
@pytest.mark.parametrize(
    "words",
    [
        ("run", "pair.toml"),
        ("explain", "pair.toml"),
        ("search", "pair.toml", "--engine", "simulate", "--trial", "10 ms", "--method", "frame-loss"),
        ("path", "pair.toml", "--engine", "emulate"),
        ("reproduce", "kyoto-1997"),
    ],
)
def test_every_running_command_exits_with_5_without_memory(cli: Cli, words: tuple[str, ...]) -> None:
    (cli.directory / "pair.toml").write_text(PAIR)
    said = cli(*words, code=5).stderr
    assert "error: this run needs about" in said


@pytest.mark.usefixtures("much")
def test_yes_or_a_complete_run_skips_the_memory_question(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.directory / "pair.toml").write_text(PAIR)
    assert "3 points, stored" in cli("run", "pair.toml", "--yes").stderr
    assert "all 3 points are already stored" in cli("run", "pair.toml").stderr
    cli("explain", "--yes", "--no-advice")
    # Confirming at a terminal does the same.
    monkeypatch.setattr(console, "_is_terminal", lambda stream: stream is not None)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    said = cli("run", "pair.toml", "--fresh").stderr
    assert "warning: this run needs about" in said
    assert "3 points, stored" in said


class Elsewhere(Executor):
    """An executor whose workers are on other machines."""

    def submit(self, fn: Callable[..., Any], /, *_args: Any, **_kwargs: Any) -> Future[Any]:
        raise NotImplementedError(fn)


def test_memory_need_counts_jobs_on_this_machine() -> None:
    crowd = loads(CROWD)

    def need(jobs: int, executor: Executor | None = None) -> Need:
        return crowd.memory(jobs=jobs, executor=executor)

    one, four = need(1), need(4)
    assert (one.jobs, four.jobs) == (1, 3), "one point of `limit` and two of `simulate`"
    assert four.total - one.total == 2 * one.each
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2) as processes:
        assert need(2, threads) == need(2)
        assert need(2, processes).each > need(2).each
    assert need(2, Elsewhere()).total < 100 * MIB


def test_memory_need_includes_captures_and_timelines() -> None:
    crowd = loads(CROWD)
    plain = crowd.memory(jobs=1)
    # The captures hold 10 ms of 10 Gbit/s in packets of 1,500 bytes.
    assert crowd.memory(jobs=1, captures=2).rest - plain.rest > 2 * 8000 * 500
    campaign, engines, variants = crowd.campaign, ["simulate"], ["base"]
    with_timeline = memory.need(campaign, engines, variants, timeline=True)
    assert with_timeline.rest - memory.need(campaign, engines, variants).rest > 30 * 200_000


def flows(count: int, traffic: str) -> str:
    """Equal flows, each with its own hosts and links, through one line between two routers."""
    head = (
        'router = { l = { queue = { drop-tail = { limit = "200 packets" } } }, r = {} }\n'
        'link.line = { ends = ["l", "r"], medium = "point-to-point", rate = "155 Mbit/s", delay = "3 ms" }\n'
        'run = { duration = "1 s" }\n'
    )
    return head + "".join(
        f"host.s{number} = {{}}\nhost.r{number} = {{}}\n"
        f'link.a{number} = {{ ends = ["s{number}", "l"], medium = "ethernet-1g" }}\n'
        f'link.b{number} = {{ ends = ["r", "r{number}"], medium = "ethernet-1g" }}\n'
        f'traffic.t{number} = {{ from = "s{number}", to = "r{number}", {traffic} }}\n'
        for number in range(count)
    )


UDP = """\
host = { a = {}, b = {} }
router.r = { queue = { drop-tail = { limit = "LIMIT packets" } } }
link.access = { ends = ["a", "r"], medium = "ethernet-100g" }
link.far = { ends = ["r", "b"], medium = "ethernet-10g", delay = "DELAY" }
traffic.stream = { kind = "udp-stream", from = "a", to = "b", message = "1000 B", rate = "RATE" }
run = { duration = "1 s" }
"""

BENCHES = Path(__file__).parents[2] / "benches" / "testbeds"

WORKLOADS = {
    "one pair": (PAIR, ()),
    "1,000 TCP flows": (flows(1000, 'kind = "tcp-stream", message = "64 KiB"'), ()),
    "2,000 UDP flows": (flows(2000, 'kind = "poisson", message = "1 kB", rate = "60 kbit/s"'), ()),
    "10,000 connections": (
        PAIR.replace('"udp-stream"', '"tcp-stream"').replace('rate = "1 Mbit/s"', "streams = 10000"),
        ("--set", "run.duration=1 s"),
    ),
    "a long fat line": ((BENCHES / "long-fat.toml").read_text(), ()),
    "the same with BBR": ((BENCHES / "long-fat.toml").read_text(), ("--set", "host.a.tcp.congestion=bbr")),
    "datagrams under way": (
        UDP.replace("LIMIT", "1000").replace("DELAY", "500 ms").replace("RATE", "5 Gbit/s"),
        (),
    ),
    "datagrams that wait": (
        UDP.replace("LIMIT", "1000000").replace("DELAY", "1 ms").replace("RATE", "20 Gbit/s"),
        (),
    ),
    "cells": (
        (BENCHES / "kyoto.toml").read_text(),
        ("--variant", "congested", "--set", "traffic.stream.message=9 kB", "--set", "run.duration=1 s"),
    ),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_memory_estimate_is_within_a_factor_of_two_of_peak(program: Program, name: str) -> None:
    text, options = WORKLOADS[name]
    (program.directory / "load.toml").write_text(text)
    run = ["run", "load.toml", "--engine", "simulate", "--repeats", "1", "--jobs", "1", "--yes", *options]
    code, most = peak(program.command(*run), program.directory)
    assert code == 0
    pairs = [one.split("=", 1) for one in options if "=" in one]
    testbed = loads(text, [(path, value) for path, value in pairs])
    variants = ["congested"] if "--variant" in options else None
    need = testbed.memory(testbed.plan(["simulate"], variants, 1), 1)
    assert most / 2 < need.total < 2 * most, (
        f"{need.total / MIB:.0f} MiB estimated, {most / MIB:.0f} MiB needed"
    )
