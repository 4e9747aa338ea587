"""Links with a rate for each direction: all code that reads a line rate uses that of the transmitter."""

from __future__ import annotations

import pytest

from engpass.explain.select_point import choose_in
from engpass.explanation import explain
from engpass.netlab import veth
from engpass.netlab.egress_shaping import held
from engpass.netlab.layout import layout, stations
from engpass.plan import point_plan
from engpass.report.diagram import describe, diagram
from engpass.results import ledger
from engpass.settings import Settings
from engpass.testbed import loads
from engpass.types.plan import PointPlan

THIN = """\
[host.a]
[host.b]
[link.access]
ends = ["a", "b"]
medium = "point-to-point"
rate = { forward = "20 Mbit/s", backward = "1 Mbit/s" }
[traffic.down]
kind = "tcp-stream"
from = "a"
to = "b"
message = "64 kB"
[run]
duration = "500 ms"
"""
PLAIN = THIN.replace('{ forward = "20 Mbit/s", backward = "1 Mbit/s" }', '"20 Mbit/s"')
BACKWARD = "link.access.rate.backward"


def numbers(text: str = THIN) -> PointPlan:
    return point_plan(loads(text).campaign, "base", [])


def test_set_changes_one_direction_of_a_plain_rate() -> None:
    changed = loads(PLAIN, {BACKWARD: "1 Mbit/s"})
    assert changed.topology == loads(THIN).topology
    for testbed in (changed, loads(THIN)):
        rate = Settings.at(testbed.campaign, "base", ()).get("link", "access", "rate")
        assert rate == {"forward": "20 Mbit/s", "backward": "1 Mbit/s"}


def test_sweep_varies_the_rate_of_one_direction() -> None:
    run = loads(PLAIN + f'[sweep]\n"{BACKWARD}" = ["10 kbit/s", "20 Mbit/s"]\n').run(["simulate"])
    carried = [
        {side.start: side.books.capacity for side in ledger.directions(outcome)} for outcome in run.outcomes
    ]
    assert carried == [{"a": 10_000_000, "b": 5_000}, {"a": 10_000_000, "b": 10_000_000}]


def test_topology_drawing_shows_both_rates() -> None:
    topology = loads(THIN).topology
    assert "a to b, point-to-point, 20 Mbit/s from a, 1 Mbit/s from b" in describe(topology)
    assert "1 Mbit/s from b" in diagram(topology)
    assert "a to b, point-to-point, 20 Mbit/s." in describe(loads(PLAIN).topology)


def test_each_end_of_a_link_is_limited_to_its_own_rate() -> None:
    made = numbers()
    plan = layout(made)
    (at_a,), (at_b,) = (plan.nodes[node].ports for node in "ab")
    assert (at_a.shape.rate_bit_per_s, at_b.shape.rate_bit_per_s) == (20_000_000, 1_000_000)
    hosts = stations(made)
    for host, rate in (("a", "20000000bit"), ("b", "1000000bit")):
        (line,) = held(made, hosts[host], hosts, 1500, 1, whole=True)
        assert f"tbf rate {rate}" in line
    fast = numbers(THIN.replace("20 Mbit/s", "100 Gbit/s"))
    assert veth.notes(fast) == ["link `access` is as fast as this machine: its rate is not limited"]


@pytest.mark.parametrize(
    ("sender", "direction", "words"),
    [("a", "forward", "from `a` to `b` to"), ("b", "backward", "from `b` to `a` to")],
)
def test_advice_raises_the_rate_of_the_direction_that_is_full(
    sender: str, direction: str, words: str
) -> None:
    receiver = "b" if sender == "a" else "a"
    text = THIN.replace('from = "a"\nto = "b"', f'from = "{sender}"\nto = "{receiver}"')
    made = explain(choose_in(loads(text), "base", [], None))
    assert made.advice is not None
    (line,) = [change for change in made.advice.changes if change.kind == "line"]
    assert words in line.text
    assert dict(line.set).keys() == {f"link.access.rate.{direction}"}
