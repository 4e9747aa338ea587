"""Advice: every gain comes from a simulation, and changes without gain are not named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

import engpass
from engpass import _engpass, advice, gallery
from engpass.advice import Change, Effect, advise, cpu, ranked, recovery, told
from engpass.advice.base import Candidate, Cost, Proposal, doubling
from engpass.explain.bottleneck import find
from engpass.explain.point_facts import Situation
from engpass.explain.resimulate import Bench, Flows
from engpass.explain.select_point import Chosen, choose_in
from engpass.explain.service import Needs
from engpass.explanation import explain, situation
from engpass.settings import Amount
from engpass.testbed import load
from engpass.types.outcome import FlowOutcome
from required import known
from served import served

MESSAGE = "traffic.stream.message"


def short(**more: str) -> engpass.Testbed:
    """The Kyoto study, shortened to a fifth of a second."""
    sets = {"run.duration": "200 ms", "run.repeats": "2", **more}
    return engpass.load(gallery.study("kyoto-1997").testbed, set=sets)


def at_point(variant: str, message: str, **more: str) -> tuple[Chosen, Bench, Situation]:
    chosen = choose_in(short(**more), variant, [f"{MESSAGE}={message}"], None)
    bench = Bench(chosen.text, chosen.source, chosen.overrides, variant, chosen.sweep, range(chosen.repeats))
    return chosen, bench, situation(chosen, bench, chosen.outcomes)


def test_advised_gain_equals_a_run_with_the_change() -> None:
    made = explain(choose_in(short(), "congested", [f"{MESSAGE}=9 kB"], None))
    assert made.advice is not None
    assert made.advice.changes
    seeds = made.advice.seeds

    def mean(sets: Mapping[str, str]) -> float:
        run = short(**sets, **{MESSAGE: "9 kB"}).run(["simulate"], ["congested"], repeats=seeds)
        return sum(outcome.flows["stream"].goodput_bit_per_s for outcome in run.outcomes) / seeds

    for change in made.advice.changes:
        assert change.after == pytest.approx(mean(dict(change.set)))
        assert change.after > change.before == pytest.approx(mean({}))


def test_advice_shapes_to_the_free_rate_in_congestion_collapse() -> None:
    made = explain(choose_in(short(), "congested", [f"{MESSAGE}=9 kB"], None))
    assert made.advice is not None
    best = made.advice.changes[0]
    assert (best.kind, best.cost) == ("shaping", Cost.SETTING)
    # 353 207.5 cells/s minus the 295 247.9 cells/s of the interference.
    assert dict(best.set) == {"circuit.data.shaping": "57959 cells/s"}
    assert best.after > 0.9 * made.at.limit
    assert best.text in made.sentence
    assert made.sentence.startswith("the buffer of `atomis5` towards `ss20` limits `stream` to ")
    assert not any("raise the buffer" in text for text in made.advice.tried), "no buffer mends an overload"


def test_advice_enlarges_a_buffer_that_bursts_overflow() -> None:
    # On average 4 kB fit beside the interference, but a burst of 85 cells does not fit into 16.
    made = explain(
        choose_in(
            short(**{"switch.atomis5.output_buffer": "16 cells"}), "congested", [f"{MESSAGE}=3 kB"], None
        )
    )
    assert made.advice is not None
    buffers = [change for change in made.advice.changes if change.kind == "buffer"]
    assert len(buffers) == 1
    (size,) = dict(buffers[0].set).values()
    assert size in {f"{16 * 2**n} cells" for n in range(1, 9)}
    assert buffers[0].after > buffers[0].before


def test_advice_prefers_larger_messages_to_a_faster_cpu() -> None:
    made = explain(choose_in(short(), "free", [f"{MESSAGE}=1 kB"], None))
    assert made.advice is not None
    kinds = [change.kind for change in made.advice.changes]
    assert {"message", "cpu"} <= set(kinds)
    assert kinds.index("message") < kinds.index("cpu")
    assert made.finding.key in ("limit", "idle: CPU")


def test_advice_speeds_up_the_card_that_drops_packets() -> None:
    sets = {"run.duration": "1 s", "run.warmup": "500 ms"}
    bed = engpass.load(gallery.study("nren-1998").testbed, set=sets)
    made = explain(choose_in(bed, "gre-pa-a1-24", [], None))
    assert made.advice is not None
    (faster,) = [change for change in made.advice.changes if change.kind == "line"]
    assert dict(faster.set) == {"router.nren-antl.cards.atm.engine.punt": "61.15 us"}
    assert faster.after == pytest.approx(46.15e6, rel=5e-3), "then the shaper of the PVC is the bottleneck"
    assert made.sentence.startswith("card `atm` of router `nren-antl` harms `stream`")


BANDWIDTH, BUS = "host.sender.memory.bandwidth", "host.sender.io_bus.bandwidth"


def copying(variant: str, memory: str, bus: str, **more: str) -> advice.Advice:
    """Advice for the copy study at these bandwidths of memory and bus; the window has 80 ms."""
    sets = {"run.duration": "100 ms", "run.warmup": "20 ms", **more}
    bed = engpass.load(gallery.study("karlsruhe-1998").testbed, set=sets)
    made = explain(choose_in(bed, variant, [f"{BANDWIDTH}={memory}", f"{BUS}={bus}"], None)).advice
    assert made is not None
    return made


def test_advice_for_a_full_io_bus_is_only_a_wider_bus() -> None:
    made = copying("zero-copy", "400 MB/s", "133 MB/s")
    (best,) = [change for change in made.changes if change.kind == "I/O bus"]
    # min(4 * 133, 400) MB/s: beyond 400 MB/s the memory is the limit.
    assert dict(best.set) == {BUS: "532 MB/s"}
    assert best.before == pytest.approx(133 * 8e6, rel=5e-3)
    assert best.after == pytest.approx(400 * 8e6, rel=5e-3)
    assert made.changes[0] == best
    assert not any(change.kind in ("data path", "memory") for change in made.changes)
    assert "give `sender` memory 2 times as fast" in made.tried


def test_advice_prefers_zero_copy_to_faster_memory() -> None:
    made = copying("one-copy-pipelined", "200 MB/s", "133 MB/s")
    gains = {change.kind: change for change in made.changes}
    # M / 3 with a copy; without one the bus of 133 MB/s is the limit, as with a memory of 400 MB/s or more.
    assert gains["data path"].before == pytest.approx(200 / 3 * 8e6, rel=5e-3)
    assert dict(gains["data path"].set) == {"traffic.transfer.send_path": "zero-copy"}
    assert dict(gains["memory"].set) == {BANDWIDTH: "400 MB/s"}
    for change in (gains["data path"], gains["memory"]):
        assert change.after == pytest.approx(133 * 8e6, rel=5e-3)
    assert made.changes[0].kind == "data path", "a program is cheaper than a machine"
    assert "I/O bus" not in gains


def test_advice_replaces_the_strict_copy_path() -> None:
    made = copying("one-copy-strict", "1000 MB/s", "266 MB/s")
    ways = {
        dict(change.set)["traffic.transfer.send_path"]
        for change in made.changes
        if change.kind == "data path"
    }
    assert ways == {"one-copy-pipelined", "zero-copy"}


def test_advice_speeds_up_a_slow_copy_or_uses_the_cache() -> None:
    memory = '{ bandwidth = "1600 MB/s", copy = "100 MB/s", cache = { size = "1 MiB", copy = "2 GB/s" } }'
    made = copying("one-copy-pipelined", "1600 MB/s", "1 GB/s", **{"host.sender.memory": memory})
    gains = {change.kind: change for change in made.changes}
    assert dict(gains["cache"].set) == {"host.sender.memory.working_set": "1 MiB"}
    # The memory then carries 1600 / 3 MB/s.
    assert dict(gains["memory"].set) == {"host.sender.memory.copy": "800 MB/s"}
    assert gains["memory"].after == pytest.approx(1600 / 3 * 8e6, rel=5e-3)


def test_advice_removes_the_copy_of_a_slow_receiver() -> None:
    made = copying(
        "zero-copy",
        "4000 MB/s",
        "4000 MB/s",
        **{
            "host.peer.memory": '{ bandwidth = "300 MB/s" }',
            "traffic.transfer.receive_path": "one-copy-pipelined",
        },
    )
    assert {"traffic.transfer.receive_path"} in [set(dict(change.set)) for change in made.changes]
    assert any("`AF_XDP`" in text for text in made.tried)


def flow(goodput: float) -> FlowOutcome:
    return FlowOutcome(kind="udp-stream", goodput_bit_per_s=goodput, offered_bit_per_s=goodput)


def bench_of(goodputs: Callable[[str], float | None], runs: list[str]) -> Any:
    """A bench whose goodput depends on the set value; it rejects a value with `None`."""

    class Fake:
        compared = True
        interrupt = _engpass.Interrupt()

        def baseline(self) -> list[Flows]:
            return [{"stream": flow(1e6), "other": flow(5e6)}]

        def served(self, changes: Sequence[tuple[str, str]], _goes_on: object) -> list[Flows] | None:
            value = changes[0][1]
            runs.append(value)
            made = goodputs(value)
            other = flow(5e6 if made is None or made < 3e6 else 4e6)
            return None if made is None else [{"stream": flow(made), "other": other}]

    return Fake()


def tried_with(
    monkeypatch: pytest.MonkeyPatch, steps: Sequence[str], goodputs: Callable[[str], float | None]
) -> tuple[advice.Advice, list[str]]:
    _, _, at = at_point("congested", "9 kB")

    def propose(_at: Situation) -> Iterator[Proposal]:
        made = tuple(Candidate(f"set {value}", (("run.x", value),)) for value in steps)
        yield Proposal("test", Cost.SETTING, made)

    monkeypatch.setattr(advice, "KINDS", (propose,))
    runs: list[str] = []
    return advise(at, bench_of(goodputs, runs), jobs=1), runs


def test_advice_search_stops_after_two_steps_without_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = {"a": 1e6, "b": 2e6, "c": 2e6, "d": 2.01e6, "e": 9e6}
    made, runs = tried_with(monkeypatch, list(gains), gains.__getitem__)
    assert runs == ["a", "b", "c", "d"], "two steps without a gain end it"
    assert [(change.say, change.after) for change in made.changes] == [("set b", 2e6)]
    assert made.tried == ("set a", "set b", "set c", "set d")


def test_changes_refused_or_without_gain_are_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    made, runs = tried_with(monkeypatch, ["a", "b"], {"a": None, "b": 1.005e6}.__getitem__)
    assert runs == ["a", "b"]
    assert (made.changes, made.trades, made.tried) == ((), (), ("set b",))


def test_change_that_harms_another_flow_is_a_trade(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = tried_with(monkeypatch, ["a"], lambda _: 4e6)
    assert made.changes == ()
    (trade,) = made.trades
    assert trade.text == "set a: 1.00 → 4.00 Mbit/s (`other`: 5.00 → 4.00 Mbit/s)"
    assert json.loads(json.dumps(trade.to_json()))["harms"] == ["other"]
    assert json.loads(json.dumps(trade.to_json()))["flows"]["other"]["goodput_bit_per_s"] == [5e6, 4e6]


def test_harmless_step_is_listed_beside_a_better_trade(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gains = {"a": 2e6, "b": 4e6}
    made, _ = tried_with(monkeypatch, list(gains), gains.__getitem__)
    assert [(one.say, one.after) for one in made.changes] == [("set a", 2e6)]
    assert [(one.say, one.after) for one in made.trades] == [("set b", 4e6)]


def test_trade_text_names_the_flows_that_lose_most() -> None:
    few = change(2e6, others=(effect("b", 3e6, 2e6), effect("a", 5e6, 3e6)))
    assert few.text.endswith("(`b`: 3.00 → 2.00 Mbit/s; `a`: 5.00 → 3.00 Mbit/s)")
    many = change(2e6, others=tuple(effect(f"f{at}", (at + 1) * 1e6, 0.0) for at in range(2000)))
    assert "(`f1999`: 2.00 → 0.00 Gbit/s; " in many.text
    assert many.text.endswith("`f1992`: 1.99 → 0.00 Gbit/s; and 1,992 more flows lose)")
    assert len(json.loads(json.dumps(many.to_json()))["harms"]) == 2000
    assert [one.flow for one in told(many)] == ["stream", *(f"f{at}" for at in range(1992, 2000))]


PLAIN = Needs(10e6, None, resends=False, paced=False)


def effect(flow: str, before: float, after: float) -> Effect:
    return Effect(flow, Needs(0.0, None, resends=False, paced=False), served(before), served(after))


def change(
    after: float, cost: Cost = Cost.SETTING, others: tuple[Effect, ...] = (), delay: float | None = None
) -> Change:
    own = Effect("stream", PLAIN, served(1e6), served(after, delay=delay))
    return Change("test", cost, f"{after:g}", (), own, others)


def test_changes_rank_by_gain_then_cost_then_delay() -> None:
    good, equal, hardware = change(9e6), change(9.1e6, Cost.APPLICATION), change(9.05e6, Cost.HARDWARE)
    late, small = change(9.02e6, delay=0.1), change(2e6)
    assert ranked([small, hardware, late, equal, good], 2.0) == [good, late, equal, hardware, small]
    assert ranked([], 0.1) == []


def test_hardware_ranks_behind_sufficient_settings() -> None:
    small, good, bought = change(2e6), change(9e6), change(30e6, Cost.HARDWARE)
    assert ranked([bought, small, good], 1.0) == [good, small, bought]
    assert ranked([bought, small], 1.0) == [bought, small], "a setting that leaves most of it missing"
    assert ranked([bought], 0.0) == [bought]
    assert ranked([small, bought], 0.0) == [bought, small], "nothing is missing that a setting could gain"


def test_doubling_starts_at_the_current_value() -> None:
    _, _, at = at_point("free", "1 kB")
    path = ("switch", "atomis5", "output_buffer")
    (made,) = doubling(at, "k", Cost.SETTING, path, "to {}", steps=2)
    assert [step.say for step in made.steps] == ["to 864 cells", "to 1728 cells"]
    assert made.steps[0].set == (("switch.atomis5.output_buffer", "864 cells"),)
    assert list(doubling(at, "k", Cost.SETTING, ("host", "x.y"), "{}")) == []
    (made,) = doubling(at, "k", Cost.SETTING, ("host", "x.y"), "{}", start=Amount.read("1 B"), steps=1)
    assert made.steps[0].set == (('host."x.y"', "2 B"),)
    assert list(doubling(at, "k", Cost.SETTING, ("host", "x.y"), "{}", start=Amount.read("0 B"))) == []


def test_change_overrides_a_value_given_by_set() -> None:
    path = "switch.atomis5.output_buffer"
    _, bench, _ = at_point("congested", "9 kB", **{path: "64 cells"})
    larger = bench.outcomes([(path, "4096 cells")])
    same = short(**{path: "4096 cells", MESSAGE: "9 kB"}).run(["simulate"], ["congested"]).outcomes
    for one, other in zip(larger, same, strict=True):
        assert one.flows == other.flows
    assert bench.served([(path, "no cells at all")]) is None
    assert bench.served([("switch.nobody.discard", "tail")]) is None


def test_change_of_the_swept_value_equals_setting_it() -> None:
    _, bench, _ = at_point("free", "1 kB")
    made = bench.outcomes([(MESSAGE, "8 kB")])
    same = short(**{MESSAGE: "8 kB"}).run(["simulate"], ["free"]).outcomes
    assert [one.flows for one in made] == [one.flows for one in same]


@pytest.mark.parametrize("family", ["router", "link"])
@pytest.mark.parametrize("rate", ["64 kbit/s", "2 Mbit/s"])
def test_advice_at_a_token_bucket_keeps_its_rate(family: str, rate: str) -> None:
    queue = {"token-bucket": {"rate": "1.2 Mbit/s", "burst": "20 kB", "limit": "100 packets"}}
    testbed: dict[str, Any] = {
        "name": "A call behind an agreed rate",
        "host": {"a": {}, "b": {}},
        "router": {"r": {}},
        "link": {
            "l": {"ends": ["a", "r"], "medium": "ethernet-100", "delay": "2 ms"},
            "m": {"ends": ["r", "b"], "medium": "ethernet-100", "delay": "5 ms"},
        },
        "traffic": {
            "call": {"kind": "udp-stream", "from": "a", "to": "b", "message": "160 B", "rate": rate},
            "bulk": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "64 KiB"},
        },
        "run": {"duration": "1 s", "warmup": "200 ms"},
    }
    testbed[family][{"router": "r", "link": "m"}[family]]["queue"] = queue
    chosen = choose_in(load(testbed), None, [], "call")
    bench = Bench(chosen.text, chosen.source, chosen.overrides, chosen.variant, (), range(chosen.repeats))
    at = situation(chosen, bench, chosen.outcomes)
    queues = [
        value
        for proposal in advice.propose_all(at)
        for step in proposal.steps
        for path, value in step.set
        if path.endswith(".queue")
    ]
    assert queues, "a shorter queue is proposed"
    assert all("token-bucket" in value and "1.2 Mbit/s" in value for value in queues)


def test_advice_shapes_to_the_policer_rate() -> None:
    policing = {"rate": "38000 cells/s", "tolerance": "100 us"}
    testbed: dict[str, Any] = {
        "name": "A policed circuit",
        "host": {"a": {}, "b": {}},
        "switch": {"s": {"kind": "atm", "output_buffer": "500 cells"}},
        "link": {
            "l": {"ends": ["a", "s"], "medium": "oc-3c", "delay": "1 ms"},
            "m": {"ends": ["s", "b"], "medium": "ds3", "delay": "3 ms"},
        },
        "circuit": {"c": {"from": "a", "to": "b", "policing": policing}},
        "traffic": {"t": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "64 KiB", "circuit": "c"}},
        "run": {"duration": "1 s", "warmup": "200 ms"},
    }
    made = explain(choose_in(load(testbed), None, [], None)).advice
    assert made is not None
    best = made.changes[0]
    assert dict(best.set)["circuit.c.shaping"] in ("38000 cells/s", "37240 cells/s")
    assert best.after > 0.9 * 38_000 * 48 * 8 * 0.95


@pytest.mark.parametrize(
    ("variant", "place", "rates"),
    [
        ("unshaped", "the buffer of `west` towards `east`", ("329620 cells/s", "323027 cells/s")),
        ("policed", "the policer of `west` towards `east`", ("90 %", "88.20 %")),
    ],
)
def test_advice_shapes_a_lossy_circuit_at_its_router(
    variant: str, place: str, rates: tuple[str, ...]
) -> None:
    """Most datagrams are lost before the circuit, so they do not reduce the limit."""
    values = {"traffic.video.rate": "10 Mbit/s cells", "run.duration": "300 ms", "run.warmup": "100 ms"}
    testbed = engpass.load(gallery.study("backbone").testbed, set=values)
    made = explain(choose_in(testbed, variant, [], None))
    assert made.finding.bottleneck == place
    assert made.advice is not None
    shaped = [one for one in made.advice.changes if "circuit.backbone.shaping" in dict(one.set)]
    assert dict(shaped[0].set)["circuit.backbone.shaping"] in rates
    assert shaped[0].after > 0.99 * made.at.limit


@pytest.mark.parametrize(
    ("variant", "sets", "least"),
    [
        # The route processor decapsulates; the card hands it each packet and gets full.
        (
            "gre-pa-a1-24",
            {"router.nren-antl.cards.atm.distributed": '["unicast", "multicast", "tunnels"]'},
            45e6,
        ),
        # A process takes 200 us for a packet of 512 bytes: 20.48 of the 40 Mbit/s that arrive.
        ("rsp2-aip", {"router.nren-antl.process_switched": "[]"}, 39.9e6),
    ],
)
def test_advice_replaces_slow_switching_at_the_router_that_loses_packets(
    variant: str, sets: dict[str, str], least: float
) -> None:
    bed = engpass.load(
        gallery.study("nren-1998").testbed, set={"run.duration": "700 ms", "run.warmup": "200 ms"}
    )
    made = explain(choose_in(bed, variant, [], None))
    assert made.advice is not None
    best = made.advice.changes[0]
    assert (best.kind, best.cost, dict(best.set)) == ("switching", Cost.SETTING, sets)
    assert best.after > least


def test_advice_leaves_switching_alone_where_no_router_loses_packets() -> None:
    bed = engpass.load(
        gallery.study("nren-1998").testbed, set={"run.duration": "700 ms", "run.warmup": "200 ms"}
    )
    made = explain(choose_in(bed, "native-pa-a1-24", [], None))
    assert made.advice is not None
    assert all(change.kind != "switching" for change in made.advice.changes)


def situated(text: str, flow: str | None = None) -> Situation:
    chosen = choose_in(engpass.loads(text), None, [], flow)
    bench = Bench(chosen.text, chosen.source, chosen.overrides, chosen.variant, chosen.sweep, range(1))
    return situation(chosen, bench, chosen.outcomes)


INCAST = """
name = "incast"
host.client = {}
switch.tor = { kind = "ethernet", queue = { drop-tail = { limit = "16 KiB" } } }
link.down = { ends = ["tor", "client"], medium = "ethernet-100g" }
run = { duration = "500 ms" }
""" + "".join(
    f"""
