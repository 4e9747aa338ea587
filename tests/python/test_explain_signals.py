"""Advice judges a change by figures that the application sees: message delays, gaps and transfer times."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engpass.explain.select_point import choose_in
from engpass.explain.service import SCORED, Needs, Served
from engpass.explanation import Explanation, explain
from engpass.results.samples import LONGEST_GAP, MESSAGE_DELAY_P99, TRANSFER_RATE, folded, value
from engpass.testbed import load
from engpass.types.outcome import FlowOutcome
from engpass.types.signals import FLOW, Signal
from required import known
from served import served

KEYS = {"kind": "tcp-stream", "from": "a", "to": "b", "message": "100 B", "rate": "16 kbit/s"}

# Keys typed over a radio link that loses packets. Nothing queues: a segment takes an idle path.
TELNET: dict[str, Any] = {
    "name": "Keys over a lossy line",
    "host": {"a": {}, "b": {}},
    "router": {"r": {}},
    "link": {
        "l": {"ends": ["a", "r"], "medium": "ethernet-100"},
        "m": {
            "ends": ["r", "b"],
            "medium": "point-to-point",
            "rate": "2 Mbit/s",
            "delay": "20 ms",
            "loss": "2 %",
        },
    },
    "traffic": {"keys": KEYS},
    "run": {"duration": "60 s", "warmup": "2 s"},
}

# The first of two lines is down for a second in each minute.
FAILING: dict[str, Any] = {
    "name": "Keys over a line that fails",
    "host": {"a": {}, "b": {}},
    "router": {"near": {"ecmp": "first"}, "far": {"ecmp": "first"}},
    "link": {
        "in": {"ends": ["a", "near"], "medium": "ethernet-1g"},
        "upper": {"ends": ["near", "far"], "medium": "ethernet-100"},
        "lower": {"ends": ["near", "far"], "medium": "ethernet-100"},
        "out": {"ends": ["far", "b"], "medium": "ethernet-1g"},
    },
    "traffic": {"keys": KEYS},
    "run": {"duration": "60 s"},
    "event": {
        "cut": {"at": "5 s", "target": "upper", "change": "down"},
        "mended": {"at": "6 s", "target": "upper", "change": "up"},
    },
}

# 8 MB in a run of 10 s, with a window of 64 KiB in a round trip of 20 ms.
TRANSFER: dict[str, Any] = {
    "name": "A transfer through a small window",
    "host": {"a": {}, "b": {"tcp": {"receive_buffer": "64 KiB"}}},
    "link": {"l": {"ends": ["a", "b"], "medium": "ethernet-100", "delay": "10 ms"}},
    "traffic": {"t": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "8 kB", "count": 1000}},
    "run": {"duration": "10 s"},
}


def explained(testbed: dict[str, Any]) -> Explanation:
    return explain(choose_in(load(testbed), None, [], None))


def flows(testbed: dict[str, Any], sets: tuple[tuple[str, str], ...], repeats: int) -> list[FlowOutcome]:
    """The outcomes of the only flow in runs with some changes."""
    ran = load(testbed, set=sets).run(["simulate"], repeats=repeats)
    return [flow for one in ran.outcomes for flow in one.flows.values()]


def test_paced_tcp_over_a_lossy_line_is_judged_by_its_message_delay() -> None:
    made = explained(TELNET)
    assert made.finding.state == "harmed"
    assert made.sentence.startswith("the line from `r` to `b` harms `keys`")
    # A segment waits for the retransmission timer (200 ms and more); single segments take 20.6 ms.
    assert "take 305 ms or longer with their retransmissions, but an idle path takes 20.6 ms" in made.sentence
    advice = known(made.advice)
    assert advice.seeds == 5
    changes = {change.say: change for change in advice.changes}
    for say in ("make link `m` free of errors", "disable Nagle's algorithm on host `a`"):
        change = changes[say]
        for side, sets in ((change.own.before, ()), (change.own.after, change.set)):
            assert side.values[MESSAGE_DELAY_P99] == folded(flows(TELNET, sets, 5), MESSAGE_DELAY_P99)
        assert change.own.after.values[MESSAGE_DELAY_P99] < 0.5 * change.own.before.values[MESSAGE_DELAY_P99]
        assert "message delay p99 305 → " in change.text
    assert advice.changes[0].own.after.values[MESSAGE_DELAY_P99] < made.at.needs.tolerable


def test_paced_tcp_over_a_failing_line_is_judged_by_its_longest_gap() -> None:
    made = explained(FAILING)
    assert made.sentence.startswith("link `upper` harms `keys`, which gets 16.00 kbit/s (limit 16.00 kbit/s)")
    best = known(made.advice).changes[0]
    # The goodput and the p99 of the delay stay: the gap is 3 % of a minute.
    assert dict(best.set) == {"router.near.ecmp": "hash", "router.far.ecmp": "hash"}
    assert best.text.endswith("16.00 → 16.00 kbit/s, longest gap 1.65 s → 50 ms")
    assert best.own.after.values[LONGEST_GAP] == folded(flows(FAILING, best.set, 1), LONGEST_GAP)


def test_transfer_is_judged_by_its_own_rate() -> None:
    made = explained(TRANSFER)
    # The window is 65536 B in 20.12 ms: 26.05 Mbit/s. That the data ends is no limit.
    assert made.finding.key == "idle: receive window"
    assert made.sentence.startswith(
        "the receive window of host `b` limits `t`: the transfer ends after 2.56 s, at 25.03 Mbit/s"
        " of at most 26.05 Mbit/s (the receive buffer of host `b`); link `l` is idle "
    )
    best = known(made.advice).changes[0]
    assert dict(best.set) == {"host.b.tcp.receive_buffer": "256 KiB"}
    # All 8 MB arrive within the run before and after, so the goodput says nothing.
    assert best.before == best.after == 6.4e6
    assert best.own.after.values[TRANSFER_RATE] == folded(flows(TRANSFER, best.set, 1), TRANSFER_RATE)
    assert best.own.after.values[TRANSFER_RATE] > 3 * best.own.before.values[TRANSFER_RATE]


def test_transfer_that_fills_its_line_is_limited_by_the_line() -> None:
    testbed = {**TRANSFER, "host": {"a": {"nic_buffer": "64 KiB"}, "b": {}}}
    made = explained({**testbed, "traffic": {"t": {**TRANSFER["traffic"]["t"], "count": 10000}}})
    assert made.finding.key == "limit"
    assert made.sentence.startswith("link `l` limits `t`: the transfer ends after ")
    assert " of at most 94.15 Mbit/s (link `l`)" in made.sentence


def test_json_has_every_signal_with_a_better_direction() -> None:
    made = explained(FAILING)
    best = known(made.advice).changes[0]
    told = json.loads(json.dumps(best.to_json()))["flows"]["keys"]
    sides = [flows(FAILING, sets, 1)[0] for sets in ((), best.set)]
    expected = {signal.name: [value(side, signal) for side in sides] for signal in FLOW if signal.better}
    assert told == {name: pair for name, pair in expected.items() if pair != [None, None]}
    assert {"goodput_bit_per_s", "message_delay_p99_s", "outage_longest_s", "timeouts"} <= set(told)
    assert "transfer_s" not in told


# Needs

TYPED = Needs(16e3, 0.02, resends=True, paced=True)
BULK = Needs(16e3, 0.02, resends=True, paced=False)
BURSTS = Needs(16e3, 0.02, resends=False, paced=True, bursty=True)


def fast(**others: float) -> Served:
    return served(16e3, delay=0.021, **others)


@pytest.mark.parametrize(
    ("needs", "before", "after", "harmed"),
    [
        (TYPED, fast(message_delay_p99_s=0.021), fast(message_delay_p99_s=0.35), True),
        (TYPED, fast(message_delay_p99_s=0.021), fast(message_delay_p99_s=0.05), False),
        (BULK, fast(message_delay_p99_s=0.021), fast(message_delay_p99_s=0.35), False),
        # A mechanism that works more often harms nobody.
        (
            TYPED,
            fast(retransmitted_segments=1, timeouts=0),
            fast(retransmitted_segments=99, timeouts=9),
            False,
        ),
        # Gaps count if a line that was down took packets, and if the application does not pause itself.
        (TYPED, fast(outage_longest_s=0.05), fast(outage_longest_s=1.0, outage_lost_datagrams=3), True),
        (TYPED, fast(outage_longest_s=0.05), fast(outage_longest_s=1.0, outage_lost_datagrams=0), False),
        (BULK, fast(outage_longest_s=0.05), fast(outage_longest_s=1.0, outage_lost_datagrams=3), False),
        (BURSTS, fast(outage_longest_s=0.05), fast(outage_longest_s=1.0, outage_lost_datagrams=3), False),
        (TYPED, fast(outage_longest_s=0.6), fast(outage_longest_s=0.64, outage_lost_datagrams=3), False),
        (BULK, fast(transfer_bit_per_s=1e6), fast(transfer_bit_per_s=0.98e6), True),
        (BULK, fast(transfer_bit_per_s=1e6), fast(transfer_bit_per_s=0.995e6), False),
    ],
)
def test_change_harms_only_by_what_the_application_sees(
    needs: Needs, before: Served, after: Served, harmed: bool
) -> None:
    assert needs.harmed(before, after) is harmed


def test_longest_of_late_messages_and_gap_lowers_the_score_once() -> None:
    # Both are ten times as long as the flow tolerates.
    late = fast(message_delay_p99_s=10 * TYPED.tolerable)
    silent = fast(outage_longest_s=0.5, outage_lost_datagrams=3)
    assert TYPED.score(fast()) == 1.0
    for one in (late, silent, Served({**late.values, **silent.values})):
        assert TYPED.score(one) == pytest.approx(0.1)


@pytest.mark.parametrize("resends", [True, False])
@pytest.mark.parametrize("paced", [True, False])
def test_points_are_compared_by_every_judged_signal_except_the_gap(resends: bool, paced: bool) -> None:
    needs = Needs(1e6, 0.02, resends, paced)
    transfer = fast(transfer_bit_per_s=1e6)
    judged: set[Signal] = {
        one.signal for side in (fast(outage_lost_datagrams=1), transfer) for one in needs.figures(side)
    }
    assert judged - {LONGEST_GAP} <= set(SCORED)
