"""Emulated testbeds with the real driver: real programs across the model. Needs root and `/dev/net/tun`.

The machine of a test may be slow: the tests assert decisions of the model, not lateness; they assert rates
only of runs that kept up.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import Cli, Program
from engpass import _engpass, netlab
from engpass.netlab import emulated
from engpass.results import outcomes
from engpass.types.outcome import FlowOutcome, Outcome
from keeps_up import when_it_keeps_up
from required import known
from test_capture import packets
from test_emulated import end_driver, nothing_is_left  # noqa: F401 (used by pytest)
from test_emulated import pytestmark as needs_tun

pytestmark = [
    needs_tun,
    pytest.mark.skipif(not hasattr(_engpass, "emulate"), reason="the native module has no driver"),
]

ATM = """\
name = "atm"
[host.near]
[host.far]
[host.generator]
[switch.s]
kind = "atm"
output_buffer = "400 cells"
schedule = "priority"
[link.in]
ends = ["near", "s"]
medium = "oc-3c"
[link.out]
ends = ["s", "far"]
medium = "oc-3c"
delay = "5 ms"
[link.noise]
ends = ["generator", "s"]
medium = "oc-3c"
[circuit.data]
from = "near"
to = "far"
[traffic.stream]
kind = "udp-stream"
from = "near"
to = "far"
message = "9 kB"
live = { send_buffer = "500 kB" }
[traffic.interference]
kind = "cbr"
from = "generator"
to = "far"
rate = "130 Mbit/s line"
[run]
duration = "1200 ms"
warmup = "200 ms"
repeats = 1
[variant.shaped]
"circuit.data.shaping" = "16 %"
[variant.overrun]
"""


@pytest.fixture(autouse=True)
def real(nothing_is_left: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811 (the fixture)
    monkeypatch.delenv(emulated.DRIVER, raising=False)


@pytest.fixture
def atm(tmp_path: Path) -> Path:
    path = tmp_path / "atm.toml"
    path.write_text(ATM)
    return path


# Sends datagrams and receives their echoes; prints the shortest round trip in milliseconds.
PING = """
import socket, sys, time
here, there = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a:
    a.bind((here, 0)); a.settimeout(10); a.connect((there, 7))
    took = []
    for _ in range(5):
        begin = time.monotonic()
        a.send(b"x" * 100)
        try:
            a.recv(200)
        except ConnectionRefusedError:
            took.append(time.monotonic() - begin)
    assert len(took) == 5
    print(min(took) * 1e3)
