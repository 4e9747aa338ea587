"""The layout of a testbed in the kernel; no namespace is created here."""

from __future__ import annotations

from pathlib import Path

import pytest

from engpass import netlab
from engpass.error import EngpassError
from engpass.netlab import emulated, kernel, registry, veth
from engpass.netlab.layout import layout
from engpass.plan import point_plan
from engpass.results.run_notes import another_hash
from engpass.testbed import load, loads
from engpass.types.plan import PointPlan

CAMPUS = """\
[host.left]
[host.right]
[host.far]
[switch.floor]
kind = "ethernet"
[router.gate]
[link.l1]
ends = ["left", "floor"]
medium = "ethernet-100"
[link.l2]
ends = ["right", "floor"]
medium = "ethernet-100"
[link.up]
ends = ["gate", "floor"]
medium = "ethernet-100"
[link.wan]
ends = ["gate", "far"]
medium = "point-to-point"
rate = "10 Mbit/s"
mtu = "1400 B"
overhead = "9 B"
[traffic.stream]
kind = "tcp-stream"
from = "left"
to = "far"
message = "8 kB"
"""


def numbers(text: str, set_: dict[str, str] | None = None) -> PointPlan:
    return point_plan(loads(text, set_).campaign, "base", [])


def test_a_bridge_joins_one_network_and_routers_have_routes() -> None:
    plan = layout(numbers(CAMPUS))
    addresses = {
        (name, port.device): str(port.address) if port.address else None
        for name, node in plan.nodes.items()
        for port in node.ports
    }
    assert addresses == {
        ("left", "l1"): "10.64.0.1/24",
        ("right", "l2"): "10.64.0.2/24",
        ("gate", "up"): "10.64.0.3/24",
        ("floor", "l1"): None,
        ("floor", "l2"): None,
        ("floor", "up"): None,
        ("gate", "wan"): "10.64.1.1/24",
        ("far", "wan"): "10.64.1.2/24",
    }
    routes = {
        name: [(str(route.to), *(str(hop.via) for hop in route.hops)) for route in node.routes]
        for name, node in plan.nodes.items()
    }
    assert routes == {
        "left": [("10.64.1.2", "10.64.0.3")],
        "right": [("10.64.1.2", "10.64.0.3")],
        "gate": [],
        "floor": [],
        "far": [("10.64.0.1", "10.64.1.1"), ("10.64.0.2", "10.64.1.1")],
    }
    assert {str(plan.ways[pair]) for pair in [("left", "far"), ("right", "far")]} == {"10.64.1.2"}


def test_shortest_path_is_taken_and_ties_follow_file_order() -> None:
    text = """\
[host.a]
[host.b]
[router.x]
[router.y]
[link.ax]
ends = ["a", "x"]
medium = "ethernet-1g"
[link.ay]
ends = ["a", "y"]
medium = "ethernet-1g"
[link.yb]
ends = ["y", "b"]
medium = "ethernet-1g"
[link.xb]
ends = ["x", "b"]
medium = "ethernet-1g"
[traffic.s]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
"""
    plan = layout(numbers(text))
    # Two paths of two links: `ax` is the first in the file, so `b` is reached at `xb`.
    assert str(plan.ways["a", "b"]) == str(
        next(p.address.ip for p in plan.nodes["b"].ports if p.address and p.device == "xb")
    )
    # In the other direction packets use the same links, as in the model.
    assert str(plan.ways["b", "a"]) == str(
        next(p.address.ip for p in plan.nodes["a"].ports if p.address and p.device == "ax")
    )
    model = loads(text).topology.flows[0].route
    assert model == ["a", "x", "b"]


