"""Bonds as a user sees them: in explanations, drawings, and with real programs."""

from __future__ import annotations

import functools

import pytest

import engpass
from engpass.explain.select_point import choose_in
from engpass.explanation import Explanation, explain
from engpass.netlab import veth
from engpass.plan import point_plan
from engpass.report import diagram

TEXT = """\
name = "a server with two links"
[host.server]
[host.client]
[switch.s]
kind = "ethernet"
[link.one]
ends = ["server", "s"]
medium = "ethernet-100"
[link.two]
ends = ["server", "s"]
medium = "ethernet-100"
[link.out]
ends = ["s", "client"]
medium = "ethernet-1g"
[bond.up]
node = "server"
links = ["one", "two"]
[bond.down]
node = "s"
links = ["one", "two"]
[traffic.bulk]
kind = "tcp-stream"
from = "server"
to = "client"
message = "64 KiB"
streams = 8
[run]
duration = "300 ms"
"""

STREAM = '"1 kB"\nrate = "8 Mbit/s"'

CUT = """\
[event.cut]
target = "one"
at = "130 ms"
change = "down"
"""


@functools.cache
def explained(sets: tuple[tuple[str, str], ...] = (), text: str = TEXT) -> Explanation:
    testbed = engpass.loads(text, name="server.toml", set=dict(sets))
    return explain(choose_in(testbed, None, [], "bulk"))


def changes(made: Explanation) -> dict[str, dict[str, str]]:
    assert made.advice is not None
    found = (*made.advice.changes, *made.advice.trades)
    return {change.say: dict(change.set) for change in found if change.kind == "bond"}


def test_explain_names_bond_with_idle_member_and_tries_modes() -> None:
    made = explained()
    assert (
        "bond `up` chooses by a hash, which leaves link `one` idle 100.0 % of the time"
        in made.finding.evidence
    )
    assert changes(made) == {
        "let bond `up` choose members by a hash of IP addresses and ports": {
            "bond.up.mode": '{ hash = { layers = "layer-3+4" } }'
        },
        "let bond `up` send packets round-robin over its members": {"bond.up.mode": "round-robin"},
    }


def test_explain_names_the_active_backup_bond() -> None:
    made = explained((("bond.up.mode", "active-backup"), ("bond.down.up", "false")))
    assert "bond `up` sends on its active member, which leaves link `two` idle" in made.finding.evidence


def test_advice_shortens_a_slow_bond_monitor_interval() -> None:
    sets = (("bond.up.mode", "active-backup"), ("bond.down.up", "false"))
    stream = TEXT.replace('kind = "tcp-stream"', 'kind = "udp-stream"').replace(
        '"64 KiB"\nstreams = 8', STREAM
    )
    made = explained(sets, stream + CUT)
    found = changes(made)
    assert found["let bond `up` check its links every 10 ms"] == {"bond.up.monitor.interval": "10 ms"}
    # From 130 ms to the check of the monitor at 200 ms, and to the next datagram.
    assert made.at.gap == pytest.approx(0.071, abs=1e-6)


def test_explain_names_host_that_hears_another_bond_member() -> None:
    text = """\
name = "two hosts"
[host.a]
[host.b]
[link.x]
ends = ["a", "b"]
medium = "ethernet-100"
[link.y]
ends = ["a", "b"]
medium = "ethernet-100"
[bond.a]
node = "a"
links = ["x", "y"]
mode = "active-backup"
[bond.b]
node = "b"
links = ["x", "y"]
mode = "active-backup"
[event.cut]
target = "a/x"
at = "10 ms"
change = "down"
[traffic.bulk]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "8 Mbit/s"
[run]
duration = "300 ms"
"""
    made = explained((), text)
    assert made.finding.key == "drops: inactive member"
    assert made.finding.bottleneck == "the line from `a` to `b` over `y`"
    assert "while host `b` receives on another member of its bond" in made.finding.evidence


def test_topology_drawing_names_bonds() -> None:
    testbed = engpass.loads(TEXT, name="server.toml")
    assert [(bond.name, bond.node, bond.to, bond.mode) for bond in testbed.topology.bonds] == [
        ("up", "server", "s", "hash"),
        ("down", "s", "server", "hash"),
    ]
    assert "bond up: hash, server → s, one, two" in diagram.diagram(testbed.topology)


def test_kernel_testbed_rejects_bonds() -> None:
    numbers = point_plan(engpass.loads(TEXT).campaign, "base", [])
    assert "bond `up` is not supported by this engine" in veth.cannot(numbers)


def test_path_shares_are_those_of_the_bond_members() -> None:
    def shares(mode: str) -> list[tuple[float, str]]:
        testbed = engpass.loads(TEXT, set={"bond.up.mode": mode})
        (outcome,) = testbed.run(["limit"]).outcomes
        return [(path.share, path.steps[0].link) for path in outcome.flows["bulk"].paths]

    assert shares("hash") == [(1.0, "two")]
    assert shares("round-robin") == [(0.5, "one"), (0.5, "two")]
    assert shares('{ hash = { layers = "layer-3+4" } }') == [(0.5, "one"), (0.5, "two")]
