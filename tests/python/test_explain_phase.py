"""Streams of constant intervals that meet a full queue in the same phase."""

from __future__ import annotations

import pytest

from engpass.explain.select_point import choose_in
from engpass.explanation import Explanation, explain
from engpass.testbed import loads
from required import known

LOCK = """\
name = "phase lock"
[host.a]
[host.b]
[host.c]
[switch.s]
kind = "ethernet"
queue = { drop-tail = { limit = "5 packets" } }
[link.a]
ends = ["a", "s"]
medium = "ethernet-100"
[link.b]
ends = ["b", "s"]
medium = "ethernet-100"
[link.c]
ends = ["s", "c"]
medium = "ethernet-100"
[traffic.one]
kind = "udp-stream"
from = "a"
to = "c"
message = "1000 B"
rate = "90 Mbit/s"
[traffic.two]
kind = "udp-stream"
from = "b"
to = "c"
message = "1000 B"
rate = "90 Mbit/s"
[run]
duration = "200 ms"
"""

SAID = "`one` loses 0.0 % there: both send at constant intervals and nothing is random"


def explained(*overrides: tuple[str, str], advice: bool = False) -> Explanation:
    testbed = loads(LOCK, overrides)
    return explain(choose_in(testbed, None, [], "two"), advice=advice)


def test_explanation_names_streams_in_the_same_phase_and_a_jitter_that_parts_them() -> None:
    made = explained(advice=True)
    assert made.at.served.loss > 0.9
    assert SAID in made.sentence
    advice = known(made.advice)
    (jitter,) = (change for change in advice.trades if change.kind == "phase")
    # 8000 bit at 90 Mbit/s.
    assert jitter.set == (("link.b.jitter", "89 us"),)
    # The change brings chance into the point, so there are five seeds; the streams then lose about the same.
    (other,) = jitter.others
    assert jitter.own.after.loss == pytest.approx(other.after.loss, abs=0.05)


@pytest.mark.parametrize(
    "change",
    [
        ("link.a.jitter", "89 us"),
        ("traffic.one.kind", "poisson"),
        ("switch.s.queue", "drr"),
        ("link.c.medium", "ethernet-1g"),
    ],
)
def test_no_phase_is_named_if_there_is_chance_or_little_loss(change: tuple[str, str]) -> None:
    assert "same phase" not in explained(change).sentence
