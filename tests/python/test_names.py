"""Names in a file may be any text: no kind and no place is derived from them."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from msgspec.structs import replace

from engpass.advice import memory, ports
from engpass.explain.losses import where
from engpass.explain.point_facts import Drop, Situation
from engpass.explain.select_point import choose_in
from engpass.limiter import limiting_kind, limits_receiver, limits_sender
from engpass.settings import Setting, Settings
from engpass.testbed import loads
from engpass.types.outcome import (
    VERSION,
    Bottleneck,
    BottleneckKind,
    Candidate,
    Datagrams,
    Engine,
    FlowLimit,
    FlowOutcome,
    Outcome,
    Place,
)
from engpass.types.plan import Drawing


def flow(title: str, kind: BottleneckKind) -> FlowOutcome:
    thing = Bottleneck(kind=kind, title=title)
    limit = FlowLimit(stages=[], candidates=[Candidate(bottleneck=thing, goodput_bit_per_s=1e6)])
    return FlowOutcome(
        kind="udp-stream", goodput_bit_per_s=1e6, offered_bit_per_s=1e6, bottleneck=thing, limit=limit
    )


def outcome(engine: Engine, only: FlowOutcome) -> Outcome:
    return Outcome(
        version=VERSION,
        variant="base",
        engine=engine,
        repeat=0,
        seed=1,
        sweep={},
        flows={"f": only},
        links={},
    )


def situation(limit: FlowOutcome, *nodes: str) -> Situation:
    """A flow over a chain of nodes; the inner nodes are routers."""
    links = [
        {"name": f"l{i}", "ends": pair, "medium": "ethernet-1g"}
        for i, pair in enumerate(itertools.pairwise(nodes))
    ]
    topology = {
        "nodes": [
            {"name": node, "kind": "host" if node in (nodes[0], nodes[-1]) else "router"} for node in nodes
        ],
        "links": links,
        "flows": [{"name": "f", "kind": "udp-stream", "from": nodes[0], "to": nodes[-1]}],
    }
    routers = Setting(keys={node: Setting(given=True) for node in nodes[1:-1]})
    settings = Settings(Setting(keys={"router": routers}))
    sent = FlowOutcome(
        kind="udp-stream",
        goodput_bit_per_s=1e6,
        offered_bit_per_s=1e6,
        datagrams=Datagrams(sent=100, received=100, lost=0),
    )
    found = (outcome("simulate", sent),)
    drawing = msgspec.convert(topology, Drawing)
    return Situation(settings, drawing, "f", found, outcome("limit", limit))


@pytest.mark.parametrize(
    ("name", "kind"), [("link `of host `a`", "link"), ("router `memory of host `a`", "router")]
)
def test_a_link_or_router_named_like_a_host_is_no_host(name: str, kind: BottleneckKind) -> None:
    limit = flow(name, kind)
    assert limiting_kind(limit) == kind
    assert not limits_sender(limit)
    assert not limits_receiver(limit)
    at = situation(limit, "a", "b")
    assert not memory._holds_back(at, "send")


def test_the_limit_of_a_sender_is_no_limit_of_the_receiver() -> None:
    limit = flow("memory of host `a`", "sending-memory")
    assert limits_sender(limit)
    assert not limits_receiver(limit)


def test_bottleneck_kind_is_not_read_from_its_title() -> None:
    unknown = flow("link `wan`", "unknown")
    assert limiting_kind(unknown) == "unknown"
    assert limiting_kind(replace(unknown, bottleneck=None)) == "unknown"
    assert limiting_kind(None) == "unknown"


def test_a_port_of_a_node_with_an_arrow_in_its_name_is_found() -> None:
    at = situation(flow("link `l0`", "link"), "a", "r -> s", "b")
    drop = Drop(Place(node="r -> s", link="l1", to="b"), "buffer full", "f", 0, 1)
    assert where(drop, at) == "the buffer of `r -> s` towards `b`"
    at.__dict__["drops"] = (drop,)
    assert ports.losing(at) == [("r -> s", "b", "l1")]


def test_loss_in_a_host_named_with_an_arrow_is_not_on_a_line() -> None:
    at = situation(flow("link `l0`", "link"), "a", "x -> y")
    drop = Drop(Place(node="x -> y"), "receive buffer", "f", 0, 1)
    assert where(drop, at) == "the receive buffer of host `x -> y`"


def test_names_like_reserved_words_are_explained() -> None:
    text = """
    [host."link"]
    cost = { per_datagram = "1 ms" }
    [host."a -> b"]
    [link."of host `link"]
    ends = ["link", "a -> b"]
    medium = "ethernet-100"
    [traffic."other: f"]
    kind = "udp-stream"
    from = "link"
    to = "a -> b"
    message = "1 kB"
    [run]
    duration = "20 ms"
    """
    from engpass.explanation import explain

    made = explain(choose_in(loads(text), None, [], None), advice=False)
    assert made.finding.bottleneck in ("host `link`", "the CPU of host `link`")
