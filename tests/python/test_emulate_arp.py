"""Emulated testbeds with address resolution: real packets wait for the reply.

Needs root and `/dev/net/tun`; skipped if a program is missing. The tests assert decisions of the model.
"""

from __future__ import annotations

import re
import subprocess

from conftest import Cli, Program
from test_emulate_live import pytestmark, real  # noqa: F401 (used by pytest)
from test_emulate_programs import GALLERY, needs, up
from test_emulated import nothing_is_left  # noqa: F401 (used by pytest)

ARP = str(GALLERY / "arp/testbed.toml")
HELD = ("--engine", "emulate", "--variant", "held")
DROPPED = ("--engine", "emulate", "--variant", "dropped")
PING = ("--", "ping", "-n", "-c", "3", "-i", "0.2", "10.64.0.2")


def times(said: str) -> list[float]:
    """Round-trip times that `ping` has printed, in milliseconds."""
    return [float(time) for time in re.findall(r"time=([\d.]+) ms", said)]


@needs("ping", "tshark")
def test_first_ping_waits_for_the_arp_reply(cli: Cli, program: Program) -> None:
    capture = cli.directory / "segment.pcapng"
    with up(cli, ARP, "--limit", "1 s", *HELD, f"--capture=link.segment={capture}"):
        said = program("exec", ARP, "a", *PING).stdout
    first, *others = times(said)
    # A round trip of 20 ms, and 20 ms for ARP. On a busy machine pings may be late, but never early.
    assert first >= 40.0
    assert len(others) == 2
    assert min(others) >= 20.0
    assert min(others) < first
    fields = ("arp.opcode", "eth.dst", "arp.src.proto_ipv4", "arp.dst.proto_ipv4")
    asked = [word for field in fields for word in ("-e", field)]
    read = subprocess.run(
        ["tshark", "-n", "-r", str(capture), "-Y", "arp", "-T", "fields", *asked],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    edge = "02:00:00:00:00:03"
    assert [line.split("\t") for line in read.stdout.splitlines()] == [
        ["1", "ff:ff:ff:ff:ff:ff", "10.64.0.5", "10.64.0.2"],
        ["2", edge, "10.64.0.2", "10.64.0.5"],
    ]


@needs("ping")
def test_router_without_arp_hold_drops_the_first_pings(cli: Cli, program: Program) -> None:
    with up(cli, ARP, "--limit", "1 s", *DROPPED):
        # The reverse direction resolves another neighbour, which costs the second ping.
        said = program("exec", ARP, "a", "--", "ping", "-n", "-c", "4", "-i", "0.2", "10.64.0.2").stdout
    assert re.findall(r"icmp_seq=(\d+) ttl", said) == ["3", "4"]
