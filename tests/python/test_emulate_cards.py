"""Real programs across a router with line cards: a multicast tree behind it, and a GRE tunnel beside it.

Needs root and `/dev/net/tun`; skipped if a program is missing. A capture has the instants of the network, so
tests assert the time of an engine between two packets on any machine; they assert rates and round trips only
of runs that kept up.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from conftest import Cli, Program
from keeps_up import when_it_keeps_up
from test_emulate_live import pytestmark, real  # noqa: F401 (used by pytest)
from test_emulate_programs import iperf3, needs, serving, up
from test_emulated import nothing_is_left  # noqa: F401 (used by pytest)

CARDS = str(Path(__file__).parents[1] / "data/cards.toml")
PUT_UP = ("--limit", "1 s")

# Milliseconds of the engines of `edge`, from the file.
LAN, PUNT, INTERRUPT, MEMBERS = 2.0, 0.5, 0.25, 1.0
FORWARD, PROCESS, ENCAPSULATE, DECAPSULATE = 2.0, 4.0, 1.0, 1.5
TUNNEL_BYTES = 24


def frame_ms(ip_bytes: int) -> float:
    """Time of a packet on Ethernet of 100 Mbit/s: header and FCS 18 B, preamble and gap 20 B."""
    return (max(46, ip_bytes) + 38) * 8 / 100e3


def fields(capture: Path, wanted: str, *names: str) -> list[list[str]]:
    """Fields of the packets of a capture that the filter wants; no packet of the capture may be malformed."""
    asked = [word for name in (*names, "_ws.malformed") for word in ("-e", name)]
    checks = [word for kind in ("ip", "udp") for word in ("-o", f"{kind}.check_checksum:TRUE")]
    read = subprocess.run(
        ["tshark", "-n", "-r", str(capture), *checks, "-Y", wanted, "-T", "fields", *asked],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [line.split("\t") for line in read.stdout.splitlines()]
    assert not any(row[-1] for row in rows), "nothing is malformed"
    return [row[:-1] for row in rows]


def gaps_ms(captures: Sequence[Path], wanted: str) -> list[float]:
    """Times between the ends of packets, of all captures together, in order."""
    times = sorted(
        float(time) for capture in captures for (time,) in fields(capture, wanted, "frame.time_epoch")
    )
    return [1e3 * (after - before) for before, after in pairwise(times)]


def assert_engine_takes(milliseconds: float, gaps: Sequence[float]) -> None:
    """Packets of one length leave the engine at least this time apart, and most of them exactly that.

    A time of a capture is rounded down to nanoseconds, and seconds of a day have six more digits.
    """
    assert len(gaps) > 100
    assert min(gaps) > milliseconds - 2e-5
    assert statistics.median(gaps) == pytest.approx(milliseconds, abs=2e-5)


@needs("ping")
@pytest.mark.parametrize(
    ("host", "engines_ms", "wires_ms"),
    [
        # The card of the LAN without other work, forth; the card of the members, back. Three lines of 1 us.
        ("left", LAN + INTERRUPT + MEMBERS, 2 * 3 * (frame_ms(84) + 1e-3)),
        # The card hands the packet to the route processor, which puts it into the tunnel; back from a link
        # on no card. Two lines of 1 us, and the tunnel's of 5 ms.
        (
            "site",
            PUNT + INTERRUPT + FORWARD + ENCAPSULATE + FORWARD + DECAPSULATE,
            2 * (2 * (frame_ms(84) + 1e-3) + frame_ms(84 + TUNNEL_BYTES) + 5),
        ),
    ],
    ids=["unicast", "tunnel"],
)
def test_ping_takes_the_time_of_every_engine(
    cli: Cli, program: Program, host: str, engines_ms: float, wires_ms: float
) -> None:
    def round_trip() -> float:
        command = f"ping -c 10 -i 0.1 $ENGPASS_ADDRESS_{host.upper()}"
        said = program("exec", CARDS, "source", "--", "sh", "-c", command).stdout
        assert " 0% packet loss" in said
        (least,) = re.findall(r"min/avg/max/mdev = ([\d.]+)/", said)
        return float(least)

    with up(cli, CARDS, *PUT_UP):
        least = when_it_keeps_up(round_trip, lost_ms=60)
    # At least one of ten pings is nearly on time.
    expected = engines_ms + wires_ms
    assert expected - 0.001 < least < expected + 1


@needs("iperf3", "tshark")
@pytest.mark.parametrize(
    ("host", "link", "wanted", "engine_ms"),
    [
        ("left", "left", "udp && ip.len == 1028", LAN),
        ("site", "wan", "gre && udp.length == 1008", FORWARD + ENCAPSULATE),
    ],
    ids=["unicast", "tunnel"],
)
def test_iperf3_datagrams_get_the_rate_of_the_slowest_engine(
    cli: Cli, program: Program, host: str, link: str, wanted: str, engine_ms: float
) -> None:
    """1000 datagrams each second are twice, and three times, as many as the engine forwards."""
    capture = cli.directory / "out.pcapng"
    received = []

    def rate() -> float:
        command = f"iperf3 -J -u -b 8M -l 1000 -t 2 -c $ENGPASS_ADDRESS_{host.upper()}"
        with serving(program, CARDS, host, "iperf3", "-s", "-1"):
            found = iperf3(program, CARDS, "source", command)
        received.append(found["sum_received"]["bytes"] / 1000)
        return float(received[-1] / found["sum_sent"]["seconds"])

    with up(cli, CARDS, *PUT_UP, f"--capture=link.{link}.edge={capture}"):
        kept = when_it_keeps_up(rate, lost_ms=100)
    gaps = gaps_ms([capture], wanted)
    assert_engine_takes(engine_ms, gaps)
    assert sum(received) <= len(gaps) + 1
    # At most 20 packets of the queue follow in 2 s, and iperf3's control connection takes a few in a hundred.
    assert kept == pytest.approx(1e3 / engine_ms, rel=0.1)


@needs("iperf3", "tshark")
def test_iperf3_tcp_stays_within_the_rate_of_a_card(cli: Cli, program: Program) -> None:
    """Each segment takes the card's time, although the stack hands over several together."""
    capture = cli.directory / "out.pcapng"
    with (
        up(cli, CARDS, *PUT_UP, f"--capture=link.left.edge={capture}"),
        serving(program, CARDS, "left", "iperf3", "-s", "-1"),
    ):
        found = iperf3(program, CARDS, "source", "iperf3 -J -t 4 -c $ENGPASS_ADDRESS_LEFT")
    most = 1448 * 8 / (LAN / 1e3)
    assert 0.3 * most < found["sum_received"]["bits_per_second"] < 1.05 * most
    assert_engine_takes(LAN, gaps_ms([capture], "tcp.len == 1448"))


