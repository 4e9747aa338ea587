"""Emulated testbeds: Ethernet devices, multicast, several paces in a host. Needs root and `/dev/net/tun`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from conftest import Cli, Program
from engpass.results import outcomes
from engpass.types.outcome import Outcome
from keeps_up import when_it_keeps_up
from required import known
from test_emulate_live import pytestmark, real  # noqa: F401 (used by pytest)
from test_emulated import nothing_is_left  # noqa: F401 (used by pytest)

GROUP = Path(__file__).parents[1] / "data/group.toml"


@pytest.fixture
def lan(tmp_path: Path) -> Path:
    return Path(shutil.copy(GROUP, tmp_path / "lan.toml"))


@pytest.mark.usefixtures("lan")
@pytest.mark.parametrize("how", [(), ("--tap",)], ids=["tun", "tap"])
def test_multicast_crosses_each_line_once_to_all_members(cli: Cli, how: tuple[str, ...]) -> None:
    lossy_line = ("--set", "link.i.loss=5 %")

    def emulated() -> Outcome:
        said = cli(
            "run", "lan.toml", "--engine", "emulate", "--json", "--fresh", "--limit", "1 s", *lossy_line, *how
        )
        point = outcomes.read(said.stdout)
        flow = point.flows["group"]
        whole, lossy = (known(flow.receivers[name].datagrams) for name in ("h", "i"))
        assert whole.lost == 0
        # 5 % of the datagrams, with a tolerance of five standard deviations.
        sent = known(flow.datagrams).sent
        assert abs(lossy.lost - 0.05 * sent) < 5 * (0.05 * 0.95 * sent) ** 0.5
        # The line to the switch carries as much as the line to one receiver, not twice as much.
        frames = {name: point.links[name].directions for name in ("down", "h", "i")}
        forth = {name: max(known(line.frames).sent for line in lines) for name, lines in frames.items()}
        assert forth["down"] == pytest.approx(forth["h"], rel=0.05)
        assert point.valid
        return point

    # 10 Mbit/s for a second in datagrams of 1000 B; a sender that is late by 100 ms skips some.
    kept = when_it_keeps_up(emulated, lost_ms=90)
    assert known(kept.flows["group"].datagrams).sent == pytest.approx(1250, abs=2)


# Waits for a broadcast datagram on port 9000 and prints its sender.
HEAR = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind(("", 9000)); s.settimeout(10); print("ready", flush=True)
    said, who = s.recvfrom(99); print(said.decode(), who[0])
"""

CALL = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"tap0")
    s.sendto(b"hello", ("255.255.255.255", 9000))
"""


@pytest.mark.usefixtures("lan")
def test_tap_hosts_have_hardware_addresses_and_hear_broadcasts(cli: Cli, program: Program) -> None:
    cli("up", "lan.toml", "--tap")
    try:
        address = json.loads(
            program("exec", "lan.toml", "h", "--", "ip", "-j", "link", "show", "tap0").stdout
        )
        assert (address[0]["link_type"], address[0]["address"]) == ("ether", "02:65:70:00:00:01")
        ping = program("exec", "lan.toml", "h", "--", sys.executable, "-c", ECHO)
        assert ping.stdout == "10.64.0.3 fd65:6e67:7061:7373::3 10.64.0.1\n"
        neighbours = json.loads(program("exec", "lan.toml", "h", "--", "ip", "-j", "neigh").stdout)
        assert {one["dst"]: one["lladdr"] for one in neighbours if "lladdr" in one} == {
            "10.64.0.3": "02:65:70:00:00:02",
            "fd65:6e67:7061:7373::3": "02:65:70:00:00:02",
            "10.64.0.1": "02:65:70:00:00:00",
        }
        hearing = program.start("exec", "lan.toml", "i", "--", sys.executable, "-c", HEAR)
        assert hearing.stdout is not None
        assert hearing.stdout.readline() == b"ready\n"
        program("exec", "lan.toml", "h", "--", sys.executable, "-c", CALL)
        said, _ = hearing.communicate(timeout=15)
        assert said == b"hello 10.64.0.2\n"
    finally:
        cli("down", "lan.toml")


# Echoes a datagram with two hosts on the segment by IPv4 and IPv6, and with one behind a router.
ECHO = """
import socket
def there_and_back(family, there):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(5); s.connect((there, 9)); s.send(b"x")
        try:
            s.recv(9)
        except ConnectionRefusedError:
            return there
print(there_and_back(socket.AF_INET, "10.64.0.3"), there_and_back(socket.AF_INET6, "fd65:6e67:7061:7373::3"),
    there_and_back(socket.AF_INET, "10.64.0.1"))
"""


def test_tap_rejects_hosts_without_ethernet(cli: Cli, tmp_path: Path) -> None:
    line = 'ends = ["b", "i"]\nmedium = '
    text = GROUP.read_text().replace(f'{line}"ethernet-100"', f'{line}"point-to-point"\nrate = "1 Mbit/s"')
    (tmp_path / "far.toml").write_text(text.replace('[switch.b]\nkind = "ethernet"', "[router.b]"))
    said = cli("up", "far.toml", "--tap", code=2)
    assert "host `i` has no Ethernet device: its link `i` carries no Ethernet frames" in said.stderr


PACES = """\
name = "paces"
[host.a]
[host.b]
[host.c]
[switch.s]
kind = "atm"
[link.a]
ends = ["a", "s"]
medium = "oc-3c"
[link.b]
ends = ["b", "s"]
medium = "oc-3c"
[link.c]
ends = ["c", "s"]
medium = "oc-3c"
[circuit.ab]
from = "a"
to = "b"
shaping = "4 %"
[circuit.ac]
from = "a"
to = "c"
shaping = "12 %"
[traffic.slow]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
[traffic.fast]
kind = "udp-stream"
from = "a"
to = "c"
message = "1 kB"
[run]
duration = "2200 ms"
warmup = "200 ms"
repeats = 1
"""


def test_circuits_of_one_host_keep_their_own_rates(cli: Cli, program: Program, tmp_path: Path) -> None:
    (tmp_path / "paces.toml").write_text(PACES)
    limit = outcomes.read(cli("run", "paces.toml", "--engine", "limit", "--json").stdout).flows

    def emulated() -> Outcome:
        said = cli("run", "paces.toml", "--engine", "emulate", "--json", "--fresh", "--limit", "1 s")
        point = outcomes.read(said.stdout)
        for flow in point.flows.values():
            assert known(flow.datagrams).lost == 0
        return point

    kept = when_it_keeps_up(emulated, lost_ms=120).flows
    for name in ("slow", "fast"):
        # Each sender is held back at its own pace: nothing is lost, and no sender waits for the other.
        assert kept[name].goodput_bit_per_s == pytest.approx(limit[name].goodput_bit_per_s, rel=0.1)
    cli("up", "paces.toml")
    try:
        shown = program("exec", "paces.toml", "a", "--", "tc", "class", "show", "dev", "tun0").stdout
        assert shown.count("class htb") == 2
    finally:
        cli("down", "paces.toml")
