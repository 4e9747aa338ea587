"""Emulated testbeds with ECMP, and with lines that fail and recover.

Needs root and `/dev/net/tun`; skipped if a program is missing. The tests assert decisions of the model.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from conftest import Cli, Program
from engpass import netlab
from engpass.netlab.control import Control
from engpass.results import outcomes
from test_emulate_live import pytestmark, real  # noqa: F401 (used by pytest)
from test_emulate_programs import iperf3, needs, serving, up
from test_emulated import nothing_is_left  # noqa: F401 (used by pytest)

# Two paths of two links each: the upper one over a switch, the lower one over a router.
WAYS = """\
name = "two ways"
[host.a]
[host.b]
[router.r]
ecmp = "round-robin"
[switch.s]
kind = "ethernet"
[router.m]
[router.t]
ecmp = "round-robin"
[link.in]
ends = ["a", "r"]
medium = "ethernet-1g"
[link.upper]
ends = ["r", "s"]
medium = "ethernet-100"
delay = "2 ms"
[link.upper-far]
ends = ["s", "t"]
medium = "ethernet-100"
[link.lower]
ends = ["r", "m"]
medium = "ethernet-100"
delay = "2 ms"
[link.lower-far]
ends = ["m", "t"]
medium = "ethernet-100"
[link.out]
ends = ["t", "b"]
medium = "ethernet-1g"
[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "4 Mbit/s"
live = { pacing = "sleep" }
[run]
duration = "2 s"
warmup = "0 s"
repeats = 1
"""

# The upper line is down between two instants, in seconds.
CUT = """\
[event.cut]
at = "{} s"
target = "upper"
change = "down"
[event.mended]
at = "{} s"
target = "upper"
change = "up"
"""

HASHED = ("--set", "router.r.ecmp=hash", "--set", "router.t.ecmp=hash")
FIRST = ("--set", "router.r.ecmp=first", "--set", "router.t.ecmp=first")
# ICMP echoes have no ports. With these seeds requests take the upper path, and replies the lower one, since
# `t` does not see the failure.
REPAIRED = (
    *("--set", "router.r.ecmp={ hash = { seed = 7 } }"),
    *("--set", "router.t.ecmp={ hash = { seed = 2 } }"),
)


@pytest.fixture
def ways(tmp_path: Path) -> str:
    path = tmp_path / "ways.toml"
    path.write_text(WAYS)
    return str(path)


def sent(file: str) -> dict[str, int]:
    """Number of frames that each line has sent so far, by link and transmitter."""
    with Control(netlab.find(file).socket) as control:
        return {f"{line['link']} {line['from']}": line["sent"] for line in control.ask("status")["links"]}


def until(file: str, *, down: bool, seconds: float = 20.0) -> float:
    """Wait until the upper line is down, or up again; returns the virtual time in seconds."""
    last = time.monotonic() + seconds
    with Control(netlab.find(file).socket) as control:
        while True:
            status = control.ask("status")
            states = {line["down"] for line in status["links"] if line["link"] == "upper"}
            if states == {down}:
                return float(status["at_ps"]) / 1e12
            assert time.monotonic() < last, states
            time.sleep(0.02)


@needs("ping")
def test_pings_alternate_over_paths_and_ttl_counts_routers(cli: Cli, program: Program, ways: str) -> None:
    with up(cli, ways, "--limit", "1 s"):
        said = program("exec", ways, "a", "--", "ping", "-n", "-c", "6", "-i", "0.2", "10.64.0.2").stdout
        # A ping with a TTL of 2 expires at router `t` on the upper path, and at router `m` on the lower path.
        few = ["ping", "-n", "-c", "4", "-i", "0.2", "-t", "2", "10.64.0.2"]
        expired = program("exec", ways, "a", "--", *few, code=1).stdout
        lines = sent(ways)
    assert "6 received, 0% packet loss" in said
    # The upper path has one router fewer, and replies alternate independently.
    assert [int(ttl) for ttl in re.findall(r"ttl=(\d+)", said)] == [62, 61] * 3
    speakers = re.findall(r"From (\S+) icmp_seq=\d+ Time to live exceeded", expired)
    assert speakers == ["10.64.0.5", "10.64.0.4"] * 2
    assert (lines["upper r"], lines["lower r"]) == (5, 5)
    # Three replies each, and one of the two messages of the last router.
    assert (lines["upper-far t"], lines["lower-far t"]) == (4, 4)


@needs("iperf3")
def test_iperf3_connections_use_both_lines_by_hash(cli: Cli, program: Program, ways: str) -> None:
    with up(cli, ways, "--limit", "1 s", *HASHED), serving(program, ways, "b", "iperf3", "-s", "-1"):
        # Fixed ports: with random ones all connections may use the same line.
        found = iperf3(program, ways, "a", "iperf3 -J -t 3 -P 8 --cport 40000 -c $ENGPASS_ADDRESS_B")
        lines = sent(ways)
    assert found["sum_received"]["bytes"] > 0
    # The eight connections use both lines, in both directions.
    for one, other in [("upper r", "lower r"), ("upper-far t", "lower-far t")]:
        assert lines[one] > 20
        assert lines[other] > 20
    # At most the rate of both lines.
    assert found["sum_received"]["bits_per_second"] < 2 * 100e6


@needs("iperf3")
def test_iperf3_datagrams_alternate_by_round_robin(cli: Cli, program: Program, ways: str) -> None:
    with up(cli, ways, "--limit", "1 s"), serving(program, ways, "b", "iperf3", "-s", "-1"):
        before = sent(ways)
        found = iperf3(program, ways, "a", "iperf3 -J -u -b 5M -l 1000 -t 2 -c $ENGPASS_ADDRESS_B")
        lines = sent(ways)
    upper, lower = (lines[line] - before[line] for line in ("upper r", "lower r"))
    assert found["sum"]["packets"] > 100
    assert upper + lower >= found["sum"]["packets"]
    assert abs(upper - lower) <= 1


@needs("ping")
@pytest.mark.alone
@pytest.mark.parametrize("policy", [FIRST, REPAIRED], ids=["first", "hash"])
def test_ping_loses_packets_only_during_a_line_outage(
    cli: Cli, program: Program, ways: str, policy: tuple[str, ...]
) -> None:
    Path(ways).write_text(WAYS + CUT.format(2, 3))
    with up(cli, ways, "--limit", "1 s", *policy):
        ping = program.start("exec", ways, "a", "--", "ping", "-n", "-c", "80", "-i", "0.05", "10.64.0.2")
        # `engpass watch` shows it.
        assert until(ways, down=True) >= 2.0
        looked = cli("watch", ways, "--once", "--interval", "0.05").stdout
        assert until(ways, down=False) >= 3.0
        said, _ = ping.communicate(timeout=60)
        status = json.loads(cli("watch", ways, "--once", "--json", "--interval", "0.05").stdout)
    (row,) = [line for line in looked.splitlines() if "r -> s" in line]
    assert " down " in row
    answered = [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", said.decode())]
    lost = [number for number in range(1, 81) if number not in answered]
    assert answered[0] == 1
    assert answered[-1] == 80
    counted = sum(link["lost"] for link in status["links"] if link["link"] == "upper")
    if policy == FIRST:
        # Consecutive pings, for one second.
        assert lost == list(range(lost[0], lost[-1] + 1))
        assert 10 <= len(lost) <= 25
        assert counted == len(lost)
    else:
        # At most the packet in flight.
        assert len(lost) <= 1


@needs("iperf3")
def test_iperf3_continues_after_a_line_failure(cli: Cli, program: Program, ways: str) -> None:
    Path(ways).write_text(WAYS + CUT.format(2, 3))
    with (
        up(cli, ways, "--limit", "1 s", "--log", "ways.log", *HASHED),
        serving(program, ways, "b", "iperf3", "-s", "-1"),
    ):
        command = "iperf3 -J -b 20M -t 4 -c $ENGPASS_ADDRESS_B"
        found = iperf3(program, ways, "a", command)
    assert found["sum_received"]["bytes"] > 1_000_000
    # The replay repeats the losses and the packets over the other line.
    assert "identical" in cli("replay", "ways.log").stdout


@pytest.mark.alone
def test_a_run_counts_events_from_its_first_packet(cli: Cli, ways: str) -> None:
    Path(ways).write_text(WAYS + CUT.format("0.5", "1"))
    engines = ("--engine", "simulate,emulate", "--limit", "1 s", "--log", "logs", "--json")
    said = cli("run", ways, *engines, *FIRST).stdout
    found = {point.engine: point for point in map(outcomes.read, said.splitlines())}
    lost = {
        engine: sum(drop.datagrams for drop in point.drops if drop.cause == "line down")
        for engine, point in found.items()
    }
    # 500 datagrams per second, for half a second.
    assert 240 <= lost["simulate"] <= 260
    # A real sender may pause and then catch up.
    assert 100 <= lost["emulate"] <= 400
    (upper,) = [line for line in found["emulate"].links["upper"].directions if line.from_ == "r"]
    assert upper.ledger is not None
    share = upper.ledger.accounts["idle: line down"] / sum(upper.ledger.accounts.values())
    assert 0.2 < share < 0.26
    (log,) = Path(cli.directory / "logs").iterdir()
    assert "identical" in cli("replay", str(log)).stdout


@needs("tshark", "ping")
def test_captures_of_both_lines_contain_all_fragments(cli: Cli, program: Program, ways: str) -> None:
    Path(ways).write_text(WAYS + CUT.format(2, 4))
    files = {line: cli.directory / f"{line}.pcapng" for line in ("upper", "lower")}
    capture = [word for line, file in files.items() for word in ("--capture", f"link.{line}.r={file}")]
    with up(cli, ways, "--limit", "1 s", *capture):
        # Fragments of the sending host alternate like all other packets.
        ping = ["ping", "-n", "-c", "12", "-i", "0.2", "-s", "4000", "10.64.0.2"]
        program("exec", ways, "a", "--", *ping)
        until(ways, down=True)
        program("exec", ways, "a", "--", *ping)
    read = {line: fragments(file) for line, file in files.items()}
    assert len(read["upper"]) >= 12
    assert len(read["lower"]) >= 30
    # Each datagram is complete in the two files together, except for packets queued when the line failed.
    parts = set(read["upper"] + read["lower"])
    assert 24 * 3 - 2 <= len(parts) <= 24 * 3
    assert {8 * offset for _, offset in parts} == {0, 1480, 2960}


def fragments(file: Path) -> list[tuple[str, int]]:
    """Identification and offset of the requests in a capture file; checks that all packets are valid."""
    # While a line is down, a kernel reports missing fragments by ICMP; the filter excludes these packets.
    asked = ["-Y", "icmp.type == 8 || ip.frag_offset > 0"]
    fields = ["-e", "ip.id", "-e", "ip.frag_offset", "-e", "_ws.malformed", "-e", "ip.checksum.status"]
    checks = ["-o", "ip.check_checksum:TRUE", "-o", "ip.defragment:FALSE"]
    said = subprocess.run(
        ["tshark", "-n", "-r", file, *checks, *asked, "-T", "fields", *fields],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line.split("\t") for line in said.stdout.splitlines()]
    assert all((malformed, status) == ("", "1") for _, _, malformed, status in lines)
    return [(number, int(offset)) for number, offset, *_ in lines]