def test_line_shape_includes_the_overhead_of_its_medium() -> None:
    plan = layout(numbers(CAMPUS))
    shapes = {port.device: port.shape for port in plan.nodes["gate"].ports}
    # The kernel counts 14 B of header. Ethernet: 8 B preamble, 4 B FCS, 12 B gap; a frame of at least 64 B.
    assert (shapes["up"].overhead_bytes, shapes["up"].minimum_bytes) == (24, 84)
    assert (shapes["wan"].overhead_bytes, shapes["wan"].minimum_bytes) == (-5, 0)
    # A tag counts among the 64 B, as in the model.
    tagged = layout(numbers(CAMPUS, {"link.up.vlan": "true"}))
    (shape,) = [port.shape for port in tagged.nodes["gate"].ports if port.device == "up"]
    assert (shape.overhead_bytes, shape.minimum_bytes) == (28, 84)
    assert shapes["wan"].rate_bit_per_s == 10_000_000
    assert shapes["wan"].queue_packets == 1000


def test_invalid_device_and_namespace_names_are_replaced() -> None:
    text = (
        CAMPUS.replace("link.l1", 'link."a cable / under the floor"')
        .replace("[host.left]", '[host."le/ft"]\n[host."le ft"]')
        .replace('"left"', '"le/ft"')
    )
    plan = layout(numbers(text))
    assert [node.label for node in plan.nodes.values()][:2] == ["le_ft", "le_ft_2"]
    assert plan.nodes["le/ft"].ports[0].device == "link0"


def test_many_hosts_share_one_large_network() -> None:
    count = 300
    text = '[switch.s]\nkind = "ethernet"\n' + "".join(
        f'[host.h{i}]\n[link.l{i}]\nends = ["h{i}", "s"]\nmedium = "ethernet-1g"\n' for i in range(count)
    )
    text += '[traffic.t]\nkind = "udp-stream"\nfrom = "h0"\nto = "h1"\nmessage = "1 kB"\n'
    addresses = [node.ports[0].address for node in layout(numbers(text)).hosts()]
    assert len({address.network for address in addresses if address}) == 1
    assert len({address.ip for address in addresses if address}) == count


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"link.wan.delay": "20 ms"}, "link `wan` has a delay of 20 ms"),
        ({"link.wan.loss": "1 %"}, "link `wan` has loss"),
        ({"link.wan.jitter": "1 ms"}, "link `wan` has jitter"),
        ({"router.gate.queue": "codel"}, "has a queue `codel`"),
        ({"router.gate.per_packet": "1 ms"}, "`gate` has a processing time of 1 ms per packet"),
        (
            {
                "link.again": '{ ends = ["gate", "far"], medium = "ethernet-100" }',
                "router.gate.ecmp": "hash",
            },
            "packets can arrive at `far` on several links (`wan`, `again`)",
        ),
        (
            {
                "link.again": '{ ends = ["gate", "floor"], medium = "ethernet-100" }',
                "router.gate.ecmp": "round-robin",
            },
            "`gate` chooses a path for each packet (`round-robin`), but Linux chooses one for each flow",
        ),
        (
            {
                "link.again": '{ ends = ["gate", "floor"], medium = "ethernet-100" }',
                "router.gate.ecmp": "{ hash = { weights = { up = 514, again = 4 } } }",
            },
            "`gate` has weights 257:2, but Linux supports at most 256",
        ),
        (
            {"event.cut": '{ target = "wan", at = "1 s", change = "down" }'},
            "event `cut` changes a link",
        ),
    ],
)
def test_veth_names_what_it_cannot_carry(change: dict[str, str], reason: str) -> None:
    found = numbers(CAMPUS, change)
    assert any(reason in said for said in veth.cannot(found)), veth.cannot(found)
    with pytest.raises(EngpassError, match="cannot create the hosts of this testbed: `measure`"):
        netlab.choose_engine(found, "measure")
    if not emulated.cannot(found):
        assert netlab.choose_engine(found) == "emulate"


