"""Captures and logs of simultaneous testbeds and runs: no file has two writers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import Cli, Program
from engpass import netlab
from engpass.emulation import Files
from engpass.netlab import LabError, kernel, output_claims, registry
from test_emulated import FAR, end_driver, nothing_is_left, pytestmark  # noqa: F401 (used by pytest)

ONE = ("--engine", "emulate", "--repeats", "1")


@pytest.fixture(autouse=True)
def testbeds(tmp_path: Path) -> None:
    (tmp_path / "far.toml").write_text(FAR)
    (tmp_path / "other.toml").write_text(FAR.replace("400 ms", "60 s"))


def test_testbed_rejects_a_file_that_another_one_writes(cli: Cli) -> None:
    cli("up", "far.toml", "--log", "a.log", "--capture", "link.line=c.pcapng")
    lab = netlab.find(str(cli.directory / "far.toml"))
    (cli.directory / "c.pcapng").touch()
    (cli.directory / "hard").hardlink_to(cli.directory / "c.pcapng")
    (cli.directory / "link").symlink_to("a.log")
    try:
        for given, path in (
            (("--log", "a.log"), "a.log"),
            (("--log", "link"), "a.log"),
            (("--capture", "link.line=c.pcapng"), "c.pcapng"),
            (("--capture", "link.line=hard"), "hard"),
            (("--capture", "link.line=a.log"), "a.log"),
        ):
            said = cli("up", "other.toml", *given, code=2).stderr
            assert (
                f"`{cli.directory / path}` is being written by testbed {lab.id} of `{lab.file}`\n"
                f"help: use another file, or run `engpass down {lab.id}` first\n"
            ) in said
        # The check comes before the run starts, even if the run needs no testbed.
        for engine in ("simulate", "emulate"):
            run = ("run", "far.toml", "--engine", engine, "--repeats", "1")
            assert f"testbed {lab.id}" in cli(*run, "--capture", "link.line=c.pcapng", code=2).stderr
        assert not (cli.directory / "engpass.db").exists()
        end_driver(lab)
        cli("up", "other.toml", "--log", "a.log")
    finally:
        cli("down", "other.toml", code=None)
        cli("clean")


def test_run_rejects_a_point_log_that_a_testbed_writes(cli: Cli) -> None:
    (cli.directory / "logs").mkdir()
    cli("up", "far.toml", "--log", "logs/point-000000.log")
    try:
        said = cli("run", "far.toml", *ONE, "--log", "logs", code=2).stderr
        assert f"`{cli.directory}/logs/point-000000.log` is being written by testbed " in said
    finally:
        cli("down", "far.toml", code=1)


@contextmanager
def running(program: Program, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a run of a minute, and wait until it has claimed its files."""
    before = output_claims.claims()
    process = program.start("run", "other.toml", *args)
    last = time.monotonic() + 30
    while not output_claims.claims() - before and process.poll() is None and time.monotonic() < last:
        time.sleep(0.01)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_run_rejects_logs_that_another_run_writes(cli: Cli, program: Program) -> None:
    with running(program, *ONE, "--log", "logs") as first:
        for again in ("logs", "./logs/"):
            said = cli("run", "far.toml", *ONE, "--store", "2.db", "--log", again, code=2).stderr
            assert f"`{cli.directory / 'logs'}` is being written by a run of `other.toml`" in said
            assert "help: use another file, or wait until that run has ended" in said
        # `clean` leaves running testbeds and runs alone.
        assert "there is nothing to remove" in cli("clean").stderr
        # The driver of these tests writes no log, so the command reports an error.
        other = cli("run", "far.toml", *ONE, "--store", "2.db", "--log", "others", code=1)
        assert "is stored in `2.db`" in other.stderr
        assert first.poll() is None
    after = cli("run", "far.toml", *ONE, "--store", "2.db", "--log", "logs", "--fresh", code=1)
    assert "is stored in `2.db`" in after.stderr


def test_log_option_reruns_stored_points(cli: Cli) -> None:
    again = ("run", "far.toml", *ONE)
    cli(*again)
    assert "all 1 points are already stored" in cli(*again).stderr
    said = cli(*again, "--log", "logs", code=1).stderr
    assert "1 points, stored in" in said
    assert f"the log `{cli.directory / 'logs' / 'point-000000.log'}` ended early" in said, "it has no model"
    # Only emulated points have logs.
    simulate = ("run", "far.toml", "--engine", "simulate", "--log", "logs")
    cli(*simulate)
    assert "points are already stored" in cli(*simulate).stderr


def test_simulated_run_rejects_a_capture_of_another_run(cli: Cli) -> None:
    """Claims of the own process do not conflict; those of another process do."""
    mine = Files((str(cli.directory / "c.pcapng"),))
    run = ("run", "far.toml", "--engine", "simulate", "--repeats", "1", "--capture", "link.line=c.pcapng")
    with netlab.claimed("other.toml", mine):
        cli(*run)
        (path,) = (registry.directory() / name for name in output_claims.claims())
        kept = path.read_text()
        with subprocess.Popen(["sleep", "60"]) as other:
            since = str(kernel.start_time(other.pid))
            kept = kept.replace(f'"owner": {os.getpid()}', f'"owner": {other.pid}')
            # Another process has this process id now, but did not write the claim.
            path.write_text(kept)
            cli(*run)
            path.write_text(kept.replace(str(kernel.start_time(os.getpid())), since))
            said = cli(*run, code=2).stderr
            assert f"is being written by a run of `other.toml` (process {other.pid})\n" in said
            other.kill()


def test_clean_removes_the_file_claims_of_a_killed_run(cli: Cli) -> None:
    with registry.locked() as directory:
        left = directory / "0a0b0c.writes"
        files = '{"captures": [], "log": null, "logs": null}'
        left.write_text('{"file": "x", "owner": 1, "owner_since": 1, "files": FILES}'.replace("FILES", files))
    assert f"removed `{left}`" in cli("clean").stderr
    assert not left.exists()


def test_devices_may_have_several_writers(tmp_path: Path) -> None:
    null = Files(("/dev/null",))
    assert null.shared(null) is None
    assert Files(logs="d").shared(Files(log="d/trace.log")) is None
    assert Files(logs="d").shared(Files(log="./d/point-000001.log")) == "./d/point-000001.log"
    with pytest.raises(LabError), netlab.claimed("a", Files(("x",))):
        raise LabError("as it comes")
