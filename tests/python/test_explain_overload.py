"""Advice to a sender that offers more than a token bucket or a router's engine lets pass."""

from __future__ import annotations

from typing import Any

import pytest

from engpass.explain.select_point import choose_in
from engpass.explanation import Explanation, explain
from engpass.results.samples import DELAY_P99
from engpass.testbed import load

BUCKET = {"token-bucket": {"rate": "10 Mbit/s", "burst": "20 kB", "limit": "100 packets"}}


def explained(link: dict[str, Any], router: dict[str, Any], rate: str = "20 Mbit/s") -> Explanation:
    testbed: dict[str, Any] = {
        "name": "Too much for a router",
        "host": {"a": {}, "b": {}},
        "router": {"r": router},
        "link": {
            "l": {"ends": ["a", "r"], "medium": "ethernet-100"},
            "m": {"ends": ["r", "b"], "medium": "ethernet-100", **link},
        },
        "traffic": {"t": {"kind": "udp-stream", "from": "a", "to": "b", "message": "1200 B", "rate": rate}},
        "run": {"duration": "1 s", "warmup": "200 ms"},
    }
    return explain(choose_in(load(testbed), None, [], None))


@pytest.mark.parametrize(
    ("link", "router", "rate"),
    [
        ({"queue": BUCKET}, {}, "9630818 bit/s"),
        ({}, {"queue": BUCKET}, "9630818 bit/s"),
        ({}, {"per_packet": "1 ms", "input_queue": "50 packets"}, "9600000 bit/s"),
        ({}, {"per_packet": "1 ms"}, "9600000 bit/s"),
    ],
    ids=["bucket of a link", "bucket of a router", "router with a short queue", "router with a long queue"],
)
def test_advice_to_overload_is_the_rate_that_passes(
    link: dict[str, Any], router: dict[str, Any], rate: str
) -> None:
    made = explained(link, router)
    assert made.at.overload
    assert made.advice is not None
    best = made.advice.changes[0]
    assert dict(best.set) == {"traffic.t.rate": rate}
    assert best.own.after.loss == 0
    assert best.own.after.values[DELAY_P99] == pytest.approx(made.at.idle_delay, rel=0.02)
    assert best.say in made.sentence
    assert not any("raise the" in text for text in made.advice.tried), "no buffer mends an overload"


def test_load_below_the_token_bucket_is_no_overload() -> None:
    assert not explained({"queue": BUCKET}, {}, "9 Mbit/s").at.overload
