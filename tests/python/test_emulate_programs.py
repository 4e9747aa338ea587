"""Unmodified programs of the distribution across emulated testbeds of the gallery.

Needs root and `/dev/net/tun`; skipped if a program is missing. The machine of a test may be slow, so the
bounds are those of the model.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Program, Result
from keeps_up import when_it_keeps_up
from test_emulate_live import pytestmark, real  # noqa: F401 (used by pytest)
from test_emulated import nothing_is_left  # noqa: F401 (used by pytest)

GALLERY = Path(__file__).parents[2] / "gallery"
KYOTO = str(GALLERY / "kyoto-1997/testbed.toml")
SATELLITE = str(GALLERY / "satellite/testbed.toml")
BACKBONE = str(GALLERY / "backbone/testbed.toml")
GRE = str(GALLERY / "gre/testbed.toml")
PATH_MTU = str(GALLERY / "path-mtu/testbed.toml")


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"there is no {' and no '.join(missing)}")


@contextmanager
def up(cli: Cli, file: str, *args: str) -> Iterator[None]:
    cli("up", file, *args)
    try:
        yield
    finally:
        cli("down", file)


@contextmanager
def serving(program: Program, file: str, host: str, *words: str) -> Iterator[None]:
    """Run a server in a host; it ends with its testbed at the latest."""
    server = program.start("exec", file, host, "--", *words)
    try:
        yield
    finally:
        server.terminate()
        server.communicate(timeout=10)


def tried(what: Callable[[], str], seconds: float = 30.0) -> str:
    """Call `what` until it succeeds, since its server may not listen yet; returns its result."""
    last = time.monotonic() + seconds
    while True:
        try:
            return what()
        except AssertionError:
            if time.monotonic() > last:
                raise
            time.sleep(0.1)


def iperf3(program: Program, file: str, host: str, command: str) -> dict[str, Any]:
    """Run an iperf3 client once its server listens; with `-J` an error may not be in the exit code."""

    def run() -> str:
        said = program("exec", file, host, "--", "sh", "-c", command).stdout
        assert "error" not in json.loads(said), said
        return said

    found: dict[str, Any] = json.loads(tried(run))["end"]
    return found


@needs("iperf3")
def test_iperf3_gets_the_shaped_rate_on_the_kyoto_testbed(cli: Cli, program: Program) -> None:
    with (
        up(cli, KYOTO, "--variant", "shaped-16", "--limit", "1 s"),
        serving(program, KYOTO, "ss20", "iperf3", "-s", "-1"),
    ):
        command = "iperf3 -J -u -b 40M -l 9000 -t 2 -c $ENGPASS_ADDRESS_SS20"
        found = iperf3(program, KYOTO, "ss2", command)
        snmp = program("exec", KYOTO, "ss20", "--", "cat", "/proc/net/snmp").stdout
        links = json.loads(cli("watch", KYOTO, "--once", "--json", "--interval", "0.05").stdout)["links"]
    # 16 % of 149.76 Mbit/s, with 189 cells per datagram. Faster datagrams wait in the sender's socket.
    most = 0.16 * 149.76e6 * 9000 / (189 * 53)
    assert 0.5 * most < found["sum"]["bits_per_second"] < 1.15 * most
    # The network loses nothing. A socket does if its program gets no CPU for 50 ms, which fill its buffer.
    assert {link["lost"] for link in links} == {0}
    names, values = (line.split() for line in snmp.splitlines() if line.startswith("Udp:"))
    assert found["sum"]["lost_packets"] == int(dict(zip(names, values, strict=True))["RcvbufErrors"])


@needs("iperf3")
def test_iperf3_measures_the_satellite_round_trip_time(cli: Cli, program: Program) -> None:
    with up(cli, SATELLITE, "--limit", "1 s"), serving(program, SATELLITE, "boat", "iperf3", "-s", "-1"):
        command = "iperf3 -J -t 4 -c $ENGPASS_ADDRESS_BOAT"
        found = iperf3(program, SATELLITE, "ground", command)
    # Only slow start, with a window per half second; never more than the line.
    assert 0 < found["sum_received"]["bits_per_second"] < 10e6
    (stream,) = found["streams"]
    assert stream["sender"]["min_rtt"] > 500_000


def test_hosts_without_declared_traffic_are_up(cli: Cli, program: Program, tmp_path: Path) -> None:
    file = str(tmp_path / "line.toml")
    Path(file).write_text(
        '[host.a]\n[host.b]\n[link.l]\nends = ["a", "b"]\nmedium = "point-to-point"\n'
        'rate = "10 Mbit/s"\ndelay = "30 ms"\n'
    )
    with up(cli, file, "--limit", "1 s"):
        asks = (
            "import os, socket\n"
            "with socket.socket() as asking:\n"
            "    print(asking.connect_ex((os.environ['ENGPASS_ADDRESS_B'], 9)))"
        )
        said = program("exec", file, "a", "--", sys.executable, "-c", asks).stdout
    # The packets crossed both ways: the port is closed.
    assert int(said) == errno.ECONNREFUSED


@needs("curl", "tshark")
def test_tshark_reads_a_curl_download_over_the_satellite(cli: Cli, program: Program) -> None:
    (cli.directory / "file.bin").write_bytes(bytes(range(256)) * 2000)
    captured = cli.directory / "sky.pcapng"
    with (
        up(cli, SATELLITE, "--limit", "1 s", "--capture", f"link.sky={captured}"),
        serving(program, SATELLITE, "boat", sys.executable, "-m", "http.server", "80", "--bind", "10.64.0.2"),
    ):
        write = "%{http_code} %{size_download} %{time_total}"
        command = f"curl -s -o got.bin -w '{write}' http://$ENGPASS_ADDRESS_BOAT/file.bin"
        said = tried(lambda: program("exec", SATELLITE, "ground", "--", "sh", "-c", command).stdout)
    code, size, took = said.split()
    assert (code, int(size)) == ("200", 512_000)
    assert (cli.directory / "got.bin").read_bytes() == (cli.directory / "file.bin").read_bytes()
    # At least two round trips, and 512 kB at 10 Mbit/s.
    assert 1.4 < float(took) < 30
    fields = ["-e", "http.request.uri", "-e", "http.response.code", "-e", "tcp.checksum.status"]
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    read = subprocess.run(
        ["tshark", "-n", "-r", captured, *checks, "-T", "fields", *fields, "-e", "_ws.malformed"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line.split("\t") for line in read.stdout.splitlines()]
    assert ["/file.bin"] in [line[:1] for line in lines]
    assert any(line[1] == "200" for line in lines)
    assert not any(line[3] for line in lines), "nothing is malformed"
    assert {line[2] for line in lines} == {"1"}, "all checksums are good"


@needs("curl")
def test_curl_downloads_a_file_over_atm_cells(cli: Cli, program: Program) -> None:
    (cli.directory / "file.bin").write_bytes(bytes(range(256)) * 1000)
    with (
        up(cli, KYOTO, "--variant", "tcp-free", "--limit", "1 s"),
        serving(program, KYOTO, "ss20", sys.executable, "-m", "http.server", "80", "--bind", "10.64.0.2"),
    ):
        command = "curl -s http://$ENGPASS_ADDRESS_SS20/file.bin | sha256sum"
        wanted = program.shell("sha256sum < file.bin").stdout

        def fetched() -> str:
            said = program("exec", KYOTO, "ss2", "--", "sh", "-c", command).stdout
            assert said == wanted
            return said

        tried(fetched)


@needs("ping")
def test_router_sends_time_exceeded_messages(cli: Cli, program: Program) -> None:
    def ping(*how: str, code: int = 0) -> Result:
        return program("exec", SATELLITE, "ground", "--", "ping", "-c", "1", *how, "10.64.0.2", code=code)

    with up(cli, SATELLITE):
        said = [ping("-t", ttl, code=1) for ttl in ("1", "2")]
        whole = ping("-t", "3").stdout
        large = ping("-M", "do", "-s", "9000", code=1)
    for answer, router in zip(said, ("10.64.0.3", "10.64.0.4"), strict=True):
        assert f"From {router} icmp_seq=1 Time to live exceeded" in answer.stdout
    assert "ttl=62" in whole
    # The route has the path MTU, so the host's own stack rejects the packet before it is sent.
    assert re.search(r"message too long, mtu[=:] ?1500", large.stdout + large.stderr)


@needs("ping")
def test_ping_crosses_a_circuit_between_routers(cli: Cli, program: Program) -> None:
    def ping(*how: str, code: int = 0) -> Result:
        return program("exec", BACKBONE, "office", "--", "ping", *how, "10.64.0.2", code=code)

    def round_trip() -> float:
        said = ping("-c", "10", "-i", "0.1", "-s", "1472").stdout
        assert "ttl=62" in said, "each router takes one"
        assert " 0% packet loss" in said
        (least,) = re.findall(r"min/avg/max/mdev = ([\d.]+)/", said)
        return float(least)

    with up(cli, BACKBONE, "--variant", "unshaped", "--limit", "1 s"):
        said = [ping("-c", "1", "-t", ttl, code=1).stdout for ttl in ("1", "2")]
        least = when_it_keeps_up(round_trip, lost_ms=60)
        large = ping("-c", "1", "-M", "do", "-s", "9000", code=1)
    for answer, router in zip(said, ("10.64.0.5", "10.64.0.6"), strict=True):
        assert f"From {router} icmp_seq=1 Time to live exceeded" in answer
    # In each direction two Ethernets (1526 bytes), 32 + 2 cells, 5 ms, four times 1 us. At least one of ten
    # pings is nearly on time.
    expected = 2 * (2 * 1526 * 8 / 1e9 + 34 * 424 / 149.76e6 + 5e-3 + 4e-6) * 1000
    assert expected - 0.001 < least < expected + 1
    # The packet fits the circuit, but not the Ethernets.
    assert re.search(r"message too long, mtu[=:] ?1500", large.stdout + large.stderr)


@needs("iperf3")
def test_iperf3_stays_within_the_rate_shaped_by_a_router(cli: Cli, program: Program) -> None:
    with (
        up(cli, BACKBONE, "--variant", "shaped", "--limit", "1 s"),
        serving(program, BACKBONE, "archive", "iperf3", "-s", "-1"),
    ):
        command = "iperf3 -J -t 3 -c $ENGPASS_ADDRESS_ARCHIVE"
        found = iperf3(program, BACKBONE, "office", command)
        links = json.loads(cli("watch", BACKBONE, "--once", "--json", "--interval", "0.05").stdout)["links"]
    # 90 % of the line, with 1448 of 1696 bytes payload; the client's time is slightly too short.
    most = 0.9 * 149.76e6 * 1448 / 1696
    assert 0.3 * most < found["sum_received"]["bits_per_second"] < 1.05 * most
    (stream,) = found["streams"]
    assert stream["sender"]["min_rtt"] > 10_100
    # Only the router may drop packets, since the shaper leaves the video its cells.
    lost = {(link["from"], link["to"]) for link in links if link["lost"]}
    assert lost <= {("near", "west")}


@needs("ping", "tshark")
def test_a_kernel_learns_the_path_mtu_from_a_router(cli: Cli, program: Program) -> None:
    captured = cli.directory / "left.pcapng"

    def ping(*how: str, code: int, to: str = "10.64.0.2") -> str:
        words = ("ping", "-c", "1", "-W", "2", *how, to)
        said = program("exec", PATH_MTU, "a", "--", *words, code=code)
        return said.stdout + said.stderr

    def route() -> str:
        return program("exec", PATH_MTU, "a", "--", "ip", "route", "get", "10.64.0.2").stdout

    with up(cli, PATH_MTU, "--variant", "two-steps", "--limit", "1 s", "--capture", f"link.left={captured}"):
        assert "mtu 1500" in route(), "that of its own link"
        # Without the DF flag routers fragment, and the receiver gets the whole packet.
        assert "1480 bytes from 10.64.0.2" in ping("-M", "dont", "-s", "1472", code=0)
        said = [ping("-M", "do", "-s", size, code=1) for size in ("1472", "1372")]
        learned = route()
        six = ping("-M", "do", "-s", "1452", code=1, to="fd65:6e67:7061:7373::2")
    for answer, router, mtu in zip(said, ("10.64.0.3", "10.64.0.4"), (1400, 1300), strict=True):
        assert f"From {router} icmp_seq=1 Frag needed and DF set (mtu = {mtu})" in answer
    assert "mtu 1300" in learned
    assert "From fd65:6e67:7061:7373::3 icmp_seq=1 Packet too big: mtu=1400" in six
    fields = [
        "-e",
        "icmp.type",
        "-e",
        "icmp.mtu",
        "-e",
        "icmpv6.type",
        "-e",
        "icmpv6.mtu",
        "-e",
        "_ws.malformed",
    ]
    checks = ["-o", "ip.check_checksum:TRUE"]
    read = subprocess.run(
        ["tshark", "-n", "-r", captured, *checks, "-T", "fields", *fields, "-e", "icmp.checksum.status",
         "-e", "icmpv6.checksum.status"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [line.split("\t") for line in read.stdout.splitlines()]
    told = [line[:4] for line in lines if line[1] or line[3]]
    assert told == [["3,8", "1400", "", ""], ["3,8", "1300", "", ""], ["", "", "2,128", "1400"]]
    assert not any(line[4] for line in lines), "nothing is malformed"
    assert {status for line in lines for status in ",".join(line[5:7]).split(",") if status} <= {"1", "2"}


@needs("ping")
def test_router_without_icmp_is_a_black_hole(cli: Cli, program: Program) -> None:
    serve = (
        "import socket\n"
        "with socket.create_server(('10.64.0.2', 80)) as door:\n"
        "    with door.accept()[0] as one:\n"
        "        one.recv(1)"
    )
    send = (
        "import socket\n"
        "with socket.socket() as one:\n"
        "    assert one.connect_ex(('10.64.0.2', 80)) == 0\n"
        "    one.settimeout(2)\n"
        "    one.sendall(bytes(50_000))\n"
        "    try:\n"
        "        print('ended', one.recv(1))\n"
        "    except TimeoutError:\n"
        "        print('nothing')"
    )
    ping = ("ping", "-c", "1", "-W", "1", "-M", "do", "-s", "1472", "10.64.0.2")
    with (
        up(cli, PATH_MTU, "--variant", "black-hole", "--limit", "1 s"),
        serving(program, PATH_MTU, "b", sys.executable, "-c", serve),
    ):
        said = tried(lambda: program("exec", PATH_MTU, "a", "--", sys.executable, "-c", send).stdout)
        large = program("exec", PATH_MTU, "a", "--", *ping, code=1)
    # The handshake fits, but all data segments are too long.
    assert said == "nothing\n"
    assert "100% packet loss" in large.stdout
    assert "From" not in large.stdout


@pytest.mark.alone
def test_declared_datagrams_are_fragmented_as_in_the_model(cli: Cli) -> None:
    """Routers send no ICMP messages, and the sender discovers the path MTU."""
    change = {
        "traffic.datagrams.rate": "20 Mbit/s",
        "router.near.icmp": "false",
        "run.duration": "1 s",
        "run.warmup": "200 ms",
    }
    sets = [word for path, value in change.items() for word in ("--set", f"{path}={value}")]
    how = ("--variant", "inner", "--repeats", "1", "--limit", "1 s", "--json", "--fresh")
    (line,) = cli("run", GRE, "--engine", "emulate", *how, *sets).stdout.splitlines()
    flow = json.loads(line)["flows"]["datagrams"]
    assert flow["datagrams"]["lost"] == 0
    assert flow["goodput_bit_per_s"] > 10e6
