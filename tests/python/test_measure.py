"""The controller of `measure`, with agents without traffic: requests, stored outcomes, failures."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Program
from engpass import measure
from engpass.measure import agent as agents
from engpass.measure.agent_access import way
from engpass.results import outcomes
from engpass.types.outcome import Datagrams, Latency, Outcome, PointPrecision, Tcp
from required import known

FAKE = f"{sys.executable} {Path(__file__).parent / 'fake_agent.py'}"

FILE = """\
name = "two"
[host.a]
reach = "local"
tcp = { congestion = "reno", rto_minimum = "1 s" }
[host.b]
reach = "local"
[link.cable]
ends = ["a", "b"]
medium = "ethernet-1g"
[traffic.bulk]
kind = "tcp-stream"
from = "a"
to = "b"
message = "1 kB"
tcp = { congestion = "cubic", nagle = "off" }
live = { dscp = "ef", send_cores = [1], method = "sendfile" }
[traffic.paced]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "8 Mbit/s"
live = { pacing = "busy" }
[traffic.probe]
kind = "request-response"
from = "b"
to = "a"
request = "100 B"
response = "200 B"
transport = "udp"
every = "10 ms"
[run]
duration = "200 ms"
warmup = "100 ms"
[sweep]
"traffic.bulk.message" = ["1 kB", "2 kB", "3 kB"]
"""


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    monkeypatch.setenv("ENGPASS_AGENT", FAKE)
    monkeypatch.delenv("FAKE_AGENT", raising=False)
    yield monkeypatch
    assert not _agents_of(os.getpid()), "agents outlive their campaign"


def _agents_of(controller: int) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        if b"fake_agent.py" in command and parent == controller:
            found.append(int(process.name))
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(FILE)
    return path


def lines(cli: Cli, *args: str, code: int = 0) -> list[str]:
    """The lines that a run prints, one per point."""
    return cli("run", "two.toml", "--engine", "measure", "--json", *args, code=code).stdout.splitlines()


def points(cli: Cli, *args: str) -> list[Outcome]:
    return [outcomes.read(line) for line in lines(cli, *args)]


def errors(cli: Cli) -> list[str | None]:
    """The error of each point of a run in which some points fail."""
    return [json.loads(line).get("error") for line in lines(cli, code=1)]


def test_ssh_destination_follows_a_double_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGPASS_AGENT", "/opt/engpass agent --max-rate 5")
    how, argv = way("b", "ssh kim@example.org", None)
    assert how == "ssh kim@example.org"
    assert argv[0] == "ssh"
    assert argv[-3:] == ["--", "kim@example.org", "/opt/engpass agent --max-rate 5"]


def test_measured_points_are_stored_like_those_of_other_engines(cli: Cli, file: Path) -> None:
    found = points(cli)
    assert [outcomes.swept(one, "traffic.bulk.message") for one in found] == [1000, 2000, 3000]
    first = found[0]
    assert first.engine == "measure"
    bulk = first.flows["bulk"]
    # 100 messages per second for 100 ms; one does not arrive.
    assert bulk.offered_bit_per_s == 10 * 8000 / 0.1
    assert bulk.goodput_bit_per_s == 9 * 8000 / 0.1
    counted = Tcp(retransmitted_segments=5, smoothed_rtt_s=42e-6, receive_window_limited_share=0.25)
    assert bulk.tcp == counted
    assert known(bulk.real).ends["a"]["streams"][0]["granted"] == {"congestion": "fake"}
    paced = first.flows["paced"]
    assert paced.datagrams == Datagrams(sent=10, received=9, lost=1, duplicate=0, reordered=1)
    assert [[step.link for step in path.steps] for path in paced.paths] == [["cable"]]
    probe = known(known(first.flows["probe"].real).requests)
    assert probe.per_s == 100.0
    assert probe.latency_s == Latency(mean=2e-6, min=1e-6, p50=1.5e-6, p99=9e-6)
    assert first.hosts["b"]["changes"] == {"at_ns": 4}
    assert known(first.measured).carrier == "hosts"
    again = cli("run", "two.toml", "--engine", "measure")
    assert "all 3 points are already stored" in again.stderr


def test_limit_simulate_and_measure_are_shown_side_by_side(cli: Cli, file: Path) -> None:
    text = file.read_text().replace("ethernet-1g", "ethernet-10")
    file.write_text(text[: text.index("[traffic.probe]")] + text[text.index("[run]") :])
    said = cli("run", "two.toml", "--engine", "limit,simulate,measure")
    assert all(word in said.stdout for word in ("Engine", "simulate", "measure"))
    assert "note: limit and simulate: `traffic.bulk.live` is ignored" in said.stderr
    assert "note: measure: TCP of host `a` is the kernel's" in said.stderr
    cli("report", "last", "-o", "r.html")
    assert "measure" in (file.parent / "r.html").read_text()


def test_model_engines_leave_out_a_probe_with_a_note(cli: Cli, file: Path) -> None:
    said = cli("run", "two.toml", "--engine", "limit,simulate", "--json")
    assert "limit and simulate: traffic `probe` has no result" in said.stderr
    for line in said.stdout.splitlines():
        outcome = outcomes.read(line)
        assert list(outcome.flows) == ["bulk", "paced"]
        assert outcome.without == {"probe": "the model has no application that answers requests"}
    assert "paced" in cli("limit", "two.toml").stdout


def test_simulate_rejects_probe_traffic_with_noticeable_load(cli: Cli, file: Path) -> None:
    often = ("--set", 'traffic.probe.every="10 us"')
    said = cli("run", "two.toml", "--engine", "simulate", *often, code=1)
    assert "traffic `probe` is `request-response`, which runs only on real hosts" in said.stderr
    assert "help: run it with `--engine measure` or `--engine emulate`, or remove it" in said.stderr


def test_unreached_precision_ends_a_point_at_the_longest_time(cli: Cli, file: Path) -> None:
    """The fake agents report nothing meanwhile: the point ends at its longest time, and says so."""
    asked = ("--set", 'run.precision="5 %"', "--set", 'run.longest="400 ms"')
    outcome = points(cli, *asked)[0]
    assert known(outcome.measured).precision == PointPrecision(asked=0.05, reached=False)
    paced = outcome.flows["paced"]
    precision = known(known(paced.real).precision)
    assert (precision.reached, precision.intervals) == (False, 0)
    # 100 messages per second for 300 ms.
    assert known(paced.datagrams).sent == 30


def test_a_failed_point_does_not_end_the_campaign(cli: Cli, file: Path, fake: pytest.MonkeyPatch) -> None:
    fake.setenv("FAKE_AGENT", "fail=2000")
    assert errors(cli) == [None, "host `b`: nobody listens\nhelp: look at the firewall", None]
    fake.delenv("FAKE_AGENT")
    said = cli("run", "two.toml", "--engine", "measure")
    assert "2 of 3 points are already stored; 1 failed points are retried" in said.stderr


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("broken", "the agent of host `a` (local) ended with exit code 3: no libraries here"),
        ("old", "the agent of host `a` speaks protocol 9, but this engpass speaks protocol 1"),
        ("silent", "host `a` (local) does not answer within 0.3 s"),
        # Control characters are not passed on to the terminal, and only three lines are shown.
        ("garbage", "does not answer within 3 s: [2Jhello \ufffd; [2Jhello \ufffd; [2Jhello \ufffd"),
        ("die-in-run", "the agent of host `a` (local) ended with exit code 9: out of luck"),
    ],
)
def test_failing_agent_is_reported_with_its_reason(
    cli: Cli, file: Path, fake: pytest.MonkeyPatch, how: str, cause: str
) -> None:
    fake.setenv("FAKE_AGENT", how)
    # An agent that prints garbage needs time to start and print it.
    fake.setattr(agents, "HELLO_SECONDS", {"silent": 0.3, "garbage": 3.0}.get(how, 30.0))
    file.write_text(FILE.replace('["1 kB", "2 kB", "3 kB"]', '["1 kB"]'))
    (error,) = errors(cli)
    first = known(error).splitlines()[0]
    assert cause in first or cause.replace("`a`", "`b`") in first


def test_agent_that_stops_answering_is_replaced(cli: Cli, file: Path, fake: pytest.MonkeyPatch) -> None:
    fake.setenv("FAKE_AGENT", "freeze=2000")
    for asked in (agents.Crew.answer, agents.Crew.done):
        fake.setattr(asked, "__defaults__", (1.0,))
    before, error, after = errors(cli)
    assert (before, after) == (None, None), "the next point has another agent"
    assert "(local) does not answer within 1 s\nhelp: the next point starts a new agent" in known(error)


def test_an_agent_that_falls_silent_in_a_run_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    crew = agents.Crew()
    one = crew.add("a", "local", FAKE.split())
    try:
        crew.greeted([one])
        one.watch()
        monkeypatch.setattr(agents, "QUIET_SECONDS", 0.3)
        time.sleep(0.4)
        with pytest.raises(agents.GoneError, match=r"host `a` \(local\) does not answer within"):
            one.watch()
        assert one.gone
    finally:
        crew.end()


def test_missing_namespace_is_named_with_a_remedy() -> None:
    said = ['Cannot open network namespace "lab": No such file or directory']
    cause, cure = agents.why_gone("a", "netns lab", 255, said)
    assert cause == f"host `a` (netns lab): {said[0]}"
    assert cure == "`ip netns list` shows the namespaces of this machine"


def test_unreachable_host_fails_its_points(cli: Cli, file: Path) -> None:
    # `ssh` would take this name for an option.
    file.write_text(FILE.replace('reach = "local"', 'reach = "ssh -p"', 1))
    assert "has a name that starts with `-`" in cli("run", "two.toml", "--engine", "measure", code=2).stderr
    # No host has this name.
    file.write_text(FILE.replace('reach = "local"', 'reach = "ssh nobody.invalid"', 1))
    said = cli("run", "two.toml", "--engine", "measure", code=1).stderr
    assert "host `a`: ssh nobody.invalid failed" in said or "`ssh` cannot be run" in said
    assert "3 of 3 points failed" in said


def test_unreached_host_is_tried_again_at_the_next_point(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = iter([["false"]])

    def fails_once(host: str, reach: str | None, lab: Any) -> tuple[str, list[str]]:
        how, argv = way(host, reach, lab)
        return how, next(first, argv)

    monkeypatch.setattr(measure, "way", fails_once)
    monkeypatch.setattr(measure, "TRY_AGAIN_SECONDS", 0.0)
    failed = [error is not None for error in errors(cli)]
    assert sorted(failed) == [False, False, True], "points run in an order of their own"


def test_all_hosts_or_none_must_declare_reach(cli: Cli, file: Path) -> None:
    file.write_text(FILE.replace('reach = "local"', "", 1))
    said = cli("run", "two.toml", "--engine", "measure", code=1).stderr
    assert "host `a` has no `reach`, but other hosts have one" in said


def test_interrupt_ends_a_measured_run_and_its_agents(program: Program, file: Path) -> None:
    file.write_text(FILE.replace('duration = "200 ms"', 'duration = "2 s"'))
    running = program.start("run", "two.toml", "--engine", "measure", "--json")
    while running.poll() is None and len(_agents_of(running.pid)) < 2:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130, said
    assert not _agents_of(running.pid)
    assert b"to continue where it stopped" in said