"""


@pytest.mark.alone
@pytest.mark.usefixtures("atm")
def test_round_trip_takes_at_least_the_modelled_delay(cli: Cli, program: Program) -> None:
    cli("up", "atm.toml", "--log", "atm.log")
    try:
        said = program("exec", "atm.toml", "near", "--", sys.executable, "-c", PING, "10.64.0.1", "10.64.0.2")
        assert 10.0 < float(said.stdout) < 200.0
        status = json.loads(cli("watch", "atm.toml", "--once", "--json", "--interval", "0.2").stdout)
        hosts = {host["name"]: host for host in status["hosts"]}
        # The datagrams, and the replies that their port is closed.
        assert hosts["near"]["sent_packets"] == hosts["far"]["received_packets"] == 5
        assert hosts["far"]["sent_packets"] == hosts["near"]["received_packets"] == 5
        assert status["lateness"]["packets"] == 10
    finally:
        cli("down", "atm.toml")
    replayed = cli("replay", "atm.log").stdout
    assert re.fullmatch(r"10 inputs, 10 outputs: identical\n", replayed)


def points(cli: Cli, *args: str) -> dict[str, Outcome]:
    said = cli("run", "atm.toml", "--json", "--fresh", "--limit", "1 s", *args)
    found = [outcomes.read(line) for line in said.stdout.splitlines()]
    return {f"{one.engine} {one.variant}": one for one in found}


# The queues of the shaper and of the sender's device bridge shorter stops of the machine.
LOST_MS = 60


def goodput(point: Outcome) -> float:
    """Goodput of the stream at its receiver, in bit/s."""
    return point.flows["stream"].goodput_bit_per_s


def received(flow: FlowOutcome) -> int:
    """Datagrams that the receiver got."""
    return known(flow.datagrams).received


def carried(point: Outcome) -> float:
    """Rate that the network carried, in bit/s of virtual time."""
    return known(point.emulated).host_pairs["near to far"].goodput_bit_per_s


@pytest.mark.usefixtures("atm")
def test_shaper_below_the_free_capacity_avoids_all_losses(cli: Cli) -> None:
    (simulated,) = points(cli, "--engine", "simulate", "--variant", "shaped").values()

    def emulated() -> Outcome:
        (point,) = points(cli, "--engine", "emulate", "--variant", "shaped").values()
        assert known(point.flows["stream"].datagrams).lost == 0
        # The model's ledger of the measured second.
        (side,) = (side for side in point.links["out"].directions if side.from_ == "s")
        assert known(side.ledger).accounts["generator: interference"] > 0
        assert point.flows["interference"].kind == "cbr"
        assert point.valid
        # No machine can exceed the rate of the model's shaper.
        assert carried(point) < 1.01 * goodput(simulated)
        return point

    # Tolerance for datagrams at the window edges and for lost time.
    kept = when_it_keeps_up(emulated, lost_ms=LOST_MS)
    assert goodput(kept) == pytest.approx(goodput(simulated), rel=0.1)
    assert carried(kept) == pytest.approx(goodput(simulated), rel=0.1)


@pytest.mark.usefixtures("atm")
def test_unshaped_stream_loses_nearly_everything(cli: Cli) -> None:
    found = points(cli, "--engine", "simulate,emulate", "--variant", "overrun")
    assert goodput(found["simulate overrun"]) == 0
    point = found["emulate overrun"]
    # A sender without CPU leaves room in the full queue. A datagram needs 165 free cells, since 25 of its
    # cells leave meanwhile, and 13 % of the line is free: therefore 1250 cells must not have been sent.
    (side,) = (side for side in point.links["in"].directions if side.from_ == "near")
    books = known(side.ledger)
    unsent = known(side.cells).capacity * books.accounts.get("idle: real host", 0) / books.capacity
    assert received(point.flows["stream"]) <= 2 + unsent / 1250
    assert any(drop.flow == "stream" and drop.cells > 1000 for drop in point.drops)


@pytest.mark.usefixtures("atm")
def test_time_dilated_goodput_equals_simulate(cli: Cli) -> None:
    (simulated,) = points(cli, "--engine", "simulate", "--variant", "shaped").values()

    def slow() -> Outcome:
        (point,) = points(cli, "--engine", "emulate", "--variant", "shaped", "--slow", "3").values()
        assert carried(point) < 1.01 * goodput(simulated)
        return point

    kept = when_it_keeps_up(slow, lost_ms=2 * LOST_MS)
    assert goodput(kept) == pytest.approx(goodput(simulated), rel=0.1)


SHAPED = ("run", "atm.toml", "--engine", "emulate", "--variant", "shaped", "--fresh", "--limit", "1 s")


@pytest.mark.usefixtures("atm")
@pytest.mark.parametrize(
    "how", [(), ("--wire-true",), ("--slow", "2", "--clock", "hybrid")], ids=["super", "wire-true", "slow"]
)
def test_capture_report_counts_the_packets_written(cli: Cli, how: tuple[str, ...]) -> None:
    said = cli(*SHAPED, *how, "--json", "--capture", "link.out.s=out.pcapng", "--capture-as", "ip")
    (told,) = re.findall(r"captured ([\d,]+) to `out.pcapng`\n", said.stderr)
    written = packets(cli.directory / "out.pcapng")
    # Datagrams of the measured second, of the time around it, and traffic between the agents.
    (point,) = (outcomes.read(line) for line in said.stdout.splitlines())
    assert written == int(told.replace(",", "")) > received(point.flows["stream"]) > 0


@pytest.mark.usefixtures("atm")
def test_capture_reports_that_its_limit_was_reached(cli: Cli) -> None:
    said = cli(*SHAPED, "--capture", "link.in=in.pcapng", "--capture-limit", "7 packets").stderr
    assert "captured 7 to `in.pcapng` (limit reached)\n" in said
    assert packets(cli.directory / "in.pcapng") == 7


@pytest.mark.usefixtures("atm")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_ends_the_capture_and_not_the_network(cli: Cli) -> None:
    ended = cli(*SHAPED, "--json", "--capture", "link.out=/dev/full", code=1)
    assert "error: the capture `/dev/full` ended early: " in ended.stderr
    assert "No space left on device" in ended.stderr
    assert "`--capture-limit` limits its size" in ended.stderr
    point = outcomes.read(ended.stdout)
    assert received(point.flows["stream"]) > 100


@pytest.mark.usefixtures("atm")
def test_down_reports_the_captured_packets(cli: Cli, program: Program) -> None:
    cli("up", "atm.toml", "--capture", "link.in.near=near.pcapng", "--capture-as", "ip")
    program("exec", "atm.toml", "near", "--", sys.executable, "-c", PING, "10.64.0.1", "10.64.0.2")
    said = cli("down", "atm.toml").stderr
    assert f"captured 5 to `{cli.directory / 'near.pcapng'}`\n" in said
    assert packets(cli.directory / "near.pcapng") == 5


@pytest.mark.usefixtures("atm")
def test_capture_of_a_killed_driver_is_reported_as_an_error(cli: Cli) -> None:
    cli("up", "atm.toml", "--capture", "link.in=in.pcapng")
    (lab,) = [lab for lab in netlab.labs() if lab.file.startswith(str(cli.directory))]
    assert lab.driver is not None
    os.kill(lab.driver, signal.SIGKILL)
    (told,) = netlab.down(lab).captured
    assert told == {
        "path": str(cli.directory / "in.pcapng"),
        "error": "its driver ended without an error message",
    }


@pytest.mark.usefixtures("atm")
@pytest.mark.parametrize("number", ["INT", "TERM"])
def test_driver_ends_cleanly_on_a_signal(cli: Cli, program: Program, number: str) -> None:
    files = ("--capture", "link.in.near=near.pcapng", "--capture-as", "ip", "--log", "atm.log")
    # A background job of a shell ignores SIGINT, and its children inherit that.
    up = shlex.join([sys.executable, "-m", "engpass", "up", "atm.toml", *files])
    program.shell(f"trap '' INT; exec {up}")
    program("exec", "atm.toml", "near", "--", sys.executable, "-c", PING, "10.64.0.1", "10.64.0.2")
    end_driver(netlab.find(str(cli.directory / "atm.toml")), signal.Signals[f"SIG{number}"])
    said = cli("down", "atm.toml").stderr
    assert "had ended: a signal stopped it" in said
    assert f"captured 5 to `{cli.directory / 'near.pcapng'}`\n" in said
    assert cli("replay", "atm.log").stdout == "10 inputs, 10 outputs: identical\n"


# Enough datagrams to fill the small disk with their log, at a rate that the network carries.
MANY = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a:
    for _ in range(40):
        for _ in range(50):
            try:
                a.sendto(b"x" * 20, ("10.64.0.2", 7))
            except ConnectionRefusedError:
                pass
        time.sleep(0.01)
"""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A directory on a disk of 64 kB."""
    path = tmp_path / "small"
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "engpass-test", str(path)], capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.mark.usefixtures("atm")
def test_truncated_log_is_reported(cli: Cli, program: Program, small: Path) -> None:
    cli("up", "atm.toml", "--log", "small/a.log", "--capture", "link.in.near=near.pcapng")
    try:
        program("exec", "atm.toml", "near", "--", sys.executable, "-c", MANY)
        wait_for(lambda: "No space left" in cli("watch", "atm.toml", "--once", "--interval", "0.05").stdout)
    finally:
        ended = cli("down", "atm.toml", code=1)
    assert f"error: the log `{small / 'a.log'}` ended early: No space left on device" in ended.stderr
    assert "captured 2,000 to " in ended.stderr, "nothing else has ended"
    replayed = cli("replay", "small/a.log").stdout
    assert replayed.endswith(": identical; the log is incomplete: it has no end record\n")


@pytest.mark.usefixtures("atm")
def test_truncated_log_of_a_point_is_reported(cli: Cli, small: Path) -> None:
    # Leave room only for the header.
    (small / "full").write_bytes(bytes(56 << 10))
    ended = cli(*SHAPED, "--json", "--log", "small", code=1)
    assert f"error: the log `{small / 'point-000000.log'}` ended early: No space left" in ended.stderr
    (point,) = (outcomes.read(line) for line in ended.stdout.splitlines())
    assert received(point.flows["stream"]) > 100


@pytest.mark.usefixtures("atm")
def test_log_and_capture_survive_a_killed_driver(cli: Cli, program: Program) -> None:
    cli("up", "atm.toml", "--log", "atm.log", "--capture", "link.in.near=near.pcapng")
    (lab,) = [lab for lab in netlab.labs() if lab.file.startswith(str(cli.directory))]
    try:
        assert packets(cli.directory / "near.pcapng") == 0, "its head can be read at once"
        program("exec", "atm.toml", "near", "--", sys.executable, "-c", PING, "10.64.0.1", "10.64.0.2")
        log = cli.directory / "atm.log"
        # Five datagrams and five replies: ten packets, each with an input record and an output record.
        wait_for(lambda: len(log.read_bytes().partition(b"\n")[2]) == 20 * 48)
        wait_for(lambda: packets(cli.directory / "near.pcapng") == 5)
        assert lab.driver is not None
        os.kill(lab.driver, signal.SIGKILL)
    finally:
        netlab.down(lab)
    assert cli("replay", "atm.log").stdout == (
        "10 inputs, 10 outputs: identical; the log is incomplete: it has no end record\n"
    )


@pytest.mark.usefixtures("atm")
def test_replay_rejects_a_damaged_or_empty_log(cli: Cli, program: Program) -> None:
    cli("up", "atm.toml", "--log", "atm.log")
    try:
        program("exec", "atm.toml", "near", "--", sys.executable, "-c", PING, "10.64.0.1", "10.64.0.2")
    finally:
        cli("down", "atm.toml")
    log = cli.directory / "atm.log"
    data = log.read_bytes()
    header = data.index(b"\n") + 1
    damaged = bytearray(data)
    damaged[header + 24] = 200
    log.write_bytes(damaged)
    told = cli("replay", "atm.log", code=2).stderr
    assert f"`atm.log` cannot be replayed: record 0, at byte {header}, is damaged: " in told
    assert "it refers to path 200" in told
    log.write_bytes(data[:header])
    assert "there is nothing to compare: the log has no packets, and it is incomplete" in (
        cli("replay", "atm.log", code=2).stderr
    )


def wait_for(happens: Callable[[], bool]) -> None:
    """Wait until a condition holds; a driver may be slow."""
    last = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < last
        time.sleep(0.02)


CUT = """\
name = "cut"
[host.a]
[host.b]
[link.l]
ends = ["a", "b"]
medium = "ethernet-100"
delay = "5 ms"
[traffic.t]
kind = "udp-stream"
from = "a"
to = "b"
message = "1000 B"
rate = "4 Mbit/s"
[run]
duration = "2 s"
[event.down]
target = "l"
at = "500 ms"
change = "down"
[event.up]
target = "l"
at = "1 s"
change = "up"
"""


@pytest.mark.alone
def test_emulated_flow_has_its_outage_and_the_line_that_was_down(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "cut.toml").write_text(CUT)
    said = cli("run", "cut.toml", "--engine", "simulate,emulate", "--json", "--limit", "1 s", "--slow", "2")
    modelled, emulated_ = (outcomes.read(line) for line in said.stdout.splitlines())
    wanted, found = (known(one.flows["t"].outage) for one in (modelled, emulated_))
    # A packet every 2 ms; a busy machine may delay some more.
    assert found.longest_s == pytest.approx(wanted.longest_s, abs=0.1)
    assert found.lost == pytest.approx(wanted.lost, abs=50)
    assert "at `a -> b` (line down)" in known(emulated_.flows["t"].summary)


TRANSFER = """\
name = "transfer"
[host.a]
[host.b]
[router.r]
queue = { drop-tail = { limit = "6 packets" } }
[link.x]
ends = ["a", "r"]
medium = "ethernet-100"
[link.y]
ends = ["r", "b"]
medium = "ethernet-10"
delay = "20 ms"
[traffic.t]
kind = "tcp-stream"
from = "a"
to = "b"
message = "14480 B"
count = 2
[run]
duration = "3 s"
"""


@pytest.mark.alone
def test_retransmissions_after_the_last_write_of_a_transfer_count(cli: Cli, tmp_path: Path) -> None:
    """The send buffer takes all data before the first segment is lost in the queue of six packets."""
    (tmp_path / "transfer.toml").write_text(TRANSFER)
    said = cli("run", "transfer.toml", "--engine", "emulate", "--json", "--limit", "1 s", "--repeats", "3")
    flows = [outcomes.read(line).flows["t"] for line in said.stdout.splitlines()]
    assert [known(flow.transfer).received_bytes for flow in flows] == [2 * 14480] * 3
    # On a busy machine, packets may leave one by one, or before the network counts.
    counts = [(known(known(flow.tcp).retransmitted_segments), known(flow.datagrams).lost) for flow in flows]
    assert any(retransmitted >= lost > 0 for retransmitted, lost in counts), counts