# Joins a group, and prints the number of datagrams when none has come for some seconds.
RECEIVE = """
import socket, sys
group, patience = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind((group, 5000))
    joined = socket.inet_aton(group) + socket.inet_aton("0.0.0.0")
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
    print("ready", flush=True)
    count = 0
    s.settimeout(20)
    try:
        while True:
            s.recv(2000)
            count += 1
            s.settimeout(float(patience))
    except TimeoutError:
        print(count)
"""

# Sends datagrams of 1000 bytes to a group, at most as fast as asked.
SEND = """
import socket, sys, time
group, count, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    for _ in range(count):
        s.sendto(bytes(1000), (group, 5000))
        time.sleep(1 / rate)
"""


@contextmanager
def members(program: Program, group: str, *hosts: str) -> Iterator[dict[str, int]]:
    """Programs in hosts that have joined the group; the number of their datagrams is there at the end."""
    counts: dict[str, int] = {}
    with ExitStack() as stack:
        words = ("--", sys.executable, "-c", RECEIVE, group, "3")
        receivers = {host: program.start("exec", CARDS, host, *words) for host in hosts}
        for receiver in receivers.values():
            stack.callback(receiver.wait, timeout=10)
            stack.callback(receiver.terminate)
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == b"ready\n"
        yield counts
        for host, receiver in receivers.items():
            said, _ = receiver.communicate(timeout=40)
            counts[host] = int(said)


