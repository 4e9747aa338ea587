"""Tests do not see other testbeds on this machine, and testbeds of tests are not visible outside."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Program
from engpass import netlab
from engpass.netlab import kernel, registry
from isolation import OUTSIDE, own_processes
from test_emulated import FAR, drivers
from test_netlab import more, seen

pytestmark = pytest.mark.skipif(
    not kernel.privileged() or shutil.which("tc") is None or not os.access("/dev/net/tun", os.W_OK),
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip`, `tc` and `/dev/net/tun`",
)


def here() -> list[set[Any]]:
    """Everything that the session sees of testbeds.

    Devices outside of namespaces are left out: other sessions on this machine change them.
    """
    namespaces, _, processes = seen()
    return [namespaces, processes, drivers(), {lab.id for lab in netlab.labs()}]


def test_an_unrelated_testbed_is_not_seen(cli: Cli, program: Program) -> None:
    file = program.directory / "far.toml"
    file.write_text(FAR)
    before = here()

    def outside(*words: str) -> None:
        # Like another shell on this machine: with its mounts and without the environment of the tests.
        enter = ["nsenter", f"--mount=/proc/{os.getpid()}/fd/{OUTSIDE[0]}"]
        command = ["env", "-i", f"PATH={os.environ['PATH']}", *program.command(*words)]
        done = subprocess.run([*enter, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done

    outside("up", str(file))
    try:
        # A process of an earlier test may still end meanwhile.
        assert more(here(), before) == []
        assert "there is nothing to remove" in cli("clean").stderr
        # The same file can also be up here.
        cli("up", "far.toml")
        (own,) = netlab.labs()
        assert own.driver in drivers()
        cli("down", "far.toml")
    finally:
        outside("down", str(file))
    assert list(registry.directory().glob("*.json")) == []


def test_processes_of_the_session_are_known(program: Program) -> None:
    def start(env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(["cat"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        # `Popen` returns before `/proc` shows the environment of the new program; its output comes later.
        process.stdin.write(b"started\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"started\n"
        return process

    with start() as started, start({"PATH": os.environ["PATH"]}) as other:
        found = {int(process.name) for process in own_processes()}
        # Both processes end with their input.
    assert started.pid in found
    assert other.pid not in found
    assert Path("/proc", str(os.getpid())) not in own_processes(), "the session did not start itself"
