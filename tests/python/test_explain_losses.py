"""Explanations of flows that lose packets: place and cause in words, and changes of the lossy part."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from engpass import advice
from engpass.explain.losses import _WHICH, what, where, which
from engpass.explain.point_facts import Drop
from engpass.explain.select_point import choose_in
from engpass.explanation import Explanation, explain
from engpass.results.samples import DELAY_P99
from engpass.testbed import load
from engpass.types.outcome import Place


def explained(text: dict[str, Any], *, with_advice: bool = True, **sets: str) -> Explanation:
    testbed: dict[str, Any] = {"name": "Losses", "host": {"a": {}, "b": {}}, **copy.deepcopy(text)}
    return explain(choose_in(load(testbed, set=sets), None, [], None), advice=with_advice)


def changes(made: Explanation) -> dict[str, dict[str, str]]:
    """The changes that help: their text, and the values by path."""
    assert made.advice is not None
    return {change.say: dict(change.set) for change in made.advice.changes}


UDP = {"kind": "udp-stream", "from": "a", "to": "b"}
TCP = {"kind": "tcp-stream", "from": "a", "to": "b", "message": "10 kB"}


@pytest.mark.parametrize("own", [False, True], ids=["queue of the router", "queue of the link"])
def test_advice_is_for_the_one_of_parallel_links_that_loses(own: bool) -> None:
    """A hash puts the flow on `p1`; the queue of `p0`, which is longer, loses nothing."""
    short, long = ({"queue": {"drop-tail": {"limit": f"{size} packets"}}} for size in (4, 500))
    line = {"ends": ["r", "q"], "medium": "ethernet-100", "delay": "1 ms"}
    near, far = ({"medium": "ethernet-1g", "delay": "1 ms"} for _ in range(2))
    made = explained(
        {
            "router": {"r": {"ecmp": {"hash": {"seed": 1}}, **({} if own else short)}, "q": {}},
            "link": {
                "la": {"ends": ["a", "r"], **near},
                "p0": {**line, **long},
                "p1": {**line, **(short if own else {})},
                "lb": {"ends": ["q", "b"], **far},
            },
            "traffic": {"u": TCP},
            "run": {"duration": "1 s"},
        }
    )
    assert made.at.own_drops[0].place.link == "p1"
    path = "link.p1.queue" if own else "router.r.queue"
    raised = {say: sets for say, sets in changes(made).items() if say.startswith("raise the buffer")}
    assert [[*sets] for sets in raised.values()] == [[path]]
    over = " over `p1`" if own else ""
    assert all(say.startswith(f"raise the buffer of `r` towards `q`{over} to ") for say in raised)
    assert made.advice is not None
    assert not any("p0" in say for say in made.advice.tried if "ecmp" not in say)


@pytest.mark.parametrize(
    ("switch", "first", "second", "traffic", "needed"),
    [
        (
            {"kind": "ethernet", "queue": {"drop-tail": {"limit": "4 packets"}}},
            {"medium": "ethernet-1g"},
            {"medium": "ethernet-10"},
            # 41 fragments.
            {"message": "60 kB", "rate": "3 Mbit/s"},
            ("switch.s.queue", '{ drop-tail = { limit = "64 packets" } }'),
        ),
        (
            {"kind": "atm", "output_buffer": "30 cells"},
            {"medium": "oc-3c"},
            {"medium": "atm", "rate": "30 Mbit/s"},
            # 189 cells, of which four fifths wait.
            {"message": "9000 B", "rate": "10 Mbit/s"},
            ("switch.s.output_buffer", "240 cells"),
        ),
        (
            {"kind": "ethernet", "queue": {"drop-tail": {"limit": "100 B"}}},
            {"medium": "ethernet-100"},
            {"medium": "ethernet-100"},
            {"message": "1400 B", "rate": "3 Mbit/s"},
            ("switch.s.queue", '{ drop-tail = { limit = "1600 B" } }'),
        ),
    ],
    ids=["fragments", "cells", "a buffer shorter than a packet"],
)
def test_advice_raises_a_buffer_until_a_whole_datagram_fits(
    switch: dict[str, Any],
    first: dict[str, Any],
    second: dict[str, Any],
    traffic: dict[str, Any],
    needed: tuple[str, str],
) -> None:
    """Nothing arrives before that, so steps without a gain do not end the search."""
    made = explained(
        {
            "switch": {"s": switch},
            "link": {"x": {"ends": ["a", "s"], **first}, "y": {"ends": ["s", "b"], **second}},
            **({"circuit": {"c": {"from": "a", "to": "b"}}} if switch["kind"] == "atm" else {}),
            "traffic": {"u": {**UDP, **traffic}},
            "run": {"duration": "1 s"},
        }
    )
    assert made.at.goodput == 0
    assert made.advice is not None
    (best,) = [one for one in made.advice.changes if one.kind == "buffer"]
    assert best.set == (needed,)
    assert best.own.after.loss == 0


def test_another_discipline_keeps_the_default_limit_of_the_present_one() -> None:
    """The default of `fq-codel` is ten times that of `drop-tail`: a larger buffer would only fill."""
    made = explained(
        {
            "switch": {"s": {"kind": "ethernet"}},
            "link": {
                "x": {"ends": ["a", "s"], "medium": "ethernet-100", "delay": "1 ms"},
                "y": {"ends": ["s", "b"], "medium": "ethernet-10", "delay": "1 ms"},
            },
            "traffic": {"u": {**UDP, "message": "1000 B", "rate": "80 Mbit/s"}},
            "run": {"duration": "4 s"},
        }
    )
    assert made.advice is not None
    fair = {"switch.s.queue": '{ fq-codel = { limit = "1000 packets" } }'}
    (found,) = [one for one in made.advice.changes if dict(one.set) == fair]
    assert found.own.after.loss == pytest.approx(found.own.before.loss, rel=1e-3)
    assert 5 * (found.own.after.values[DELAY_P99] or 0) < found.own.before.values[DELAY_P99]
    assert {"switch.s.queue": "codel"} in [
        dict(step.set) for proposal in advice.propose_all(made.at) for step in proposal.steps
    ], "a limit that is the default of both kinds is not written"


ROUTERS: dict[str, Any] = {
    "router": {"r1": {}, "r2": {}},
    "link": {
        "l1": {"ends": ["a", "r1"], "medium": "ethernet-100", "delay": "1 ms"},
        "l2": {"ends": ["r1", "r2"], "medium": "ethernet-100", "delay": "1 ms"},
        "l3": {"ends": ["r2", "b"], "medium": "ethernet-100", "delay": "1 ms"},
    },
    "traffic": {"u": {**UDP, "message": "1472 B", "rate": "1 Mbit/s"}},
    "tunnel": {"t": {"ends": ["r1", "r2"], "header": "gre", "fragment": "outer"}},
    "run": {"duration": "1 s"},
}

AT_PORTS = {
    "buffer full": "the buffer of `r1` towards `r2`",
    "discard policy": "the buffer of `r1` towards `r2`",
    "CLP threshold": "the buffer of `r1` towards `r2`",
    "exceeds token bucket burst": "the buffer of `r1` towards `r2`",
    "policer": "the policer of `r1` towards `r2`",
    "early drop": "the queue of `r1` towards `r2`",
    "codel": "the queue of `r1` towards `r2`",
    "damaged on the line": "the line from `r1` to `r2`",
    "line down": "the line from `r1` to `r2`",
    "inactive member": "the line from `r1` to `r2`",
}


def test_every_cause_of_losses_makes_an_english_sentence() -> None:
    at = explained(ROUTERS, with_advice=False).at
    for cause in _WHICH:
        to = "r2" if cause in AT_PORTS else None
        place = Place(node="b" if cause == "receive buffer" else "r1", link="l2" if to else None, to=to)
        drop = Drop(place, cause, "u", 0, 2)
        expected = AT_PORTS.get(
            cause, "router `r1`" if cause != "receive buffer" else "the receive buffer of host `b`"
        )
        assert where(drop, at) == expected
        assert f"because {where(drop, at)} loses {what(drop, at)}{which(drop)}".count("because") == 1
        assert which(drop)[:2] in ("", ", ", " w"), "a relative clause, or one with `while`"


def test_every_cause_of_the_core_has_its_words() -> None:
    """`docs/model.md` lists the causes at nodes, in the order of the engine."""
    model = (Path(__file__).parents[2] / "docs/model.md").read_text()
    (listed,) = re.findall(r"; (time to live, too big, [^.)]*)\.\)", model)
    assert {*listed.split(", "), *AT_PORTS} == {*_WHICH}


SEVERAL = {
    "l1": {"ends": ["a", "r1"], "medium": "ethernet-100", "delay": "1 ms"},
    "p0": {"ends": ["r1", "r2"], "medium": "ethernet-100", "delay": "1 ms"},
    "p1": {"ends": ["r1", "r2"], "medium": "ethernet-100", "delay": "2 ms"},
    "l3": {"ends": ["r2", "b"], "medium": "ethernet-100", "delay": "1 ms"},
}


@pytest.mark.parametrize(
    ("parts", "said", "cure"),
    [
        (
            {"traffic": {"u": {**ROUTERS["traffic"]["u"], "ttl": 2}}},
            "whose time to live ends there",
            ("traffic.u.ttl", "64"),
        ),
        (
            {
                "router": {"r1": {}, "m": {}, "r2": {}},
                "tunnel": {"t": {"ends": ["r1", "r2"], "header": "gre", "fragment": "outer", "ttl": 1}},
                "link": {
                    **ROUTERS["link"],
                    "l2": {"ends": ["r1", "m"], "medium": "ethernet-100"},
                    "l4": {"ends": ["m", "r2"], "medium": "ethernet-100"},
                },
            },
            "whose time to live ends there",
            ("tunnel.t.ttl", "64"),
        ),
        (
            {
                "tunnel": {
                    "t": {
                        "ends": ["r1", "r2"],
                        "header": "gre",
                        "fragment": "outer",
                        "reassembly": {"timeout": "1 us"},
                    }
                }
            },
            "of which a fragment is missing when the time for reassembly ends",
            ("tunnel.t.reassembly.timeout", "30 s"),
        ),
        (
            {
                "router": {"r1": {"ecmp": "round-robin"}, "r2": {}},
                "link": SEVERAL,
                "traffic": {"u": {**ROUTERS["traffic"]["u"], "rate": "40 Mbit/s", "message": "1000 B"}},
                "tunnel": {"t": {"ends": ["r1", "r2"], "header": {"gre": {"sequence": True}}}},
            },
            "which leave a tunnel out of sequence",
            ("tunnel.t.header.gre.sequence", "false"),
        ),
    ],
    ids=["TTL", "TTL of a tunnel", "timeout", "sequence"],
)
def test_advice_cures_drops_in_routers(parts: dict[str, Any], said: str, cure: tuple[str, str]) -> None:
    made = explained({**ROUTERS, **parts})
    assert made.finding.bottleneck.startswith("router `")
    assert said in made.finding.evidence
    assert dict([cure]) in changes(made).values()
    assert made.advice is not None
    (best,) = [one for one in made.advice.changes if one.set == (cure,)]
    assert best.own.after.loss == 0


def test_advice_gives_cells_of_low_priority_the_whole_queue() -> None:
    made = explained(
        {
            "switch": {"s": {"kind": "atm", "output_buffer": "400 cells", "clp_threshold": "10 cells"}},
            "link": {
                "x": {"ends": ["a", "s"], "medium": "oc-3c"},
                "y": {"ends": ["s", "b"], "medium": "atm", "rate": "30 Mbit/s"},
            },
            "circuit": {"c": {"from": "a", "to": "b", "clp": 1}},
            "traffic": {"u": {**UDP, "message": "9000 B", "rate": "10 Mbit/s"}},
            "run": {"duration": "1 s"},
        }
    )
    assert "whose cells of low priority (CLP = 1) find it above its `clp_threshold`" in made.finding.evidence
    found = list(changes(made).values())
    assert {"circuit.c.clp": "0"} in found
    assert {"switch.s.clp_threshold": "399 cells"} in found


def test_a_healthy_flow_gets_no_advice_for_losses() -> None:
    at = explained(ROUTERS, with_advice=False).at
    kinds = {proposal.kind for proposal in advice.propose_all(at)}
    assert not kinds & {"ttl", "cell-priority", "tunnel"}


@pytest.mark.parametrize("duration", ["1 s", "3 s", "6 s"])
def test_a_black_hole_is_the_bottleneck_however_long_the_run_is(duration: str) -> None:
    """The first timer expires after a second, before which the sender only fills its window."""
    silent = {
        "router": {"r1": {"icmp": False}, "r2": {}},
        "tunnel": {"t": {"ends": ["r1", "r2"], "header": "gre"}},
        "traffic": {"u": {**TCP, "message": "100 kB", "tcp": {"path_mtu": "discovered"}}},
        "run": {"duration": duration},
    }
    made = explained({**ROUTERS, **silent}, with_advice=False)
    assert made.sentence.startswith("router `r1` limits `u` to 0 bit/s")
    assert "because they are longer than the MTU of its next link" in made.finding.evidence