def send(program: Program, group: str, count: int, rate: int) -> None:
    program("exec", CARDS, "source", "--", sys.executable, "-c", SEND, group, str(count), str(rate))


def lost_packets(cli: Cli) -> dict[str, int]:
    """The losses on each path, at its routers too."""
    status = json.loads(cli("watch", CARDS, "--once", "--json", "--interval", "0.05").stdout)
    assert {link["lost"] for link in status["links"]} == {0}, "only engines lose packets"
    return {path["way"]: int(path["packets"]) for path in status["lost"]}


@needs("tshark")
def test_members_get_the_copies_that_the_route_processor_has_time_for(cli: Cli, program: Program) -> None:
    """The card hands packets of the group to the route processor, where a process makes every copy.

    A real packet takes the time of an engine for each copy, and no `per_copy`.
    """
    captures = [cli.directory / f"{link}.pcapng" for link in ("left", "right")]
    captured = [f"--capture=link.{file.stem}.edge={file}" for file in captures]
    log = cli.directory / "cards.log"
    with up(cli, CARDS, *PUT_UP, *captured, "--log", str(log)):
        with members(program, "239.1.1.1", "left", "right") as few:
            # The processor has room for all 20 copies at once. None is lost, even if a late sender sends
            # all packets together.
            send(program, "239.1.1.1", 10, 20)
        assert (few, lost_packets(cli)) == ({"left": 10, "right": 10}, {})
        with members(program, "239.1.1.1", "left", "right") as many:
            # The processor has time for 250 copies each second; these are up to 1600.
            send(program, "239.1.1.1", 1200, 800)
        lost = lost_packets(cli)
    assert sum(many.values()) + sum(lost.values()) == 2 * 1200
    assert sum(lost.values()) > 0
    assert set(lost) <= {"source to left", "source to right"}
    assert re.fullmatch(r"[\d,]+ inputs, [\d,]+ outputs: identical\n", cli("replay", str(log)).stdout)
    wanted = "udp && ip.dst == 239.1.1.1"
    names = ("ip.ttl", "ip.len", "ip.checksum.status", "udp.checksum.status")
    found = [fields(file, wanted, *names) for file in captures]
    assert [len(rows) for rows in found] == [10 + many["left"], 10 + many["right"]]
    assert {tuple(row) for rows in found for row in rows} == {("7", "1028", "1", "1")}
    # Both members together: the processor makes one copy after the other.
    assert_engine_takes(PROCESS, gaps_ms(captures, wanted))


@needs("tshark", "ping")
def test_tshark_reads_multicast_in_gre_beside_the_tree(cli: Cli, program: Program) -> None:
    files = {link: cli.directory / f"{link}.pcapng" for link in ("wan", "site", "right")}
    captured = [f"--capture=link.{link}={file}" for link, file in files.items()]
    with up(cli, CARDS, *PUT_UP, *captured):
        with members(program, "239.1.1.2", "site") as counts:
            # As many as the processor has room for.
            send(program, "239.1.1.2", 20, 20)
        program("exec", CARDS, "source", "--", "sh", "-c", "ping -c 1 $ENGPASS_ADDRESS_SITE")
        assert (counts, lost_packets(cli)) == ({"site": 20}, {})
    names = ("ip.src", "ip.dst", "ip.ttl", "ip.len", "ip.proto", "gre.proto", "ip.checksum.status")
    outer = fields(files["wan"], "gre", *names)
    # The routers have the addresses behind those of the five hosts. Inside is the packet with its own time to
    # live, which `edge` has decremented, and 28 bytes of headers.
    edge, far = "10.64.0.6", "10.64.0.7"
    multicast = [f"{edge},10.64.0.1", f"{far},239.1.1.2", "64,7", "1052,1028", "47,17", "0x0800", "1,1"]
    forth = [f"{edge},10.64.0.1", f"{far},10.64.0.4", "64,63", "108,84", "47,1", "0x0800", "1,1"]
    back = [f"{far},10.64.0.4", f"{edge},10.64.0.1", "64,63", "108,84", "47,1", "0x0800", "1,1"]
    assert outer == [*(20 * [multicast]), forth, back]
    # Behind the tunnel the packet is bare, and another router has decremented its time to live.
    assert fields(files["site"], "ip.dst == 239.1.1.2", "ip.ttl", "ip.len") == 20 * [["6", "1028"]]
    assert fields(files["right"], "ip", "ip.dst") == [], "the other group has no member there"


