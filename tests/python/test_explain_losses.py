"""Explanations of flows that lose packets: place and cause in words, and changes of the part that loses them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from engpass.explain.select_point import choose_in
from engpass.explanation import Explanation, explain
from engpass.testbed import load


def explained(text: dict[str, Any], *, advice: bool = True, **sets: str) -> Explanation:
    testbed: dict[str, Any] = {"name": "Losses", "host": {"a": {}, "b": {}}, **copy.deepcopy(text)}
    return explain(choose_in(load(testbed, set=sets), None, [], None), advice=advice)


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
    assert all(say.startswith("raise the buffer of `r` towards `q` over `p1` to ") for say in raised)
    assert made.advice is not None
    assert not any("p0" in say for say in made.advice.tried if "ecmp" not in say)