def test_router_with_hash_has_weighted_multipath_routes() -> None:
    again = {"link.again": '{ ends = ["gate", "floor"], medium = "ethernet-100" }'}
    weights = {"router.gate.ecmp": "{ hash = { weights = { up = 512, again = 64 } } }"}
    found = numbers(CAMPUS, again | weights)
    assert veth.cannot(found) == []
    assert veth.notes(found) == [another_hash(["`gate`"])]
    gate = layout(found).nodes["gate"]
    assert {str(route.to): [(hop.device, hop.weight) for hop in route.hops] for route in gate.routes} == {
        "10.64.0.1": [("up", 8), ("again", 1)],
        "10.64.0.2": [("up", 8), ("again", 1)],
    }
    # With the policy `first` the first link carries all packets.
    first = numbers(CAMPUS, again | {"router.gate.ecmp": "first"})
    assert (layout(first).nodes["gate"].routes, veth.notes(first)) == ([], [])


def test_times_of_a_router_that_are_left_out_are_noted() -> None:
    found = numbers(CAMPUS, {"router.gate.processor": '{ per_packet = "40 us", per_copy = "50 us" }'})
    assert veth.cannot(found) == []
    assert veth.notes(found) == [
        "router `gate` is as fast as this machine: its work of up to 50 us on a packet is left out"
    ]


def test_delays_that_are_left_out_are_noted() -> None:
    assert veth.notes(numbers(CAMPUS, {"link.up.delay": "9 us"})) == []
    assert veth.notes(numbers(CAMPUS, {"link.up.delay": "80 us"})) == [
        "the delay of link `up`, 80 us, is left out: the namespaces have a delay of their own"
    ]
    several = {f"link.{name}.delay": "80 us" for name in ("l1", "l2", "up", "wan")}
    assert veth.notes(
        numbers(CAMPUS, several | {"link.up.delay": "20 us", "switch.floor.latency": "30 us"})
    ) == [
        (
            "delays of links `l1`, `l2`, `up` and 1 more, up to 80 us, are left out:"
            " the namespaces have a delay of their own"
        ),
        "the delay of switch `floor`, 30 us, is left out: the namespaces have a delay of their own",
    ]


def test_ecmp_policy_without_a_choice_is_carried() -> None:
    assert veth.cannot(numbers(CAMPUS, {"router.gate.ecmp": "hash"})) == []


def test_veth_does_not_carry_a_tunnel_that_is_up() -> None:
    routers = CAMPUS.replace('["gate", "far"]', '["gate", "edge"]')
    text = routers + '[router.edge]\n[link.last]\nends = ["edge", "far"]\nmedium = "ethernet-100"\n'
    tunnel = {"tunnel.gre": '{ ends = ["gate", "edge"] }'}
    assert veth.cannot(numbers(text, tunnel)) == ["tunnel `gre` is not supported by this engine"]
    assert veth.cannot(numbers(text, tunnel | {"tunnel.gre.up": "false"})) == []


def test_hosts_that_exist_already_are_not_created() -> None:
    with pytest.raises(EngpassError, match="exists already, because it has `reach`"):
        netlab.choose_engine(numbers(CAMPUS, {"host.left.reach": "local"}))


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engpass.child.find", lambda tool: None if tool == "tc" else f"/sbin/{tool}")
    with pytest.raises(EngpassError) as caught:
        kernel.check_tools()
    assert (
        str(caught.value) == "`tc` is not installed, or not in PATH\nhelp: install it: `apt install iproute2`"
    )


def test_own_namespaces_are_recognised_by_name() -> None:
    assert registry.OURS.fullmatch("engpass-3fa2bc-left")
    for name in ("engpass", "engpass-left", "engpass-3fa2bc", "my-engpass-3fa2bc-x", "left"):
        assert not registry.OURS.fullmatch(name)


def test_kyoto_live_testbed_can_be_measured() -> None:
    testbed = load(Path(__file__).parents[2] / "gallery" / "kyoto-live" / "testbed.toml")
    assert len(testbed.variants) == 4
    for variant in testbed.variants:
        found = point_plan(testbed.campaign, variant, [])
        assert netlab.choose_engine(found) == "measure"
        assert veth.notes(found) == []
