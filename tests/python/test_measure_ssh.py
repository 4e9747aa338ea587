"""The engine `measure` over ssh, to a test server on the loopback. Skipped without root or `sshd`."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Cli
from engpass import child
from engpass.results import outcomes

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")

pytestmark = [
    pytest.mark.skipif(
        SSHD is None
        or shutil.which("ssh") is None
        or shutil.which("ssh-keygen") is None
        or os.geteuid() != 0,
        reason="needs root, `sshd`, `ssh` and `ssh-keygen`",
    ),
]


@dataclass(frozen=True)
class Server:
    port: int
    directory: Path


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An ssh server at a free port, with its own keys; `ssh` knows it as `lab`."""
    assert SSHD is not None
    home = tmp_path / "ssh"
    home.mkdir(mode=0o700)
    for name in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)]
        subprocess.run(make, check=True)
    (home / "authorized").write_text((home / "user.pub").read_text())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    (home / "known").write_text(f"[127.0.0.1]:{port} {(home / 'host.pub').read_text()}")
    (home / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {home}/host\nAuthorizedKeysFile {home}/authorized\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "PidFile none\n"
    )
    (home / "config").write_text(
        f"Host lab\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {home}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {home}/known\n"
    )
    # Put an `ssh` first in `PATH` that reads this configuration instead of the user's.
    tools = tmp_path / "bin"
    tools.mkdir()
    real = shutil.which("ssh")
    (tools / "ssh").write_text(f'#!/bin/sh\nexec {real} -F {home}/config "$@"\n')
    (tools / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("ENGPASS_AGENT", shlex.join(child.interpreter("engpass", "agent")))
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(home / "sshd_config")], stderr=subprocess.DEVNULL)
    last = time.monotonic() + 20
    while time.monotonic() < last:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield Server(port, home)
    process.terminate()
    process.wait(timeout=20)


FILE = """\
name = "over ssh"
[host.here]
reach = "local"
address = "127.0.0.1"
[host.there]
reach = "ssh lab"
address = "127.0.0.1"
[link.lan]
ends = ["here", "there"]
medium = "ethernet-10g"
[traffic.bulk]
kind = "tcp-stream"
from = "here"
to = "there"
message = "64 KiB"
[run]
duration = "300 ms"
"""


def test_a_host_behind_ssh_is_measured(cli: Cli, server: Server) -> None:
    (cli.directory / "ssh.toml").write_text(FILE)
    said = cli("run", "ssh.toml", "--engine", "measure", "--json")
    outcome = outcomes.read(said.stdout)
    assert outcome.flows["bulk"].goodput_bit_per_s > 1e6
    assert set(outcome.hosts) == {"here", "there"}


def test_refused_ssh_key_is_reported_with_a_remedy(cli: Cli, server: Server) -> None:
    (server.directory / "authorized").write_text("")
    (cli.directory / "ssh.toml").write_text(FILE)
    said = cli("run", "ssh.toml", "--engine", "measure", code=1).stderr
    assert "host `there`: ssh lab failed" in said
    assert "Permission denied" in said
    assert "help: let `ssh lab true` work without a question" in said


def test_ssh_host_without_engpass_is_an_error(
    cli: Cli, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGPASS_AGENT", "no-such-agent")
    text = FILE.replace('reach = "local"\naddress = "127.0.0.1"', 'reach = "ssh lab"\naddress = "127.0.0.1"')
    (cli.directory / "ssh.toml").write_text(text)
    said = cli("run", "ssh.toml", "--engine", "measure", code=1).stderr
    assert "has no agent" in said
    assert "ENGPASS_AGENT" in said
