"""Runs that are interrupted, killed, or shared by several processes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import TESTBED, Program
from engpass.results import outcomes
from engpass.store import Store

# Points of some ten milliseconds each, stored in batches: enough of them to interrupt a run in the middle.
ARGS = ["--engine", "simulate", "--set", "run.repeats=30", "--set", "run.duration=2 s", "--jobs", "2"]
TOTAL = 2 * 4 * 30
# Half as many points, for a single interruption.
HALF = [*ARGS, "--set", "run.repeats=15"]
HALF_TOTAL = TOTAL // 2
# All points of `ARGS`, but very short: no test interrupts them.
SHORT = [*ARGS, "--set", "run.duration=50 ms"]


def stored(path: Path) -> int:
    """Number of points in a store that another process is writing; 0 before it exists."""
    if not path.exists():
        return 0
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return int(connection.execute("SELECT count(*) FROM point").fetchone()[0])
        finally:
            connection.close()
    except sqlite3.OperationalError:
        return 0


def wait_for(path: Path, points: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while stored(path) < points:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def end(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    assert b"Traceback" not in err, err.decode()
    return process.returncode, out.decode(), err.decode()


def test_kill_9_loses_no_counted_point_and_repeats_none(program: Program, testbed_file: Path) -> None:
    path = program.directory / "engpass.db"
    counted = 0
    for _ in range(3):
        process = program.start("run", testbed_file.name, "--json", *ARGS)
        wait_for(path, counted + 30, process)
        process.send_signal(signal.SIGKILL)
        code, out, _ = end(process)
        assert code == -signal.SIGKILL
        # All printed points are stored. The kill may truncate the last line.
        printed = [outcomes.read(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]
        with Store.open(path, create=False) as store:
            (record,) = store.runs()
            there = store.outcomes(record.id)
            assert printed == there[: len(printed)]
            assert counted < len(there) < TOTAL
            assert record.status == "partial"
            counted = len(there)
            written = list(store.raw_outcomes(record.id))
    shown = program("run", testbed_file.name, "--json", *ARGS)
    assert re.match(rf"resuming {record.id}: {counted} of {TOTAL} points are already stored\n", shown.stderr)
    with Store.open(path, create=False) as store:
        assert store.run().points_done == TOTAL
        after = dict(store.raw_outcomes(record.id))
        assert [(p, after[p]) for p, _ in written] == written
        assert [s["ended"] is None for s in store.sessions(record.id)] == [True, True, True, False]
        # Each point was written by one session, and those of the killed ones were not run again.
        connection = sqlite3.connect(path)
        sessions = connection.execute(
            "SELECT count(*) FROM point GROUP BY session_id ORDER BY session_id"
        ).fetchall()
        connection.close()
        assert sum(n for (n,) in sessions) == TOTAL
        assert sessions[-1] == (TOTAL - counted,)
    # The result equals that of one uninterrupted run.
    assert program("run", testbed_file.name, "--json", *ARGS, "--fresh").stdout == shown.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_keeps_finished_points_and_says_how_to_resume(
    number: signal.Signals, program: Program, testbed_file: Path
) -> None:
    path = program.directory / "engpass.db"
    process = program.start("run", testbed_file.name, *HALF)
    wait_for(path, 10, process)
    process.send_signal(number)
    code, out, err = end(process)
    assert code == 130
    done = stored(path)
    assert 10 <= done < HALF_TOTAL
    assert err.endswith(
        f"interrupted: {done} of {HALF_TOTAL} points are stored in `engpass.db`\n"
        "help: repeat the command to continue where it stopped\n"
    )
    assert out.startswith("Two hosts"), "the table of what is there"
    again = program("run", testbed_file.name, *HALF)
    assert again.stderr.startswith("resuming ")
    assert stored(path) == HALF_TOTAL


CTRL_C_AT_AN_IMPORT = """
import runpy, signal, sys

class CtrlC:
    def find_spec(self, name, path, target=None):
        if name == "{name}":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, CtrlC())