host.s{at} = {{}}
link.l{at} = {{ ends = ["s{at}", "tor"], medium = "ethernet-100g" }}
traffic.a{at} = {{ kind = "tcp-stream", from = "s{at}", to = "client", message = "256 KiB", count = 8 }}
"""
    for at in range(8)
)


def test_one_timeout_is_told_as_one() -> None:
    counts = {name: known(flow.tcp).timeouts for name, flow in situated(INCAST).outcomes[0].flows.items()}
    at = situated(INCAST, next(name for name, count in counts.items() if count == 1))
    assert "while the sender waits for the retransmission timer once" in find(at).evidence


def test_a_shorter_timer_is_proposed_for_all_senders_and_not_below_a_tick() -> None:
    (timer,) = (
        step
        for proposal in recovery.propose(situated(INCAST))
        for step in proposal.steps
        if "timeout" in step.say
    )
    # The round trip of some microseconds would ask for a timer that no kernel has.
    assert timer.say.endswith(" and 7 other senders to 1 ms")
    assert dict(timer.set) == {f"host.s{at}.tcp.rto_minimum": "1 ms" for at in range(8)}


def test_jumbo_frames_are_proposed_on_ethernet() -> None:
    text = """
name = "a slow receiver"
host.a = {}
host.b = { receive_cost = { per_segment = "10 us" } }
link.l = { ends = ["a", "b"], medium = "ethernet-10g", mtu = "MTU" }
traffic.t = { kind = "tcp-stream", from = "a", to = "b", message = "64 KiB" }
run = { duration = "50 ms" }
"""

    def steps(mtu: str) -> list[tuple[tuple[str, str], ...]]:
        found = cpu.propose(situated(text.replace("MTU", mtu)))
        return [step.set for proposal in found if proposal.kind == "mtu" for step in proposal.steps]

    assert steps("1500 B") == [(("link.l.mtu", "9000 B"),)]
    assert steps("9000 B") == []
