"""The testbed's diagram: positions of the nodes, and complete texts."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import engpass
from engpass.report import theme
from engpass.report.diagram import describe, diagram
from engpass.report.layout import layers, read
from engpass.types.plan import Drawing, DrawnCircuit, DrawnFlow, DrawnLink, DrawnNode
from report_kyoto import TOPOLOGY


def texts(svg: str) -> str:
    return " ".join(element.text or "" for element in ET.fromstring(svg).iter() if element.text)


@pytest.mark.parametrize("narrow", [False, True])
def test_diagram_of_the_kyoto_study_names_all_parts(narrow: bool) -> None:
    svg = diagram(TOPOLOGY, narrow=narrow, palette=theme.LIGHT)
    said = texts(svg)
    for name in (
        "ss2",
        "ss20",
        "generator",
        "atomis5",
        "sender",
        "receiver",
        "load",
        "oc-3c",
        "155.52 Mbit/s",
    ):
        assert name in said
    assert "stream: udp-stream, ss2 → ss20" in said
    assert "circuit data: ss2 → ss20" in said
    # Two flows with an arrow head on each of two links, and one in the legend.
    assert svg.count("<polygon") == 4 + 2
    assert "var(--" not in svg


def test_narrow_diagram_fits_a_phone() -> None:
    svg = diagram(TOPOLOGY, narrow=True)
    width = re.search(r'viewBox="0 0 (\d+) ', svg)
    assert width is not None
    assert int(width[1]) <= 362
    assert "var(--ink)" in svg


def test_diagram_orders_senders_switches_and_receivers() -> None:
    graph = read(TOPOLOGY)
    names = [[graph.nodes[node][0] for node in row] for row in layers(graph)]
    assert [sorted(row) for row in names] == [["generator", "ss2"], ["atomis5"], ["ss20"]]


def test_diagram_has_a_text_description() -> None:
    said = describe(TOPOLOGY)
    assert "ss2 to atomis5, oc-3c, 155.52 Mbit/s" in said
    assert "stream (udp-stream) from ss2 to ss20" in said
    assert "aria-label" in diagram(TOPOLOGY)


def test_parallel_links_are_drawn_apart() -> None:
    bonded = Drawing(
        nodes=[DrawnNode(name="a", kind="host"), DrawnNode(name="b", kind="host")],
        links=[
            DrawnLink(name=f"l{i}", ends=ends, medium="ethernet-1g", rates_bit_per_s=[10**9] * 2)
            for i, ends in enumerate((["a", "b"], ["b", "a"], ["a", "b"]))
        ],
        flows=[DrawnFlow(name="f", kind="tcp-stream", from_="a", to="b", route=["a", "b"])],
    )
    svg = diagram(bonded, palette=theme.LIGHT)
    curves = re.findall(r'<path d="(M[^"]*Q[^"]*)"', svg)
    assert len(curves) == 4
    assert len(set(curves)) == 4


CHOICES = """
[host.a]
[host.b]
[router.near]
ecmp.hash.seed = 25
[router.far]
[link]
in = { ends = ["a", "near"], medium = "ethernet-1g" }
l1 = { ends = ["near", "far"], medium = "ethernet-100" }
l2 = { ends = ["near", "far"], medium = "ethernet-100" }
l3 = { ends = ["near", "far"], medium = "ethernet-100" }
l4 = { ends = ["near", "far"], medium = "ethernet-100" }
out = { ends = ["far", "b"], medium = "ethernet-1g" }
[traffic]
f1 = { kind = "tcp-stream", from = "a", to = "b", message = "64 kB" }
f2 = { kind = "tcp-stream", from = "a", to = "b", message = "64 kB" }
"""


def test_flows_are_drawn_on_their_chosen_lines() -> None:
    topology = engpass.loads(CHOICES).topology
    ways = [[step.link for step in flow.steps] for flow in topology.flows]
    assert ways == [["in", "l1", "out"], ["in", "l3", "out"]]
    # Without a choice a flow has no steps.
    first = engpass.loads(
        CHOICES, set=dict.fromkeys(("router.near.ecmp", "router.far.ecmp"), "first")
    ).topology
    assert [flow.steps for flow in first.flows] == [[], []]
    turns = engpass.loads(CHOICES, set={"router.near.ecmp": "round-robin"}).topology
    assert {step.link for step in turns.flows[0].steps} == {"in", "l1", "l2", "l3", "l4", "out"}
    # Two lanes on each outer link, one on each of two inner lines: six arrow heads, and two in the legend.
    svg = diagram(topology, palette=theme.LIGHT)
    assert svg.count("<polygon") == 6 + 2


@pytest.mark.parametrize("narrow", [False, True])
def test_fanned_links_stay_inside_the_diagram(narrow: bool) -> None:
    svg = ET.fromstring(diagram(engpass.loads(CHOICES).topology, narrow=narrow, palette=theme.LIGHT))
    width, height = (float(svg.attrib[key]) for key in ("width", "height"))
    for path in svg.iter("{http://www.w3.org/2000/svg}path"):
        points = re.findall(r"(-?[\d.]+),(-?[\d.]+)", path.attrib["d"])
        if len(points) == 3:
            (ax, ay), (cx, cy), (bx, by) = ((float(x), float(y)) for x, y in points)
            middle = (ax + 2 * cx + bx) / 4, (ay + 2 * cy + by) / 4
            assert 0 <= middle[0] <= width
            assert 0 <= middle[1] <= height
    for text in svg.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= float(text.attrib["y"]) <= height


NETWORK = """
[host.a]
[host.b]
[switch.office]
kind = "ethernet"
[router.gateway]
[link.a]
ends = ["a", "office"]
medium = "ethernet-100"
[link.trunk]
ends = ["office", "gateway"]
medium = "ethernet-1g"
[link.isdn]
ends = ["a", "b"]
medium = "atm"
rate = "128 kbit/s"
[link.b]
ends = ["gateway", "b"]
medium = "ethernet-1g"
[traffic.stream]
kind = "tcp-stream"
from = "a"
to = "b"
message = "64 kB"
"""


def test_diagram_draws_routers_and_the_packet_route() -> None:
    topology = engpass.loads(NETWORK).topology
    kinds = [node.kind for node in topology.nodes]
    assert kinds == ["host", "host", "ethernet switch", "router"]
    # The shorter path carries cells, but no circuit exists for the packets.
    assert topology.flows[0].route == ["a", "office", "gateway", "b"]
    assert read(topology).flows[0].nodes == (0, 2, 3, 1)
    svg = diagram(topology, palette=theme.LIGHT)
    assert texts(svg).count("router") == 1 + 1  # in its box and in its title
    assert svg.count('rx="23"') == 1
    # A flow without a route, or with a route that does not match the links, is drawn without lanes.
    routes: list[list[str]] = [[], ["a", "b", "nobody"], ["a", "gateway", "b"]]
    for route in routes:
        flow = replace(topology.flows[0], route=route)
        assert read(replace(topology, flows=[flow])).flows[0].nodes == ()


names = st.text(min_size=1, max_size=4)


@st.composite
def topologies(draw: st.DrawFn) -> Drawing:
    nodes = draw(st.lists(names, min_size=1, max_size=9, unique=True))
    pick = st.sampled_from([*nodes, "nobody"])
    pairs = st.lists(st.tuples(pick, pick), max_size=14)
    kinds = st.sampled_from(["host", "atm switch", "router"])
    return Drawing(
        nodes=[DrawnNode(name=name, kind=draw(kinds)) for name in nodes],
        links=[
            DrawnLink(name=f"l{i}", ends=[a, b], medium="oc-3c", rates_bit_per_s=[10**6] * 2)
            for i, (a, b) in enumerate(draw(pairs))
        ],
        circuits=[DrawnCircuit(name=f"c{i}", from_=a, to=b) for i, (a, b) in enumerate(draw(pairs))],
        flows=[DrawnFlow(name=f"f{i}", kind="cbr", from_=a, to=b) for i, (a, b) in enumerate(draw(pairs))],
    )


@given(topology=topologies(), narrow=st.booleans())
def test_any_topology_is_drawn_inside_the_diagram(topology: Drawing, narrow: bool) -> None:
    graph = read(topology)
    placed = sorted(node for row in layers(graph) for node in row)
    assert placed == list(range(len(graph.nodes)))
    svg = ET.fromstring(diagram(topology, narrow=narrow, palette=theme.LIGHT))
    width, height = (float(svg.attrib[key]) for key in ("width", "height"))
    boxes = [e for e in svg.iter("{http://www.w3.org/2000/svg}rect") if "rx" in e.attrib]
    assert len(boxes) == len(graph.nodes)
    for box in boxes:
        x, y, w, h = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        assert x >= 0 <= y
        assert x + w <= width
        assert y + h <= height


def test_large_topology_draws_only_the_first_routes() -> None:
    ends = [f"h{at}" for at in range(6000)]
    topology = Drawing(
        nodes=[DrawnNode(name="middle", kind="router"), *(DrawnNode(name=end, kind="host") for end in ends)],
        links=[DrawnLink(name=f"l{at}", ends=["middle", end], medium="") for at, end in enumerate(ends)],
        flows=[
            DrawnFlow(name=f"f{at}", from_=one, to=other, route=[one, "middle", other])
            for at, (one, other) in enumerate(zip(ends[::2], ends[1::2], strict=True))
        ],
    )
    svg = diagram(topology, palette=theme.LIGHT)
    said = texts(svg)
    assert all(f"h{at}" in said for at in range(16))
    assert "h16" not in said
    assert "5,984 of 6,001 nodes and 2,992 of 3,000 flows are not drawn" in said
    assert "h15" in describe(topology)
    assert len(describe(topology)) < 2000
    # Nodes are also drawn without traffic.
    assert "middle" in texts(diagram(replace(topology, flows=[]), palette=theme.LIGHT))