sys.argv = ["engpass", "check", "{file}"]
runpy.run_module("engpass", run_name="__main__")
"""


@pytest.mark.parametrize("name", ["typer", "engpass.cli.check", "engpass.testbed"])
def test_ctrl_c_during_imports_shows_no_traceback(name: str, testbed_file: Path) -> None:
    code = CTRL_C_AT_AN_IMPORT.format(name=name, file=testbed_file)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    # Before the command is called, the signal ends the program; a shell reports 130 for that, too.
    said = (130, "interrupted\n") if name == "engpass.testbed" else (-signal.SIGINT, "")
    assert (ended.returncode, ended.stderr, ended.stdout) == (*said, "")


def test_ctrl_c_ends_a_running_point(program: Program, testbed_file: Path) -> None:
    testbed_file.write_text(TESTBED.replace('"20 ms"', '"10000 s"').partition("[sweep]")[0])
    process = program.start("run", testbed_file.name, "--engine", "simulate", "--json")
    deadline = time.monotonic() + 30
    while not (program.directory / "engpass.db").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    code, out, _ = end(process)
    # A finished point would be printed.
    assert (code, out) == (130, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_search_resumes(number: signal.Signals, program: Program, testbed_file: Path) -> None:
    # A thousand trials.
    loads = (
        "--method",
        "frame-loss",
        "--step",
        "0.1 %",
        "--whole",
        "--trial",
        "100 ms",
        "--max",
        "90 Mbit/s",
    )
    args = ("search", testbed_file.name, "--engine", "simulate", *loads)
    process = program.start(*args, "--json")
    assert process.stdout is not None
    first = [json.loads(process.stdout.readline()) for _ in range(5)]
    assert [trial["trial"] for trial in first] == [1, 2, 3, 4, 5]
    process.send_signal(number)
    code, out, err = end(process)
    assert code == 130
    assert err.endswith("\ninterrupted\n")
    told = 5 + len(out.splitlines())
    again = program.start(*args, "--json")
    assert again.stdout is not None
    again.stdout.readline()
    again.send_signal(number)
    code, _, err = end(again)
    assert code == 130
    kept = re.search(r", (\d+) trials are already stored\n", err)
    assert kept is not None, err
    assert int(kept[1]) >= told, "what was told is kept"


def test_json_of_an_interrupted_run_has_every_stored_point(program: Program, testbed_file: Path) -> None:
    process = program.start("run", testbed_file.name, "--json", *ARGS)
    wait_for(program.directory / "engpass.db", 20, process)
    process.send_signal(signal.SIGINT)
    code, out, _ = end(process)
    assert code == 130
    with Store.open(program.directory / "engpass.db", create=False) as store:
        assert [outcomes.read(line) for line in out.splitlines()] == store.outcomes(store.run().id)


def test_two_processes_share_a_store_and_a_campaign(program: Program, testbed_file: Path) -> None:
    other = program.directory / "other.toml"
    other.write_text(TESTBED + "# another campaign\n")
    commands = [testbed_file.name, testbed_file.name, other.name, other.name]
    processes = [program.start("run", name, "--json", *SHORT) for name in commands]
    results = [end(process) for process in processes]
    assert [code for code, _, _ in results] == [0] * 4, [err for _, _, err in results]
    outs = [out for _, out, _ in results]
    assert len(outs[0].splitlines()) == TOTAL
    assert outs == [outs[0]] * 4
    with Store.open(program.directory / "engpass.db", create=False) as store:
        assert [(r.points_done, r.status) for r in store.runs()] == [(TOTAL, "done")] * 2
    connection = sqlite3.connect(program.directory / "engpass.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_full_disk_keeps_the_points_stored_before(program: Program, testbed_file: Path) -> None:
    # `ulimit -f` makes writes fail like a full disk, but with another error number.
    line = "ulimit -f 200; exec " + shlex.join(program.command("run", testbed_file.name, *SHORT))
    said = program.shell(line, code=2).stderr
    assert re.search(r"error: (the store `engpass.db` cannot be|no space left)", said)
    assert "stored points are kept" in said
    kept = stored(program.directory / "engpass.db")
    again = program("run", testbed_file.name, *SHORT)
    assert kept == 0 or again.stderr.startswith("resuming ")
    assert stored(program.directory / "engpass.db") == TOTAL


def test_a_background_job_keeps_ignoring_ctrl_c(program: Program, testbed_file: Path) -> None:
    code = "import signal, os; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code += (
        Path(__file__)
        .with_name("engpass_command.py")
        .read_text()
        .replace("signal.signal(signal.SIGINT, ", "(")
    )
    command = [program.command()[0], "-c", code, "run", testbed_file.name, *HALF]
    env = program.environment()
    process = subprocess.Popen(
        command, cwd=program.directory, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for(program.directory / "engpass.db", 5, process)
    os.kill(process.pid, signal.SIGINT)
    code_, _, err = end(process)
    assert code_ == 0, err
