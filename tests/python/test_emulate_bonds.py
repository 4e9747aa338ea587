"""Emulated hosts with bonds: real programs over several links, and over a link that fails.

Needs root and `/dev/net/tun`; skipped if a program is missing. The tests assert decisions of the model.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from conftest import Cli, Program
from test_bonds import TEXT
from test_emulate_ecmp import sent
from test_emulate_live import pytestmark, real  # noqa: F401 (used by pytest)
from test_emulate_programs import iperf3, needs, serving, up
from test_emulated import nothing_is_left  # noqa: F401 (used by pytest)

# Down for 600 ms; the failure is between two checks of the monitor.
CUT = """\
[event.cut]
target = "one"
at = "2230 ms"
change = "down"
[event.back]
target = "one"
at = "2830 ms"
change = "up"
"""

BACKUP = ("--set", "bond.up.mode=active-backup", "--set", "bond.down.up=false")
TURNS = ("--set", "bond.up.mode=round-robin")


@pytest.fixture
def server(tmp_path: Path) -> str:
    path = tmp_path / "server.toml"
    path.write_text(TEXT)
    return str(path)


@needs("iperf3")
@pytest.mark.parametrize(("mode", "links"), [(("--set", "bond.up.mode=hash"), 1), (TURNS, 2)])
def test_iperf3_uses_one_link_by_hash_and_both_by_round_robin(
    cli: Cli, program: Program, server: str, mode: tuple[str, ...], links: int
) -> None:
    with up(cli, server, "--limit", "1 s", *mode), serving(program, server, "client", "iperf3", "-s", "-1"):
        found = iperf3(program, server, "server", "iperf3 -J -t 3 -O 1 -c $ENGPASS_ADDRESS_CLIENT")
        lines = sent(server)
    got = found["sum_received"]["bits_per_second"]
    assert got < links * 100e6
    if links == 1:
        # All frames have the same two addresses, so the hash selects one link.
        assert lines["one server"] == 0
        assert lines["two server"] > 100
    else:
        assert abs(lines["one server"] - lines["two server"]) <= 1
        # More than one link could carry, even on a busy machine.
        assert got > 100e6


@needs("ping")
@pytest.mark.alone
@pytest.mark.parametrize(("mode", "least", "most"), [(BACKUP, 1, 6), (TURNS, 0, 1)], ids=["backup", "turns"])
def test_ping_loses_few_packets_when_a_bond_member_fails(
    cli: Cli, program: Program, server: str, mode: tuple[str, ...], least: int, most: int
) -> None:
    Path(server).write_text(TEXT + CUT)
    ping = ["ping", "-n", "-i", "0.02", "-c", "180", "10.64.0.2"]
    with up(cli, server, "--limit", "1 s", *mode):
        said = program("exec", server, "server", "--", *ping).stdout
        lines = sent(server)
    answered = {int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", said)}
    lost = [number for number in range(1, 181) if number not in answered]
    # 70 ms of a ping every 20 ms, or a little more; with round-robin at most the packets in flight.
    assert least <= len(lost) <= most, lost
    assert lines["two server"] > 20


def member_of_linux(source: int, destination: int, hosts: tuple[int, int], members: int) -> int:
    """The member that `xmit_hash_policy=layer3+4` of Linux selects for UDP over IPv4, from header bytes."""
    ports = source.to_bytes(2, "big") + destination.to_bytes(2, "big")
    addresses = [bytes((10, 64, 0, host)) for host in hosts]
    mixed = int.from_bytes(ports, "little")
    for address in addresses:
        mixed ^= int.from_bytes(address, "little")
    mixed ^= mixed >> 16
    mixed ^= mixed >> 8
    return (mixed >> 1) % members


def test_bond_hash_equals_the_choice_of_linux(cli: Cli, program: Program, server: str) -> None:
    ports = range(40_000, 40_032)
    send = (
        "import socket\n"
        f"for port in range({ports.start}, {ports.stop}):\n"
        "    with socket.socket(type=socket.SOCK_DGRAM) as one:\n"
        "        one.bind(('', port))\n"
        "        one.sendto(bytes(100), ('10.64.0.2', 9))"
    )
    mode = ("--set", 'bond.up.mode={ hash = { layers = "layer-3+4" } }')
    with up(cli, server, "--limit", "1 s", *mode):
        program("exec", server, "server", "--", sys.executable, "-c", send)
        lines = sent(server)
    wanted = [member_of_linux(port, 9, (1, 2), 2) for port in ports]
    assert (lines["one server"], lines["two server"]) == (wanted.count(0), wanted.count(1))
    assert 4 < wanted.count(0) < 28
