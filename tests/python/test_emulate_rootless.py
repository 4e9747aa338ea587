"""Emulated testbeds of a user without root: all commands, in a user namespace, with the real driver.

If root runs the tests, they act as `nobody`, with an interpreter that other users may run. They are skipped
without such an interpreter, or if the machine denies users user namespaces or `/dev/net/tun`.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import engpass
from engpass.results import outcomes
from engpass.types.outcome import Outcome
from keeps_up import when_it_keeps_up
from test_emulate_live import PING
from test_emulated import FAR, drivers

_NOBODY = 65534
_PATHS = (Path(engpass.__file__).parents[1], Path(typer.__file__).parents[1])
_HOME = tempfile.TemporaryDirectory(prefix="engpass-venv-")
Path(_HOME.name).chmod(0o755)


def _way_down() -> list[str]:
    """The prefix that runs a command as another user; the shell drops the privileges that root would keep."""
    if os.geteuid() != 0:
        return []
    ids = ["--reuid", str(_NOBODY), "--regid", str(_NOBODY), "--clear-groups", "--inh-caps", "-all"]
    return ["setpriv", *ids, "sh", "-c", 'exec "$@"', "sh"]


@functools.cache
def _python() -> str | None:
    """An interpreter that this user may run, in a virtual environment with our packages."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        return None
    for number, python in enumerate((sys.executable, "/usr/bin/python3")):
        home = Path(_HOME.name, str(number))
        made = [python, "-m", "venv", "--without-pip", str(home)]
        if subprocess.run(made, capture_output=True, check=False).returncode != 0:
            continue
        (packages,) = home.glob("lib/python*/site-packages")
        (packages / "engpass.pth").write_text("".join(f"{path}\n" for path in _PATHS))
        found = str(home / "bin" / "python")
        tried = [*_way_down(), found, "-I", "-B", "-c", "import engpass.cli, engpass._engpass, typer, rich"]
        if subprocess.run(tried, cwd="/", capture_output=True, check=False).returncode == 0:
            return found
    return None


def _refused() -> str | None:
    if sys.platform != "linux" or shutil.which("tc") is None or shutil.which("unshare") is None:
        return "needs `ip`, `tc` and `unshare`"
    if _python() is None:
        return "no Python here can be run by another user than root"
    tun = [*_way_down(), "sh", "-c", ": <>/dev/net/tun && unshare --user --map-root-user --net true"]
    done = subprocess.run(tun, cwd="/", capture_output=True, text=True, check=False)
    return f"users may not: {done.stderr.strip()}" if done.returncode != 0 else None


_why = _refused()
pytestmark = pytest.mark.skipif(_why is not None, reason=str(_why))


class User:
    """The command as this user runs it, in a private directory."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        runtime = self.home / "run"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("ENGPASS")}
        environment = {
            **kept,
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(runtime),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        python = _python()
        assert python is not None
        done = subprocess.run(
            [*_way_down(), python, "-m", "engpass", *args],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture
def user() -> Iterator[User]:
    before = drivers()
    home = Path(tempfile.mkdtemp(prefix="engpass-user-"))
    (home / "run").mkdir()
    (home / "far.toml").write_text(FAR)
    if os.geteuid() == 0:
        for path in (home, home / "run", home / "far.toml"):
            os.chown(path, _NOBODY, _NOBODY)
    someone = User(home)
    yield someone
    someone("clean")
    assert "no testbed is up" in someone("ps").stderr
    assert {path.name for path in (home / "run/engpass").iterdir()} == {"lock"}
    last = time.monotonic() + 20
    while drivers() - before and time.monotonic() < last:
        time.sleep(0.05)
    assert not drivers() - before
    shutil.rmtree(home)


@pytest.mark.alone
def test_all_verbs_work_without_root(user: User) -> None:
    user("up", "far.toml", "--capture", "link.line.a=a.pcapng", "--log", "far.log")
    there = json.loads(user("ps", "--json").stdout)
    assert (there["engine"], there["state"]) == ("emulate", "up")
    python = _python()
    assert python is not None
    pinged = user("exec", "far.toml", "a", "--", python, "-c", PING, "10.64.0.1", "10.64.0.2")
    assert 40.0 < float(pinged.stdout) < 200.0
    seen = json.loads(user("watch", "far.toml", "--once", "--json", "--interval", "0.1").stdout)
    assert {host["name"]: host["sent_packets"] for host in seen["hosts"]} == {"a": 5, "b": 5}
    down = user("down", "far.toml").stderr
    assert f"captured 5 to `{user.home / 'a.pcapng'}`" in down
    assert re.fullmatch(r"10 inputs, 10 outputs: identical\n", user("replay", "far.log").stdout)


def test_a_run_makes_its_traffic_without_root(user: User) -> None:
    def run() -> list[Outcome]:
        ran = user(
            "run", "far.toml", "--engine", "simulate,emulate", "--json", "--repeats", "1", "--limit", "1 s",
            "--set", "run.duration=1 s", "--fresh",
        )  # fmt: skip
        return [outcomes.read(line) for line in ran.stdout.splitlines()]

    simulated, real = (one.flows["stream"] for one in when_it_keeps_up(run, lost_ms=60))
    assert real.goodput_bit_per_s == pytest.approx(simulated.goodput_bit_per_s, rel=0.1)


@pytest.mark.parametrize(
    ("verb", "said"),
    [(["down", "far.toml"], "{} is down: 2 namespaces removed"), (["clean"], "removed testbed {}")],
)
def test_remains_of_a_killed_driver_are_removed_without_root(user: User, verb: list[str], said: str) -> None:
    user("up", "far.toml")
    there = json.loads(user("ps", "--json").stdout)
    os.kill(there["driver"], signal.SIGKILL)
    assert said.format(there["id"]) in user(*verb).stderr
