"""Keepalives of GRE tunnels in an emulated network: real pings leave a tunnel that is down.

Needs root and `/dev/net/tun`; skipped if a program is missing.
"""

from __future__ import annotations

import re

import pytest

from conftest import Cli, Program
from test_emulate_cards import fields
from test_emulate_live import pytestmark, real  # noqa: F401 (used by pytest)
from test_emulate_programs import needs, up
from test_emulated import nothing_is_left  # noqa: F401 (used by pytest)

# Two tunnels, each over a router in the middle. The hashes send echo requests into the first tunnel, and
# replies into the second one, as in `test_emulate_ecmp.py`.
TUNNELS = """\
name = "two tunnels"
[host.a]
[host.b]
[router.r1]
ecmp = { hash = { seed = 7 } }
[router.m1]
[router.m2]
[router.e1]
[router.e2]
[router.r3]
ecmp = { hash = { seed = 2 } }
[link.in]
ends = ["a", "r1"]
medium = "ethernet-1g"
[link.a1]
ends = ["r1", "m1"]
medium = "ethernet-100"
[link.a2]
ends = ["r1", "m2"]
medium = "ethernet-100"
[link.b1]
ends = ["m1", "e1"]
medium = "ethernet-100"
[link.b2]
ends = ["m2", "e2"]
medium = "ethernet-100"
[link.c1]
ends = ["e1", "r3"]
medium = "ethernet-100"
[link.c2]
ends = ["e2", "r3"]
medium = "ethernet-100"
[link.out]
ends = ["r3", "b"]
medium = "ethernet-1g"
[tunnel.t1]
ends = ["r1", "e1"]
keepalive = { period = "200 ms", retries = 2 }
[tunnel.t2]
ends = ["r1", "e2"]
keepalive = { period = "200 ms", retries = 2 }
[event.cut]
at = "2 s"
target = "b1"
change = "down"
[event.mended]
at = "3500 ms"
target = "b1"
change = "up"
"""


@needs("ping", "tshark")
@pytest.mark.alone
def test_pings_leave_a_tunnel_whose_keepalives_do_not_come_back(cli: Cli, program: Program) -> None:
    file = cli.directory / "tunnels.toml"
    file.write_text(TUNNELS)
    files = {link: cli.directory / f"{link}.pcapng" for link in ("a1", "a2")}
    captures = [
        word for link, capture in files.items() for word in ("--capture", f"link.{link}.r1={capture}")
    ]
    with up(cli, str(file), "--limit", "1 s", "--log", "tunnels.log", *captures):
        ping = ("ping", "-n", "-c", "50", "-i", "0.1", "10.64.0.2")
        said = program("exec", str(file), "a", "--", *ping).stdout
    answered = [int(number) for number in re.findall(r"icmp_seq=(\d+) ttl", said)]
    lost = [number for number in range(1, 51) if number not in answered]
    # The tunnel is taken for down when two keepalives are overdue, 0.4 to 0.6 s after the cut. That are 4 to
    # 6 requests, and one more or less at the edges.
    assert lost == list(range(lost[0], lost[-1] + 1))
    assert 3 <= len(lost) <= 7
    assert "identical" in cli("replay", "tunnels.log").stdout
    first, second = (
        {row[0] for row in fields(capture, "icmp.type == 8 && gre", "icmp.seq")} for capture in files.values()
    )
    # While the tunnel is down, requests take the other one. None takes both.
    assert first
    assert second
    assert not first & second
    assert len(first | second) == 50
    # Both ends send keepalives all the time: at least 5 s, 5 each second, with both headers.
    kept = fields(files["a1"], "gre.proto == 0 && gre.proto == 0x0800", "ip.src")
    assert len(kept) > 5 * 5
