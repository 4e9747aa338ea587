"""`engpass run --engine emulate` with real agents and a driver without a model. Needs root."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Cli, Program
from engpass import netlab
from engpass.netlab import registry
from engpass.results import outcomes
from engpass.types.outcome import Drop, Outcome, Place
from keeps_up import when_it_keeps_up
from required import known
from test_emulated import FAR, drivers, nothing_is_left, pytestmark  # noqa: F401 (used by pytest)

# Lost time that a window of 300 ms tolerates: 10 % of the datagrams may then arrive after it.
LOST_MS = 25


@pytest.fixture
def far(tmp_path: Path) -> Path:
    path = tmp_path / "far.toml"
    path.write_text(FAR)
    return path


def lines(cli: Cli, *args: str, code: int = 0) -> list[str]:
    """The lines that a run prints, one per point."""
    return cli("run", "far.toml", "--json", "--fresh", *args, code=code).stdout.splitlines()


def points(cli: Cli, *args: str) -> list[Outcome]:
    return [outcomes.read(line) for line in lines(cli, *args)]


@pytest.mark.usefixtures("far")
def test_emulated_points_are_stored_beside_simulated_ones(cli: Cli) -> None:
    args = ("--engine", "limit,simulate,emulate", "--repeats", "1")
    limit, simulated, emulated = when_it_keeps_up(lambda: points(cli, *args), lost_ms=LOST_MS)
    assert [one.engine for one in (limit, simulated, emulated)] == ["limit", "simulate", "emulate"]
    got, wanted = (one.flows["stream"].goodput_bit_per_s for one in (emulated, simulated))
    assert got == pytest.approx(wanted, rel=0.1)
    assert (emulated.valid, known(emulated.measured).carrier) == (True, "model")
    place = Place(node="a", link="line", to="b")
    assert emulated.drops == [Drop(place=place, cause="loss", flow="stream", cells=0, datagrams=2)]
    how = known(emulated.emulated)
    assert how.lateness["p999_ns"] == 30_000
    assert (how.clock, how.slow, how.no_offload, how.max_lateness, how.tap) == (
        "auto",
        1,
        False,
        "1 ms",
        False,
    )
    assert list(how.host_pairs) == ["a to b"]
    shown = cli("show", "last").stdout
    assert "vs simulate" in shown
    assert "invalid" not in shown
    assert "valid" in cli("export", "last").stdout.splitlines()[0]


@pytest.mark.usefixtures("far")
def test_time_dilated_results_are_in_virtual_time(cli: Cli) -> None:
    args = ("--engine", "emulate", "--repeats", "1", "--slow", "3")
    (point,) = when_it_keeps_up(lambda: points(cli, *args), lost_ms=2 * LOST_MS)
    # 1 Mbit/s for 300 ms; the agents sent at a third of the rate for three times as long.
    stream, measured = point.flows["stream"], known(point.measured)
    assert stream.goodput_bit_per_s == pytest.approx(1e6, rel=0.1)
    assert known(known(stream.real).gap_s).mean == pytest.approx(0.008, rel=0.1)
    assert measured.took_s > 1.1
    assert any("time dilation" in note for note in measured.notes)
    assert known(point.emulated).slow == 3


@pytest.mark.usefixtures("far")
def test_a_point_that_is_late_is_invalid(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DRIVER", "late")
    (point,) = points(cli, "--engine", "emulate", "--repeats", "1")
    assert point.valid is False
    assert known(point.invalid).startswith("0.1 % of the packets were 2 ms late or more")
    assert "invalid" in cli("show", "last").stdout
    cli("report", "last", "-o", "report.html")
    assert "1 emulated point is invalid" in (cli.directory / "report.html").read_text()


@pytest.mark.usefixtures("far")
def test_dead_driver_fails_its_point_and_is_replaced(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_DRIVER", "die")
    failed = lines(cli, "--engine", "emulate", "--repeats", "2", code=1)
    assert len(failed) == 2
    assert all("the driver at" in json.loads(line)["error"] for line in failed)
    monkeypatch.delenv("FAKE_DRIVER")
    (point, _) = points(cli, "--engine", "emulate", "--repeats", "2")
    assert point.valid


@pytest.mark.usefixtures("far")
def test_other_driver_options_make_another_campaign(cli: Cli) -> None:
    args = ("--engine", "emulate", "--repeats", "1", "--json")
    cli("run", "far.toml", *args)
    assert "all 1 points are already stored" in cli("run", "far.toml", *args).stderr
    assert "1 points, stored" in cli("run", "far.toml", *args, "--wire-true").stderr


def test_clean_removes_the_remains_of_a_killed_run(cli: Cli, program: Program, far: Path) -> None:
    far.write_text(FAR.replace("400 ms", "60 s"))
    before = drivers()
    running = program.start("run", "far.toml", "--engine", "emulate", "--repeats", "1")
    last = time.monotonic() + 20
    while not (drivers() - before and any(up(lab) for lab in netlab.labs())) and time.monotonic() < last:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    (lab,) = [lab for lab in netlab.labs() if lab.is_lost()]
    assert lab.file == str(far), "it was given without its directory"
    assert lab.has_driver(), "it outlives who started it, and is ended by `clean`"
    assert f"removed testbed {lab.id}" in cli("clean").stderr
    assert not (registry.directory() / f"{lab.id}.sock").exists()


def up(lab: netlab.Lab) -> bool:
    return lab.state == "up" and lab.has_driver()


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGHUP, signal.SIGHUP)])
def test_run_ends_cleanly_on_ctrl_c_and_hangup(
    program: Program, far: Path, signals: tuple[signal.Signals, ...]
) -> None:
    """A closed terminal causes two SIGHUPs: from its shell and from the kernel."""
    far.write_text(FAR.replace("400 ms", "60 s"))
    before = drivers()
    running = program.start("run", "far.toml", "--engine", "emulate", "--repeats", "1", "--log", "logs")
    last = time.monotonic() + 20
    while not drivers() - before and time.monotonic() < last:
        time.sleep(0.02)
    time.sleep(0.5)
    for number in signals:
        running.send_signal(number)
        time.sleep(0.02)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130, said
    assert b"help: repeat the command without `--capture` and `--log` to continue where it stopped" in said


@pytest.mark.usefixtures("far")
def test_run_under_nohup_ignores_a_hangup(program: Program) -> None:
    before = drivers()
    with subprocess.Popen(
        [
            "nohup",
            sys.executable,
            "-m",
            "engpass",
            "run",
            "far.toml",
            "--engine",
            "emulate",
            "--repeats",
            "1",
        ],
        cwd=program.directory,
        env=program.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        last = time.monotonic() + 20
        while not drivers() - before and running.poll() is None and time.monotonic() < last:
            time.sleep(0.002)
        running.send_signal(signal.SIGHUP)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 0, said
