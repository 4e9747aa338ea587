"""The bottleneck that the sentence names is among the parts that advice changes, and no flow pays unseen."""

from __future__ import annotations

from typing import Any

import pytest

from engpass import advice
from engpass.advice import Change, Effect
from engpass.advice.base import Cost
from engpass.explain.select_point import choose_in
from engpass.explain.service import Needs
from engpass.explanation import Explanation, explain
from engpass.testbed import load
from required import known
from served import served

THIN = {"medium": "point-to-point", "rate": {"forward": "100 Mbit/s", "backward": "200 kbit/s"}}
"""A line on which acknowledgements of 52 B, one per two segments of 1448 B, allow about 11 Mbit/s."""

BUCKET = {"token-bucket": {"rate": "5 Mbit/s", "burst": "20 kB", "limit": "60 packets"}}


def explained(first: dict[str, Any], router: dict[str, Any], **traffic: dict[str, Any]) -> Explanation:
    testbed: dict[str, Any] = {
        "name": "Bottlenecks of TCP",
        "host": {"a": {}, "b": {}},
        "router": {"r": router},
        "link": {
            "x": {"ends": ["a", "r"], **first},
            "y": {"ends": ["r", "b"], "medium": "ethernet-1g"},
        },
        "traffic": {
            "t": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "64 KiB"},
            **traffic,
        },
        "run": {"duration": "2 s", "warmup": "1 s"},
    }
    return explain(choose_in(load(testbed), None, [], None))


FAST = {"medium": "ethernet-1g", "delay": "2 ms"}


@pytest.mark.parametrize(
    ("first", "router", "title", "key", "gain"),
    [
        ({**THIN, "delay": "10 ms"}, {}, "acknowledgements on link `x`", "link.x.rate.backward", 2),
        (FAST, {"per_packet": "100 us"}, "router `r`", "router.r.per_packet", 8),
        (FAST, {"processor": {"per_packet": "100 us"}}, "router `r`", "router.r.processor.per_packet", 8),
        (FAST, {"queue": BUCKET}, "token bucket of `r`", "router.r.queue.token-bucket.rate", 4),
    ],
    ids=["thin return path", "slow router", "slow processor", "token bucket"],
)
def test_advice_tries_a_faster_bottleneck_of_tcp(
    first: dict[str, Any], router: dict[str, Any], title: str, key: str, gain: float
) -> None:
    made = explained(first, router)
    assert made.at.limited.bottleneck is not None
    assert made.at.limited.bottleneck.title.startswith(title)
    assert made.advice is not None
    found = [change for change in made.advice.changes if [*dict(change.set)] == [key]]
    assert [(change.kind, change.cost) for change in found] == [("line", Cost.HARDWARE)]
    assert found[0].after > gain * found[0].before


def test_a_token_bucket_on_the_way_of_acknowledgements_is_that_of_the_router() -> None:
    made = explained({**FAST, "queue": {"token-bucket": {"rate": "200 kbit/s", "burst": "10 kB"}}}, {})
    assert made.advice is not None
    (found,) = [one for one in made.advice.changes if "link.x.queue.token-bucket.rate" in dict(one.set)]
    assert "token bucket of `r` towards `a`" in found.say
    assert found.after > 2 * found.before


def test_an_empty_return_path_gets_no_proposal() -> None:
    made = explained({**THIN, "rate": {"forward": "10 Mbit/s", "backward": "10 Mbit/s"}}, {})
    tried = {path for proposal in advice.propose_all(made.at) for path, _ in proposal.steps[0].set}
    assert {path for path in tried if path.startswith("link.")} == {"link.x.rate.forward"}


def effect(flow: str, before: float, after: float, fair: float) -> Effect:
    needs = Needs(fair, None, resends=True, paced=False)
    return Effect(flow, needs, served(before), served(after))


@pytest.mark.parametrize(
    ("after", "harms"),
    [((5, 5), []), ((5, 4.4), []), ((5, 2.9), ["b"]), ((7.5, 8), [])],
    ids=["fair at last", "a tenth lost", "more than a tenth lost", "both gain"],
)
def test_a_flow_above_its_fair_share_is_harmed_by_what_no_flow_gains(
    after: tuple[float, float], harms: list[str]
) -> None:
    """`a` has 2 Mbit/s, and `b` 8 Mbit/s of which 2.5 Mbit/s would be fair."""
    own, other = effect("a", 2, after[0], 5), effect("b", 8, after[1], 2.5)
    change = Change("line", Cost.SETTING, "change", (), own, (other,))
    assert change.harms == harms
    assert change.trades is bool(harms)


def test_priority_over_acknowledgements_has_a_price() -> None:
    """A flow in front of acknowledgements gains 0.08 Mbit/s, and costs TCP a hundred times as much."""
    upload = {"kind": "udp-stream", "from": "b", "to": "a", "message": "1000 B", "rate": "180 kbit/s"}
    made = explained({**THIN, "delay": "10 ms"}, {}, u=upload)
    assert made.at.flow == "u"
    assert made.advice is not None
    (first,) = [one for one in made.advice.trades if dict(one.set).get("traffic.u.priority") == "5"]
    (download,) = first.others
    assert download.given > 100 * (first.after - first.before) > 0
    assert not download.harmed, "TCP keeps its fair share"
    assert first.to_json()["harms"] == ["t"]


@pytest.mark.parametrize("fragment", ["outer", "inner"])
def test_segments_that_a_tunnel_would_cut_are_shortened(fragment: str) -> None:
    slow = {"medium": "point-to-point", "rate": "10 Mbit/s", "mtu": "1492 B", "overhead": "30 B"}
    testbed: dict[str, Any] = {
        "name": "A tunnel over a slow line",
        "host": {"a": {}, "b": {}},
        # A queue of packets would hold more data of whole packets than of fragments, and delay them longer.
        "router": {"near": {"queue": "fq-codel"}, "far": {}},
        "link": {
            "x": {"ends": ["a", "near"], "medium": "ethernet-1g"},
            "y": {"ends": ["near", "far"], **slow},
            "z": {"ends": ["far", "b"], "medium": "ethernet-1g"},
        },
        "tunnel": {"vpn": {"ends": ["near", "far"], "header": {"gre": {"key": 7}}, "fragment": fragment}},
        "traffic": {"t": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "64 KiB"}},
        "run": {"duration": "4 s", "warmup": "1 s"},
    }
    advised = known(explain(choose_in(load(testbed), None, [], None)).advice)
    found = [change for change in advised.changes if change.kind == "path-mtu"]
    # 28 B of IP and GRE headers, and 40 B of IP and TCP, in 1492 B. Outer fragments cost one packet in two.
    assert [dict(change.set) for change in found] == (
        [{"host.a.tcp.mss": "1424 B"}] if fragment == "outer" else []
    )
    assert all(change.after > 1.02 * change.before for change in found)
