"""The agent as a controller starts it: a process behind a pipe."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engpass import child

COMMAND = child.interpreter("engpass", "agent")


def start(*options: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, *options], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def line(agent: subprocess.Popen[str]) -> dict[str, Any]:
    assert agent.stdout is not None
    found: dict[str, Any] = json.loads(agent.stdout.readline())
    return found


def ask(agent: subprocess.Popen[str], request: dict[str, Any]) -> dict[str, Any]:
    assert agent.stdin is not None
    agent.stdin.write(json.dumps(request) + "\n")
    agent.stdin.flush()
    return line(agent)


def test_agent_greets_answers_and_ends_with_its_input() -> None:
    with start("--max-rate", "1 Gbit/s", "--max-time", "60 s") as agent:
        hello = line(agent)
        assert (hello["event"], hello["protocol"]) == ("hello", 1)
        assert hello["limits"] == {"rate_bit_per_s": 10**9, "bytes": None, "duration_ns": 60 * 10**9}
        assert ask(agent, {"id": 1, "do": "ping"})["ok"]["now_ns"] > 0
        # The controller handles Ctrl-C at its terminal; the agent ignores it.
        agent.send_signal(signal.SIGINT)
        assert ask(agent, {"id": 2, "do": "ping"})["id"] == 2
        out, err = agent.communicate(timeout=30)
    assert (agent.returncode, out, err) == (0, "", "")


def test_agent_exits_when_its_controller_is_killed() -> None:
    text = f"""
import subprocess, time
agent = subprocess.Popen({COMMAND!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
agent.stdout.readline()
print(agent.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout is not None
        pid = int(controller.stdout.readline())
        controller.kill()
    # Its parent has ended, so only /proc shows whether it still runs.
    end = time.monotonic() + 30
    while time.monotonic() < end and runs(pid):
        time.sleep(0.05)
    assert not runs(pid)


def runs(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("option", [("--max-rate", "1000"), ("--silence", "soon")])
def test_agent_rejects_a_limit_without_a_unit(option: tuple[str, str]) -> None:
    with start(*option) as agent:
        out, err = agent.communicate(timeout=30)
    assert agent.returncode == 2
    assert out == ""
    assert option[1] in err
    assert "help: " in err
