"""Texts of explanations in which delay and loss matter: the gallery's call beside a download."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from msgspec.structs import replace

import engpass
from conftest import Cli
from engpass import gallery
from engpass.explain.select_point import choose_in
from engpass.explain.service import Needs, Served
from engpass.explanation import Explanation, explain
from engpass.results.samples import DELAY_P99
from engpass.source import Given
from engpass.testbed import load
from engpass.types.outcome import Bottleneck, Bound, Candidate, FlowLimit, FlowOutcome
from served import served

CALL = gallery.study("bufferbloat").testbed


@functools.cache
def explained(variant: str | None, flow: str | None) -> Explanation:
    """One repeat of a flow in a variant; `None` leaves the choice to `explain`."""
    return explain(choose_in(engpass.load(CALL, set={"run.repeats": "1"}), variant, [], flow))


def words(made: Explanation) -> list[str]:
    """The clauses of the sentence."""
    return made.sentence.split("; ")


def test_call_behind_a_large_buffer_suffers_delay_and_loss() -> None:
    made = explained(None, None)
    assert (made.chosen.variant, made.chosen.flow) == ("drop-tail", "call")
    finding, *advice = words(made)
    assert finding == (
        "the buffer of `isp` towards `home` harms `call`, which gets 1.50 Mbit/s (limit 1.50 Mbit/s)"
        ": it loses 10 datagrams (0.21 %), and 1 % of its datagrams take 747 ms or longer, "
        "but an idle path takes 12.6 ms"
    )
    assert "; ".join(advice) == (
        "use queue `fq-codel` instead of `drop-tail` at `isp` towards `home`: 1.50 → 1.50 Mbit/s, "
        "loss 0.21 → 0.0 %, delay p99 747 → 14 ms "
        "(`download`: 13.97 → 13.74 Mbit/s, delay p99 747 → 20.1 ms)"
    )


def test_every_change_reports_its_effect_on_every_flow() -> None:
    made = explained("drop-tail", "call")
    assert made.advice is not None
    for change in (*made.advice.changes, *made.advice.trades):
        told = json.loads(json.dumps(change.to_json()))["flows"]
        assert list(told) == ["call", "download"]
        for figures in told.values():
            assert {"goodput_bit_per_s", "loss", "delay_p50_s", "delay_p99_s"} <= set(figures)
            assert all(len(pair) == 2 for pair in figures.values())


def test_advice_tries_each_kind_of_shorter_queue() -> None:
    made = explained("drop-tail", "call")
    assert made.advice is not None
    says = [change.say for change in made.advice.changes]
    assert "use queue `codel` instead of `drop-tail` at `isp` towards `home`" in says
    assert "use `bbr` as congestion control of `download`" in says
    assert any(text.startswith("lower the buffer of `isp` towards `home` to ") for text in says)
    first = next(
        change
        for change in made.advice.trades
        if change.say == "give `call` priority at `isp` towards `home`: `priority`, class 5"
    )
    # The download waits in its own queue, behind the call.
    assert [effect.flow for effect in first.others if effect.harmed] == ["download"]


def test_advice_recommends_no_queue_with_a_long_delay() -> None:
    for flow in ("call", "download"):
        advice = explained("fq-codel", flow).advice
        assert advice is not None
        named = [change.say for change in (*advice.changes, *advice.trades)]
        assert not [text for text in named if "drop-tail" in text or "drr" in text or "priority" in text]
        if flow == "download":
            assert "use queue `drop-tail` instead of `fq-codel` at `isp` towards `home`" in advice.tried


def test_download_in_a_large_buffer_is_harmed_by_its_own_delay() -> None:
    made = explained("drop-tail", "download")
    assert made.finding.key == "delay"
    assert words(made)[0] == (
        "the buffer of `isp` towards `home` harms `download`, which gets 13.97 Mbit/s (limit 13.96 Mbit/s):"
        " 1 % of its segments take 747 ms or longer, but an idle path takes 12.8 ms"
    )
    assert made.advice is not None
    assert made.advice.changes[0].say.startswith("use queue `fq-codel`")


def test_satisfied_call_is_limited_by_its_application() -> None:
    made = explained("fq-codel", "call")
    assert words(made) == [
        "application `call` limits `call`: it gets 1.50 Mbit/s of its limit of 1.50 Mbit/s",
        "none of the 2 simulated changes helps",
    ]


def test_explanation_never_calls_a_rate_impossible() -> None:
    # The limit is a fair share, which a flow can exceed, for example by priority.
    for variant in ("drop-tail", "fq-codel"):
        for flow in ("call", "download"):
            assert "possible" not in explained(variant, flow).sentence


def test_explain_prints_gains_and_trades_for_all_flows(cli: Cli) -> None:
    text = CALL.read_text().replace("repeats = 2", "repeats = 1")
    (cli.directory / "call.toml").write_text(text)
    shown = cli("explain", "call.toml", "--variant", "drop-tail", "--flow", "call").stdout
    gains = shown[
        shown.index("Changes that help (simulated)") : shown.index("Changes that help at a price (simulated)")
    ]
    assert gains.splitlines()[1:6] == [
        "      Flow                    Goodput      Delay p99             Loss",
        "  use queue `fq-codel` instead of `drop-tail` at `isp` towards `home` (setting)",
        "  --set 'router.isp.queue={ fq-codel = { limit = \"1000 packets\" } }'",
        "      call         1.50 → 1.50 Mbit/s    747 → 14 ms     0.21 → 0.0 %",
        "      download   13.97 → 13.74 Mbit/s  747 → 20.1 ms    0.12 → 0.12 %",
    ]
    assert "give `call` priority" in shown[shown.index("Changes that help at a price") :]
    made = json.loads(
        cli("explain", "call.toml", "--variant", "drop-tail", "--flow", "call", "--json").stdout
    )
    assert made["delay_p99_s"] == pytest.approx(0.747, rel=0.01)
    assert made["idle_delay_s"] == pytest.approx(0.012615, rel=1e-3)
    assert [change["harms"] for change in made["trades"] if "priority" in change["change"]] == [["download"]]


def test_explanation_page_shows_gains_trades_and_delays() -> None:
    from engpass.report import render_explanation

    page = render_explanation(explained("drop-tail", "call"))
    assert "Changes that help (simulated" in page
    assert "Changes that help at a price" in page
    assert "747 → 14 ms<br>747 → 20.1 ms" in page
    assert "idle path 12.6 ms" in page


def atm(schedule: str) -> dict[str, Any]:
    """A call over a circuit that shares a slow line with bursts of another circuit."""
    circuits = {name: {"from": name, "to": "home"} for name in ("caller", "burst")}
    links = {name: {"ends": [name, "s"], "medium": "oc-3c"} for name in ("caller", "burst")}
    return {
        "name": "A call behind bursts",
        "host": {"caller": {}, "burst": {}, "home": {}},
        "switch": {"s": {"kind": "atm", "output_buffer": "4000 cells", "schedule": schedule}},
        "link": {**links, "line": {"ends": ["s", "home"], "medium": "atm", "rate": "10 Mbit/s"}},
        "circuit": circuits,
        "traffic": {
            "call": {
                "kind": "udp-stream",
                "from": "caller",
                "to": "home",
                "message": "160 B",
                "rate": "64 kbit/s",
            },
            "bursts": {
                "kind": "poisson",
                "from": "burst",
                "to": "home",
                "message": "40 kB",
                "rate": "7.5 Mbit/s",
            },
        },
        "run": {"duration": "5 s"},
    }


def test_advice_gives_priority_to_a_call_behind_cell_bursts() -> None:
    made = explain(choose_in(load(atm("fifo")), None, [], "call"))
    assert made.finding.key == "delay"
    assert made.finding.bottleneck == "the buffer of `s` towards `home`"
    assert made.advice is not None
    best = made.advice.changes[0]
    assert best.say == "give `caller` priority at `s`: `priority`, category `cbr`"
    assert dict(best.set) == {"switch.s.schedule": "priority", "circuit.caller.category": "cbr"}
    assert best.own.after.values[DELAY_P99] < made.at.needs.tolerable


def test_delay_in_a_host_is_not_blamed_on_the_network() -> None:
    testbed: dict[str, Given] = {
        "name": "A slow reader",
        "host": {"busy": {"memory": {"bandwidth": "90 MB/s"}}, "peer": {}},
        "link": {"line": {"ends": ["busy", "peer"], "medium": "ethernet-10g"}},
        "traffic": {"in": {"kind": "tcp-stream", "from": "peer", "to": "busy", "message": "64 kB"}},
        "run": {"duration": "300 ms", "warmup": "100 ms"},
    }
    made = explain(choose_in(load(testbed), None, [], None))
    # A window of 3 MiB waits for a reader of 30 MB/s.
    assert words(made)[0] == (
        "memory of host `busy` harms `in`, which gets 239.94 Mbit/s (limit 240.00 Mbit/s): "
        "1 % of its segments take 102 ms or longer, but an idle path takes 50.5 us"
    )


# Scores


def limited(goodput: float, limit: FlowLimit) -> FlowOutcome:
    """A flow of datagrams in an outcome of the limit engine."""
    return FlowOutcome(kind="udp-stream", goodput_bit_per_s=goodput, offered_bit_per_s=goodput, limit=limit)


PACED = Needs(1.5e6, 0.012, resends=False, paced=True)
TCP = Needs(14e6, 0.012, resends=True, paced=False)


def test_tolerable_delay_adds_an_idle_round_trip_or_5_ms() -> None:
    assert PACED.tolerable == pytest.approx(0.036)
    assert Needs(1e6, 0.0001, resends=False, paced=True).tolerable == pytest.approx(0.0051)


def test_losses_above_one_in_a_thousand_harm_only_datagrams() -> None:
    assert not PACED.loses(served(1.5e6, loss=0.001))
    assert PACED.loses(served(1.5e6, loss=0.0011))
    assert not TCP.loses(served(14e6, loss=0.3))


def test_unpaced_sender_is_not_harmed_by_its_own_queue() -> None:
    limit = FlowLimit(idle_delay_s=0.001, stages=[], candidates=[])
    late = served(1e6, delay=1.0)
    assert not Needs.of(limited(1e6, limit)).waits(late)
    application = Candidate(
        bottleneck=Bottleneck(kind="application", name="call", title="application `call`"),
        goodput_bit_per_s=1e6,
    )
    assert Needs.of(limited(1e6, replace(limit, candidates=[application]))).waits(late)


def test_score_falls_with_goodput_loss_and_delay() -> None:
    best = PACED.score(served(1.5e6, delay=0.02))
    assert best == 1.0
    assert PACED.score(served(0.75e6, delay=0.02)) == pytest.approx(0.5)
    assert PACED.score(served(1.5e6, loss=0.1, delay=0.02)) == pytest.approx(0.9)
    assert PACED.score(served(1.5e6, delay=0.36)) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("after", "declines", "harmed"),
    [
        (served(1.5e6, delay=0.02), False, False),
        (served(1.48e6, delay=0.02), True, False),
        (served(1.4e6, delay=0.02), True, True),
        (served(1.5e6, loss=0.002, delay=0.02), True, True),
        (served(1.5e6, delay=0.03), True, False),
        (served(1.5e6, delay=0.04), True, True),
    ],
)
def test_decline_harms_only_below_the_needs_of_the_flow(after: Served, declines: bool, harmed: bool) -> None:
    before = served(1.5e6, delay=0.02)
    assert (bool(PACED.worse(before, after)), PACED.harmed(before, after)) == (declines, harmed)


@pytest.mark.parametrize(
    ("after", "spoils"),
    [
        (served(48e3, loss=0.41, delay=0.02), False),
        (served(48e3, loss=0.43, delay=0.02), True),
        (served(44e3, loss=0.32, delay=0.02), False),
        (served(43e3, loss=0.32, delay=0.02), True),
    ],
)
def test_shorter_delay_does_not_outweigh_loss_or_goodput(after: Served, spoils: bool) -> None:
    before = served(48e3, loss=0.32, delay=2.0)
    assert PACED.score(after) > PACED.score(before)
    assert PACED.spoils(before, after) is spoils


def test_advice_rejects_changes_that_cut_the_goodput_of_a_call() -> None:
    testbed: dict[str, Given] = {
        "name": "An upload beside a call",
        "host": {"pc": {}, "server": {}},
        "router": {"cpe": {"queue": {"drop-tail": {"limit": "256 packets"}}}},
        "link": {
            "lan": {"ends": ["pc", "cpe"], "medium": "ethernet-1g"},
            "dsl": {
                "ends": ["cpe", "server"],
                "medium": "point-to-point",
                "rate": {"forward": "1 Mbit/s", "backward": "16 Mbit/s"},
                "delay": "15 ms",
            },
        },
        "traffic": {
            "backup": {"kind": "tcp-stream", "from": "pc", "to": "server", "message": "64 KiB"},
            "call": {
                "kind": "udp-stream",
                "from": "pc",
                "to": "server",
                "message": "160 B",
                "rate": "64 kbit/s",
            },
            "down": {"kind": "tcp-stream", "from": "server", "to": "pc", "message": "64 KiB"},
        },
        "run": {"duration": "8 s", "warmup": "2 s"},
    }
    advice = explain(choose_in(load(testbed), None, [], "call")).advice
    assert advice is not None
    assert "use queue `red` instead of `drop-tail` at `cpe` towards `server`" in advice.tried
    changes = (*advice.changes, *advice.trades)
    assert changes
    assert all(change.after > 0.9 * change.before for change in changes)


def late() -> dict[str, Any]:
    """A download that starts in the last quarter of the run."""
    return {
        "name": "A late download",
        "host": {"a": {}, "b": {}},
        "link": {"l": {"ends": ["a", "b"], "medium": "ethernet-100", "delay": "5 ms"}},
        "traffic": {"t": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "64 KiB", "start": "3 s"}},
        "run": {"duration": "4 s"},
    }


def test_flow_with_bound_below_fair_share_is_judged_by_bound() -> None:
    made = explain(choose_in(load(late()), None, [], None))
    limit = made.at.limited.limit
    assert limit is not None
    assert limit.bound is not None
    bound = limit.bound.bit_per_s
    assert bound == made.at.bound == pytest.approx(made.at.limited.goodput_bit_per_s / 4, rel=0.01)
    assert made.at.limit == made.at.needs.limit == bound
    assert f"(bound {bound / 1e6:.2f} Mbit/s)" in words(made)[0]
    assert made.to_json()["limit_bit_per_s"] == bound


def test_flow_is_judged_by_the_lower_of_fair_share_and_bound() -> None:
    without = FlowLimit(stages=[], candidates=[])
    line = Bottleneck(kind="link", name="line", title="link `line`")
    bound = Bound(bit_per_s=3e6, bottleneck=line, summary="link `line` bounds it to 3.00 Mbit/s")
    assert Needs.of(limited(2e6, without)).limit == 2e6
    assert Needs.of(limited(2e6, replace(without, bound=bound))).limit == 2e6
    assert Needs.of(None).limit == 0.0


def test_lone_flow_limited_by_acks_has_no_fair_share_in_text() -> None:
    testbed: dict[str, Given] = {
        "name": "A thin way back",
        "host": {"a": {}, "b": {}},
        "router": {"r": {}},
        "link": {
            "l": {"ends": ["a", "r"], "medium": "ethernet-100", "delay": "5 ms"},
            "m": {
                "ends": ["r", "b"],
                "medium": "point-to-point",
                "rate": {"forward": "20 Mbit/s", "backward": "100 kbit/s"},
            },
        },
        "traffic": {"t": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "64 KiB"}},
        "run": {"duration": "5 s", "warmup": "1 s"},
    }
    sentence = explain(choose_in(load(testbed), None, [], None), advice=False).sentence
    assert sentence.startswith("acknowledgements on link `m` limit `t`: it gets ")
    assert "more than the 5.57 Mbit/s that `engpass limit` expects" in sentence
    assert "fair share" not in sentence


CALL_AND_BULK = {
    "bulk": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "64 KiB"},
    "call": {"kind": "udp-stream", "from": "a", "to": "b", "message": "160 B", "rate": "64 kbit/s"},
}


def test_call_delayed_in_its_nic_is_advised_a_smaller_buffer() -> None:
    testbed: dict[str, Given] = {
        "name": "A call behind an upload of its host",
        "host": {"a": {}, "b": {}},
        "link": {"l": {"ends": ["a", "b"], "medium": "point-to-point", "rate": "2 Mbit/s", "delay": "10 ms"}},
        "traffic": CALL_AND_BULK,
        "run": {"duration": "8 s", "warmup": "2 s"},
    }
    made = explain(choose_in(load(testbed), None, [], "call"))
    assert words(made)[0].startswith("the NIC of host `a` limits `call` to ")
    assert made.sentence.count("of its datagrams take") == 1
    assert made.advice is not None
    smaller = [
        change
        for change in (*made.advice.changes, *made.advice.trades)
        if set(dict(change.set)) == {"host.a.nic_buffer"}
    ]
    assert smaller
    assert all(change.own.after.values[DELAY_P99] < 0.1 for change in smaller)


def test_queue_that_is_too_short_for_the_delay_is_not_named() -> None:
    """Of two full lines of one rate the first one makes the queue: in the NIC, not in the router."""
    line = {"medium": "ethernet-100", "delay": "1 ms"}
    testbed: dict[str, Any] = {
        "name": "Two equal lines",
        "host": {"a": {}, "b": {}},
        "router": {"r": {}},
        "link": {"near": {"ends": ["a", "r"], **line}, "far": {"ends": ["r", "b"], **line}},
        "traffic": CALL_AND_BULK,
        "run": {"duration": "4 s", "warmup": "1 s"},
    }
    made = explain(choose_in(load(testbed), None, [], "call"))
    assert words(made)[0].startswith("the NIC of host `a` harms `call`, which gets 64")
    # With a faster NIC the same delay arises in the router.
    testbed["link"]["near"]["medium"] = "ethernet-1g"
    made = explain(choose_in(load(testbed), None, [], "call"), advice=False)
    assert words(made)[0].startswith("the buffer of `r` towards `b` harms `call`, which gets 64")


def test_delay_behind_shapers_is_found_in_the_nic() -> None:
    """Two shaped senders share a full line, but their packets wait for their shapers."""
    line = {"medium": "oc-3c"}
    shaped = {"shaping": "74.8 Mbit/s cells", "to": "b"}
    stream = {"kind": "tcp-stream", "to": "b", "message": "64 KiB"}
    testbed: dict[str, Given] = {
        "name": "Two shaped streams",
        "host": {"a": {}, "c": {}, "b": {}},
        "switch": {"s": {"kind": "atm", "output_buffer": "2000 cells"}},
        "link": {name: {"ends": [name, "s"], **line} for name in ("a", "c", "b")},
        "circuit": {"one": {"from": "a", **shaped}, "two": {"from": "c", **shaped}},
        "traffic": {"one": {"from": "a", **stream}, "two": {"from": "c", **stream}},
        "run": {"duration": "2 s", "warmup": "1 s"},
    }
    made = explain(choose_in(load(testbed), None, [], "one"))
    # 512 KiB at 67.1 Mbit/s take 62.5 ms; 2000 cells take 5.7 ms.
    assert words(made)[0].startswith("the NIC of host `a` harms `one`, which gets 67.10 Mbit/s")
    assert made.advice is not None
    assert set(dict(made.advice.changes[0].set)) == {"host.a.nic_buffer"}


def test_call_delayed_in_a_router_names_its_buffer() -> None:
    testbed: dict[str, Given] = {
        "name": "A call behind an agreed rate",
        "host": {"a": {}, "b": {}},
        "router": {"r": {"queue": {"token-bucket": {"rate": "1.2 Mbit/s", "burst": "20 kB"}}}},
        "link": {
            "l": {"ends": ["a", "r"], "medium": "ethernet-100", "delay": "2 ms"},
            "m": {"ends": ["r", "b"], "medium": "ethernet-100", "delay": "45 ms"},
        },
        "traffic": CALL_AND_BULK,
        "run": {"duration": "3 s", "warmup": "500 ms"},
    }
    made = explain(choose_in(load(testbed), None, [], "call"), advice=False)
    assert made.finding.key == "delay"
    assert made.sentence.startswith("the buffer of `r` towards `b` limits `call` to ")
