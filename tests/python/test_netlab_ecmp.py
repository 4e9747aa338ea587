"""ECMP of routers in namespaces. Needs root; skipped without."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import Cli, Program
from engpass import netlab
from engpass.netlab import kernel
from engpass.results import outcomes
from engpass.results.run_notes import another_hash
from required import known

pytestmark = pytest.mark.skipif(
    not kernel.privileged() or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip` and `tc`",
)

HOSTS = """\
[host.a]
[host.b]
[link.in]
ends = ["a", "r"]
medium = "ethernet-100"
[link.x]
ends = ["r", "s"]
medium = "ethernet-100"
[link.y]
ends = ["r", "s"]
medium = "ethernet-100"
[link.out]
ends = ["s", "b"]
medium = "ethernet-100"
"""

ROUTERS = HOSTS + '[router.s]\necmp = "first"\n[router.r]\n'

SWITCH = HOSTS + '[switch.s]\nkind = "ethernet"\n[router.r]\n'
"""Both links of the router lead to one switch, and the host is the next hop on either."""

SEND = """
import os, socket, sys
kind, flows = sys.argv[1], int(sys.argv[2])
kept = []
for _ in range(flows):
    to = (os.environ["ENGPASS_ADDRESS_B"], 7000)
    if kind == "tcp":
        kept.append(socket.create_connection(to, timeout=10))
    else:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.sendto(b"x", to)
        kept.append(one)
for one in kept:
    one.close()
"""

LISTEN = """
import socket
server = socket.create_server(("", 7000), backlog=1000)
print("ready", flush=True)
while True:
    server.accept()[0].close()
"""


@contextmanager
def up(cli: Cli, text: str, policy: str) -> Iterator[netlab.Lab]:
    """Bring up a testbed whose router `r` has this ECMP policy."""
    path = cli.directory / "ways.toml"
    path.write_text(f"{text}ecmp = {policy}\n")
    cli("up", "ways.toml", "--engine", "measure")
    try:
        yield netlab.find(str(path))
    finally:
        cli("down", "ways.toml")


def sent(program: Program, lab: netlab.Lab, kind: str, flows: int) -> tuple[int, int]:
    """Packets that the router sends on each of its two links for single-packet flows or connections."""

    def counts() -> list[int]:
        files = [f"/sys/class/net/{device}/statistics/tx_packets" for device in ("x", "y")]
        return [int(word) for word in program("exec", lab.file, "r", "--", "cat", *files).stdout.split()]

    before = counts()
    program("exec", lab.file, "a", "--", "python3", "-c", SEND, kind, str(flows))
    x, y = (after - start for after, start in zip(counts(), before, strict=True))
    return x, y


def routes(program: Program, lab: netlab.Lab, node: str) -> str:
    return program("exec", lab.file, node, "--", "ip", "route").stdout


@pytest.mark.parametrize("text", [ROUTERS, SWITCH])
def test_kernel_hash_spreads_datagrams_by_weight(cli: Cli, program: Program, text: str) -> None:
    # 300 and 100 of 400 packets are expected, with a standard deviation of 9; ARP adds some.
    with up(cli, text, "{ hash = { weights = { x = 300, y = 100 } } }") as lab:
        assert "dev x weight 3" in routes(program, lab, "r")
        x, y = sent(program, lab, "udp", 400)
        assert 400 <= x + y <= 410
        assert 240 <= x <= 360


def test_kernel_hash_spreads_connections_over_both_links(cli: Cli, program: Program) -> None:
    with up(cli, ROUTERS, '"hash"') as lab:
        listening = program.start("exec", lab.file, "b", "--", "python3", "-c", LISTEN)
        assert listening.stdout is not None
        assert listening.stdout.readline() == b"ready\n"
        x, y = sent(program, lab, "tcp", 100)
        listening.terminate()
        listening.communicate()
        # SYN, ACK and FIN of each connection, about half of them on each link.
        assert x + y >= 300
        assert min(x, y) > 60


def test_layer_3_hash_ignores_ports(cli: Cli, program: Program) -> None:
    with up(cli, ROUTERS, '{ hash = { fields = "layer-3" } }') as lab:
        counts = sorted(sent(program, lab, "udp", 100))
        assert counts[0] <= 2
        assert counts[1] >= 100


def test_first_policy_sends_all_on_one_link(cli: Cli, program: Program) -> None:
    with up(cli, ROUTERS, '"first"') as lab:
        x, y = sent(program, lab, "udp", 100)
        assert x >= 100
        assert y <= 2


def test_measured_point_notes_the_hash_of_the_kernel(cli: Cli, tmp_path: Path) -> None:
    traffic = """\
[traffic.stream]
kind = "tcp-stream"
from = "a"
to = "b"
message = "8 kB"
streams = 8
[run]
duration = "300 ms"
"""
    (tmp_path / "ways.toml").write_text(f'{ROUTERS}ecmp = "hash"\n{traffic}')
    said = cli("run", "ways.toml", "--engine", "measure", "--json", "--fresh")
    outcome = outcomes.read(said.stdout)
    assert another_hash(["`r`"]) in known(outcome.measured).notes
    assert outcome.flows["stream"].goodput_bit_per_s > 10e6
