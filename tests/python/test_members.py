"""Receivers that join and leave a multicast group: in `run`, exports and `explain`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from conftest import Cli
from engpass.testbed import loads

ZAPPING = """\
name = "A viewer who zaps"
host = { s = {}, viewer = {}, wall = {} }
router.r = {}
link.up = { ends = ["s", "r"], medium = "ethernet-100" }
link.one = { ends = ["r", "viewer"], medium = "ethernet-100" }
link.two = { ends = ["r", "wall"], medium = "ethernet-100" }
run = { duration = "4 s" }

[traffic.v]
kind = "multicast"
from = "s"
to = ["viewer", "wall"]
message = "1 kB"
rate = "8 Mbit/s"
igmp = { last_member_query_interval = "100 ms" }

[event.on]
target = "viewer"
traffic = "v"
change = "join"
at = "1 s"

[event.off]
target = "viewer"
traffic = "v"
change = "leave"
at = "3 s"
"""


def test_receiver_counts_what_was_sent_while_it_was_a_member() -> None:
    (outcome,) = loads(ZAPPING).run(["simulate"]).outcomes
    receivers = outcome.flows["v"].receivers
    viewer, wall = receivers["viewer"], receivers["wall"]
    assert viewer.member_share == 0.5
    assert wall.member_share is None
    assert viewer.datagrams is not None
    assert wall.datagrams is not None
    assert (viewer.datagrams.sent, viewer.datagrams.lost) == (2000, 0)
    assert wall.datagrams.sent == 4000
    assert viewer.goodput_bit_per_s == pytest.approx(wall.goodput_bit_per_s / 2, rel=2e-3)
    # After the join, the first datagram comes within one gap between datagrams. After the leave, the router
    # sends two queries 100 ms apart, and stops forwarding 100 ms after the second one.
    assert viewer.join_delay_s is not None
    assert 0 < viewer.join_delay_s < 1.2e-3
    assert viewer.leave_delay_s == pytest.approx(0.2, abs=1e-3)


def test_limit_is_never_below_the_simulation() -> None:
    testbed = loads(ZAPPING)
    found = {outcome.engine: outcome for outcome in testbed.run(["limit", "simulate"]).outcomes}
    simulated, limits = found["simulate"], found["limit"]
    for host, receiver in simulated.flows["v"].receivers.items():
        limit = limits.flows["v"].receivers[host].limit
        assert limit is not None
        assert limit.bound is not None
        assert receiver.goodput_bit_per_s <= limit.bound.bit_per_s
        share = 0.5 if host == "viewer" else 1.0
        assert limit.bound.bit_per_s == pytest.approx(8e6 * share, rel=1e-3)


def test_export_has_membership_of_each_receiver(cli: Cli, tmp_path: Path) -> None:
    file, store, out = tmp_path / "zap.toml", tmp_path / "engpass.db", tmp_path / "points.csv"
    file.write_text(ZAPPING)
    cli("run", str(file), "--store", str(store), "--engine", "simulate")
    cli("export", "last", "--store", str(store), "-o", str(out))
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [(row["flow"], row["member_share"]) for row in rows] == [
        ("v", ""),
        ("v to viewer", "0.5"),
        ("v to wall", ""),
    ]


def test_timeline_shows_memberships(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "zap.toml"
    file.write_text(ZAPPING)
    told = cli("explain", str(file), "--flow", "v to viewer", "--timeline").stdout
    assert "member: v to viewer" in told


def test_agents_refuse_receivers_that_join(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "zap.toml"
    file.write_text(ZAPPING)
    store = str(tmp_path / "engpass.db")
    told = cli("run", str(file), "--store", store, "--engine", "emulate", code=None)
    assert "event `on` lets `viewer` join or leave during a run" in told.stderr
    assert "zap.toml:19" in told.stderr
    assert "--engine simulate" in told.stderr
