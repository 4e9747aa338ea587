"""Life cycle of testbeds as namespaces: create, use, remove, no leftovers. Needs root; skipped without."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Program
from engpass import netlab
from engpass.netlab import kernel, registry
from isolation import own_processes

pytestmark = pytest.mark.skipif(
    not kernel.privileged() or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip` and `tc`",
)

PAIR = """\
name = "pair"
[host.a]
[host.b]
[link.cable]
ends = ["a", "b"]
medium = "point-to-point"
rate = "155.52 Mbit/s"
[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
[run]
duration = "1 s"
"""


def seen() -> tuple[set[str], set[str], set[int]]:
    """Namespaces of these tests, devices outside of namespaces, and processes that hold such namespaces."""
    there = Path("/run/netns")
    paths = [path for path in there.iterdir() if registry.OURS.fullmatch(path.name)] if there.is_dir() else []
    inodes = {path.stat().st_ino for path in paths}
    own = Path("/proc/self/ns/user").readlink()
    processes = set()
    for process in own_processes():
        try:
            inside = (process / "ns/net").stat().st_ino in inodes
            sleeps = (process / "cmdline").read_bytes() == b"sleep\0infinity\0"
            keeps = sleeps and (process / "ns/user").readlink() != own
        except OSError:
            continue
        if inside or keeps:
            processes.add(int(process.name))
    devices = {path.name for path in Path("/sys/class/net").iterdir()}
    return {path.name for path in paths}, devices, processes


def more(now: Sequence[AbstractSet[Any]], before: Sequence[AbstractSet[Any]]) -> list[Any]:
    """Items that are new in `now`. Items that are gone do not matter: others on this machine removed them."""
    return [one for here, there in zip(now, before, strict=True) for one in here - there]


def settle() -> None:
    """Wait until nothing changes any more: the `ip` batch of a killed process ends after the process."""
    before = None
    while before != (before := seen()):
        time.sleep(0.5)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Check that a test leaves nothing behind."""
    before = seen()
    kept = {path.name for path in registry.directory().iterdir()} | {"lock"}
    yield
    last = time.monotonic() + 20
    while (left := more(seen(), before)) and time.monotonic() < last:
        time.sleep(0.05)
    assert not left
    assert {path.name for path in registry.directory().iterdir()} <= kept


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    path = tmp_path / "pair.toml"
    path.write_text(PAIR)
    return path


def test_exec_runs_a_program_in_a_host_and_returns_its_code(cli: Cli, program: Program, pair: Path) -> None:
    try:
        up = cli("up", "pair.toml")
        assert up.stdout == "a: 10.64.0.1\nb: 10.64.0.2\n"
        said = program(
            "exec",
            "pair.toml",
            "a",
            "--",
            "sh",
            "-c",
            "echo $ENGPASS_HOST $ENGPASS_ADDRESS_B; exit 7",
            code=7,
        )
        assert said.stdout == "a 10.64.0.2\n"
        there = json.loads(cli("ps", "--json").stdout.splitlines()[-1])
        assert (there["name"], there["engine"], there["state"]) == ("pair", "measure", "up")
        assert there["nodes"]["b"]["addresses"] == ["10.64.0.2"]
        shape = program("exec", "pair.toml", "a", "--", "tc", "-j", "qdisc", "show", "dev", "cable").stdout
        assert json.loads(shape)[0]["kind"] == "tbf"
        assert json.loads(shape)[0]["options"]["rate"] == 155_520_000 // 8
        again = cli("up", "pair.toml", code=2)
        assert "is already up" in again.stderr
        assert "engpass down pair.toml" in again.stderr or "engpass down" in again.stderr
        wrong = cli("exec", "pair.toml", "c", "--", "true", code=2)
        assert "`pair` has no host `c`" in wrong.stderr
    finally:
        cli("down", "pair.toml")
    assert "is not up" in cli("down", "pair.toml", code=2).stderr


def test_running_program_ends_with_its_testbed(cli: Cli, program: Program, pair: Path) -> None:
    cli("up", "pair.toml")
    running = program.start("exec", "pair.toml", "b", "--", "sleep", "300")
    lab = netlab.find(str(pair))
    inside = lab.members["b"].namespace
    last = time.monotonic() + 20
    while not lab.kernel.processes(inside) and time.monotonic() < last:
        time.sleep(0.02)
    cli("down", "pair.toml")
    assert running.wait(timeout=10) == -signal.SIGTERM
    running.communicate()


def test_namespaces_of_equal_host_names_are_isolated(
    cli: Cli, program: Program, pair: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.toml").write_text(PAIR)
    try:
        cli("up", "pair.toml")
        cli("up", "other.toml")
        one, other = netlab.find(str(pair)), netlab.find(str(tmp_path / "other.toml"))
        assert one.id != other.id
        cli("down", "pair.toml")
        assert program("exec", "other.toml", "a", "--", "echo", "here").stdout == "here\n"
    finally:
        cli("down", "other.toml")


def test_clean_removes_only_the_remains_of_a_killed_up(cli: Cli, program: Program, pair: Path) -> None:
    cli("up", "pair.toml")
    try:
        large = program.directory / "large.toml"
        hosts = 60
        large.write_text(
            '[switch.s]\nkind = "ethernet"\n'
            + "".join(
                f'[host.h{i}]\n[link.l{i}]\nends = ["h{i}", "s"]\nmedium = "ethernet-1g"\n'
                for i in range(hosts)
            )
            + '[traffic.t]\nkind = "udp-stream"\nfrom = "h0"\nto = "h1"\nmessage = "1 kB"\n'
        )
        before = seen()[0]
        making = program.start("up", "large.toml")
        last = time.monotonic() + 20
        while not (made := seen()[0] - before) and making.poll() is None and time.monotonic() < last:
            time.sleep(0.002)
        making.kill()
        making.communicate()
        assert made
        assert any(lab.is_lost() for lab in netlab.labs())
        assert "left behind" in cli("ps").stdout
        settle()
        assert "removed testbed" in cli("clean").stderr
        assert seen()[0] == before
        assert program("exec", "pair.toml", "a", "--", "echo", "still").stdout == "still\n"
        assert "there is nothing to remove" in cli("clean").stderr
    finally:
        cli("down", "pair.toml")


def test_ctrl_c_during_up_leaves_nothing(program: Program, pair: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        before = seen()[0]
        making = program.start("up", "pair.toml")
        last = time.monotonic() + 20
        while seen()[0] == before and making.poll() is None and time.monotonic() < last:
            time.sleep(0.001)
        making.send_signal(number)
        _, said = making.communicate(timeout=20)
        if making.returncode in (0, -number) and said.startswith(b"up as "):
            program("down", "pair.toml")  # the namespaces were up before the signal
        else:
            assert making.returncode == 130, said


def test_clean_leaves_foreign_namespaces_alone(cli: Cli) -> None:
    name = f"engpass-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        cli("clean")
        assert Path("/run/netns", name).exists()
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def test_up_without_privileges_uses_a_user_namespace(program: Program, pair: Path) -> None:
    drop = ["setpriv", "--bounding-set", "-net_admin,-sys_admin", "--inh-caps", "-all"]
    if shutil.which("setpriv") is None:
        pytest.skip("needs `setpriv`")
    if subprocess.run(
        [*drop, "unshare", "--user", "--map-root-user", "--net", "true"], capture_output=True
    ).returncode:
        pytest.skip("this machine allows no user namespaces")

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [*drop, *program.command(*args)]
        return subprocess.run(command, cwd=program.directory, capture_output=True, text=True, timeout=60)

    up = run("up", "pair.toml")
    try:
        assert up.returncode == 0, up.stderr
        said = run("exec", "pair.toml", "a", "--", "ip", "-br", "address", "show", "dev", "cable")
        assert "10.64.0.1/24" in said.stdout, said.stderr
        there = [json.loads(line) for line in run("ps", "--json").stdout.splitlines()]
        assert any(lab["name"] == "pair" and lab["rootless"] for lab in there)
    finally:
        assert run("down", "pair.toml").returncode == 0


def test_up_without_capabilities_names_what_is_missing(program: Program, pair: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("needs `setpriv`")
    # A user who may create no user namespace: in a new user namespace the limit is set to zero.
    line = (
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -net_admin,-sys_admin"
        f" --inh-caps -all {' '.join(program.command('up', 'pair.toml'))}"
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", line],
        cwd=program.directory,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done
    assert "CAP_NET_ADMIN and CAP_SYS_ADMIN" in done.stderr
    assert "help: run as root" in done.stderr
