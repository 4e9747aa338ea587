"""Failures of `measure`: agents stopped at any stage, hosts that accept connections and stay silent."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from pathlib import Path

import pytest

from conftest import Cli
from engpass.measure import agent as agents

FAKE = f"{sys.executable} {Path(__file__).parent / 'fake_agent.py'}"

FILE = """\
name = "two"
[host.a]
reach = "local"
[host.b]
reach = "local"
[link.cable]
ends = ["a", "b"]
medium = "ethernet-1g"
[traffic.paced]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "8 Mbit/s"
[run]
duration = "200 ms"
warmup = "100 ms"
[sweep]
"traffic.paced.message" = ["1 kB", "2 kB"]
"""


@pytest.mark.parametrize("stage", ["prepare", "start", "readings", "collect"])
def test_stopped_agent_is_noticed_at_every_stage(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Its silence reveals it, long before a response times out; the next point gets a new agent."""
    monkeypatch.setenv("ENGPASS_AGENT", FAKE)
    monkeypatch.setenv("FAKE_AGENT", f"stop={stage}=2000")
    monkeypatch.setattr(agents, "QUIET_SECONDS", 3.0)
    monkeypatch.setattr(agents, "_ASK_SECONDS", 0.5)
    monkeypatch.setattr(agents.Crew.answer, "__defaults__", (60.0,))
    (cli.directory / "two.toml").write_text(FILE)
    said = cli("run", "two.toml", "--engine", "measure", "--json", code=1)
    one, two = (json.loads(line) for line in said.stdout.splitlines())
    assert "error" not in one
    assert "(local) does not answer within 3 s\nhelp: the next point starts a new agent" in two["error"]


def test_agent_timeouts_are_at_most_ten_seconds() -> None:
    """The longest timeout of each kind, plus a second."""
    assert agents.HELLO_SECONDS + 1 < 10
    assert agents.ANSWER_SECONDS + 1 <= 10
    # A stopped agent may have sent its last message just before the check that requests a ping.
    assert agents.QUIET_SECONDS + agents._ASK_SECONDS + 1 < 10


def test_stopped_controller_takes_no_agent_for_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = agents.Crew()
    one = crew.add("a", "local", FAKE.split())
    try:
        crew.greeted([one])
        now = time.monotonic()
        crew.look()
        monkeypatch.setattr(time, "monotonic", lambda: now + 100.0)
        crew.look()
        assert not one.gone
    finally:
        monkeypatch.undo()
        crew.end()


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs `ssh`")
def test_ssh_host_that_never_answers_times_out(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ssh` times out before the controller does."""
    real = shutil.which("ssh")
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        config = cli.directory / "config"
        config.write_text(f"Host lab\n  HostName 127.0.0.1\n  Port {mute.getsockname()[1]}\n")
        tools = cli.directory / "bin"
        tools.mkdir()
        (tools / "ssh").write_text(f'#!/bin/sh\nexec {real} -F {config} "$@"\n')
        (tools / "ssh").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        monkeypatch.setattr(agents, "HELLO_SECONDS", 60.0)
        (cli.directory / "two.toml").write_text(FILE.replace('reach = "local"', 'reach = "ssh lab"'))
        said = cli("run", "two.toml", "--engine", "measure", code=1).stderr
    assert "ssh lab failed: " in said
    assert "timed out" in said
    assert "2 of 2 points failed" in said
    assert "help: try `ssh lab true`" in said
