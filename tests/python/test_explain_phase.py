"""Flows that meet a full queue in the same phase: streams of constant intervals, and TCP."""

from __future__ import annotations

import pytest

from engpass.explain.phase import shaken
from engpass.explain.resimulate import Bench
from engpass.explain.select_point import choose_in
from engpass.explanation import Explanation, explain, situation
from engpass.results.equal_repeats import EqualRepeats
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


DOWNLOADS = """\
name = "two equal downloads"
host = { a = {}, b = {}, c = {} }
switch.s = { kind = "ethernet" }
link.a = { ends = ["a", "s"], medium = "ethernet-1g" }
link.b = { ends = ["b", "s"], medium = "ethernet-1g" }
link.c = { ends = ["s", "c"], medium = "ethernet-1g" }
traffic.a = { kind = "tcp-stream", from = "a", to = "c", message = "64 KiB" }
traffic.b = { kind = "tcp-stream", from = "b", to = "c", message = "64 KiB" }
run = { duration = "4 s", warmup = "1 s", repeats = 3 }
"""
JITTERED = (("link.a.jitter", "20 us"), ("link.b.jitter", "20 us"))


def test_explanation_says_if_the_shares_of_tcp_flows_depend_on_the_phase_of_their_packets() -> None:
    # A name with a dot needs quotes in the path of the jitter.
    text = DOWNLOADS.replace("link.a =", 'link."a.x" =')
    made = explain(choose_in(loads(text), None, [], None))
    phase = known(made.at.shaken)
    assert (phase.jitter, set(phase.links)) == ("20 us", {"a.x", "b"})
    assert min(phase.after.values()) > 2 * min(phase.before.values())
    assert phase.text in made.sentence
    assert "nothing in this file is random: with a jitter of 20 us on links" in phase.text
    assert made.to_json()["phase"] == phase.to_json()


@pytest.mark.parametrize(
    "change", [JITTERED[0], ("switch.s.queue", "drr"), ("link.c.medium", "ethernet-10g")]
)
def test_shares_of_tcp_do_not_depend_on_the_phase_with_chance_or_fair_queues(change: tuple[str, str]) -> None:
    chosen = choose_in(loads(DOWNLOADS, [change]), None, [], None)
    bench = Bench(chosen.text, chosen.source, chosen.overrides, "base", (), range(3), chosen.flow)
    bench.remember(chosen.outcomes)
    bench.draw(chosen.outcomes)
    assert shaken(situation(chosen, bench, chosen.outcomes), bench) is None


def test_a_run_with_equal_repeats_of_tcp_flows_says_so() -> None:
    def told(*overrides: tuple[str, str]) -> list[str]:
        equal = EqualRepeats()
        for outcome in loads(DOWNLOADS, overrides).run(["simulate"]).outcomes:
            equal.add(outcome)
        return equal.lines()

    (line,) = told()
    assert line.startswith("simulate: the repeats are equal, because nothing in the file is random.")
    assert not told(*JITTERED)
    assert not told(("run.repeats", "1"))
    assert not told(("traffic.b.from", "c"), ("traffic.b.to", "b"))
    # Nothing is lost.
    assert not told(("link.c.medium", "ethernet-10g"))