# Sends to a host and to a group in turn, on one core: Linux keeps a route for each core.
ALTERNATE = """
import contextlib, os, socket
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 8)
    for _ in range(3):
        for there in (os.environ["ENGPASS_ADDRESS_SITE"], "239.1.1.2"):
            with contextlib.suppress(ConnectionRefusedError):
                s.sendto(b"x", (there, 9))
"""


@needs("tshark")
def test_packets_to_hosts_and_to_groups_keep_their_time_to_live(cli: Cli, program: Program) -> None:
    """A kernel has one cache for equal routes; packets got the time to live of the kind that came first."""
    capture = cli.directory / "lan.pcapng"
    with up(cli, CARDS, *PUT_UP, f"--capture=link.lan.source={capture}"):
        program("exec", CARDS, "source", "--", sys.executable, "-c", ALTERNATE)
    assert fields(capture, "ip", "ip.dst", "ip.ttl") == 3 * [["10.64.0.4", "64"], ["239.1.1.2", "8"]]


@needs("tshark")
def test_tshark_reads_the_igmp_reports_of_a_kernel(cli: Cli, program: Program) -> None:
    """A switch floods reports to the other host on the segment; no router forwards them (RFC 3376)."""
    files = {link: cli.directory / f"{link}.pcapng" for link in ("next-seat", "lan")}
    captured = [f"--capture=link.{link}={file}" for link, file in files.items()]
    with up(cli, CARDS, *PUT_UP, "--tap", *captured):
        with members(program, "239.1.1.1", "left", "right") as counts:
            send(program, "239.1.1.1", 10, 20)
        assert counts == {"left": 10, "right": 10}
        # A timer of the kernel sends the leave, hundredths of a second after the socket is closed.
        time.sleep(0.5)
    record = ("igmp.type", "igmp.record_type", "igmp.maddr", "igmp.checksum.status")
    reports = fields(files["next-seat"], "igmp", "ip.src", "ip.dst", "ip.ttl", *record)
    # Joining and leaving: a change to exclude, and to include, no source. The kernel repeats each.
    join, leave = (["10.64.0.2", "224.0.0.22", "1", "0x22", kind, "239.1.1.1", "1"] for kind in "43")
    assert reports[0] == join
    assert join in reports
    assert leave in reports
    assert all(report in (join, leave) for report in reports)
    assert fields(files["lan"], "igmp", "ip.src") == []


def test_loads_of_an_emulated_point_equal_packets_times_their_work(cli: Cli) -> None:
    """Each copy is a packet of its own: the card hands it to the processor, where a process works on it."""
    point = json.loads(cli("run", CARDS, "--engine", "emulate", "--json", "--fresh", *PUT_UP).stdout)
    sent = {
        link: next(side["frames"]["sent"] for side in found["directions"] if side["from"] == "edge")
        for link, found in point["links"].items()
        if link in ("left", "right", "wan")
    }
    copies, window_ms = sum(sent.values()), 2000
    loads = {name: engine["load"] for name, engine in point["nodes"]["edge"]["engines"].items()}
    # 50 packets of each group in each second, if the sender is on time.
    assert copies > 100
    # At each edge of the window a packet of each kind may be counted at one place and not at the other.
    work = PROCESS * copies + ENCAPSULATE * sent["wan"]
    assert loads["forwarding"] == pytest.approx(
        work / window_ms, abs=2 * 3 * (PROCESS + ENCAPSULATE) / window_ms
    )
    # An interrupt is for one packet at least, and for all packets at most.
    edge = 2 * 3 * (PUNT + INTERRUPT) / window_ms
    assert PUNT * copies / window_ms - edge < loads["lan"] < (PUNT + INTERRUPT) * copies / window_ms + edge
    assert loads["members"] == 0
