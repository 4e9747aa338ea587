"""Explanations of flows whose line fails, or that share a line although another one is spare."""

from __future__ import annotations

import functools
from itertools import pairwise

import pytest

import engpass
from engpass.advice import congestion
from engpass.explain.bottleneck import find
from engpass.explain.select_point import choose_in
from engpass.explanation import Explanation, explain
from engpass.results import ledger
from engpass.settings import Settings
from engpass.source import Given
from engpass.types.outcome import VERSION, FlowOutcome, Outcome, Path, Step
from test_outage import CUT, PAIR

STREAM = 'kind = "udp-stream"\nfrom = "a"\nto = "b"\nmessage = "1472 B"\nrate = "11.776 Mbit/s"\n'
FULL = 'kind = "tcp-stream"\nfrom = "a"\nto = "b"\nmessage = "64 KiB"\n'
# Two connections that fill their line. This hash puts both on the upper line.
TWO = PAIR.replace(STREAM, f"{FULL}[traffic.other]\n{FULL}")
ONE = PAIR.replace(STREAM, FULL) + CUT


@functools.cache
def explained(text: str, sets: tuple[tuple[str, str], ...] = (), *, advice: bool = True) -> Explanation:
    testbed = engpass.loads(text, name="pair.toml", set=dict(sets))
    return explain(choose_in(testbed, None, [], "stream"), advice=advice)


def changes(made: Explanation) -> dict[str, dict[str, str]]:
    """The ECMP changes that help: their text, and the values by path."""
    assert made.advice is not None
    found = (*made.advice.changes, *made.advice.trades)
    return {change.say: dict(change.set) for change in found if change.kind == "ecmp"}


LONGER = 'lower = { ends = ["near", "far"], medium = "ethernet-100", delay = "15 ms" }'

HASH = (("router.near.ecmp", "{ hash = { seed = 4 } }"),)


def test_explain_names_a_hash_that_leaves_a_line_idle() -> None:
    made = explained(TWO, HASH)
    assert made.at.tight is not None
    assert made.at.tight.link == "upper"
    said = "router `near` chooses by a hash, which leaves link `lower` idle 100.0 % of the time"
    assert said in made.finding.evidence


def test_router_without_policy_is_explained_as_a_hash() -> None:
    given = explained(TWO, (("router.near.ecmp", "hash"),))
    made = explained(TWO.replace('[router.near]\necmp = "first"', "[router.near]"))
    assert (made.sentence, changes(made)) == (given.sentence, changes(given))


def test_ecmp_advice_gain_equals_a_run_with_the_change() -> None:
    made = explained(TWO, HASH)
    found = changes(made)
    turns = "let router `near` send packets round-robin over equal-cost paths"
    assert found[turns] == {"router.near.ecmp": "round-robin"}
    (seed,) = [sets for words, sets in found.items() if "seed" in words]
    assert seed == {"router.near.ecmp": "{ hash = { seed = 0 } }"}
    assert made.advice is not None
    for change in made.advice.changes:
        if change.kind == "ecmp":
            (ran,) = engpass.loads(TWO, name="pair.toml", set=dict(change.set)).run(["simulate"]).outcomes
            assert change.after == ran.flows["stream"].goodput_bit_per_s > change.before


def test_advice_simulates_hash_seeds_without_collision() -> None:
    made = explained(TWO, HASH)
    assert made.advice is not None
    tried = [words for words in made.advice.tried if "seed" in words]
    # With the seeds 1, 2, 4 and 7 both connections take the same line.
    assert tried == [f"set the hash seed of router `near` to {seed}" for seed in (0, 3, 5, 6)]


def test_explain_names_first_path_policy_and_tries_a_hash() -> None:
    made = explained(TWO, (("router.near.ecmp", "first"),))
    said = "router `near` takes the first of equal-cost paths, which leaves link `lower` idle 100.0 %"
    assert said in made.finding.evidence
    assert made.advice is not None
    assert "let router `near` choose among equal-cost paths by a hash" in made.advice.tried


def test_advice_keeps_weights_when_the_policy_changes() -> None:
    weights = (("router.near.ecmp", "{ hash = { seed = 4, weights = { upper = 3 } } }"),)
    found = changes(explained(TWO, weights))
    assert {"router.near.ecmp": "{ round-robin = { weights = { upper = 3 } } }"} in found.values()


def test_explain_names_the_failed_line_and_advises_ecmp() -> None:
    made = explained(PAIR + CUT)
    assert made.finding.key == "drops: line down"
    assert made.sentence.startswith(
        "link `upper` limits `stream` to 8.83 Mbit/s (limit 11.78 Mbit/s): it is down 25.0 % of the"
        " time and loses 500 datagrams (25.0 %), and nothing arrives for 501 ms; let router `near` choose"
    )
    assert changes(made) == {
        "let router `near` choose among equal-cost paths by a hash": {"router.near.ecmp": "hash"}
    }


def test_explain_of_a_tcp_outage_names_timer_and_both_routers() -> None:
    made = explained(ONE)
    assert made.finding.key == "drops: line down"
    assert "link `upper` limits `stream`" in made.sentence
    assert "because the retransmission timer must expire" in made.finding.evidence
    both = {"router.near.ecmp": "hash", "router.far.ecmp": "hash"}
    assert changes(made) == {"let routers `near` and `far` choose among equal-cost paths by a hash": both}


def test_explanation_of_a_flow_at_its_limit_names_an_outage() -> None:
    # With this seed the hash chose the upper line before the failure.
    made = explained(PAIR + CUT, (("router.near.ecmp", "{ hash = { seed = 1 } }"),), advice=False)
    assert made.sentence.startswith("application `stream` limits `stream`: it gets 11.78 Mbit/s of its limit")
    assert made.sentence.endswith("; link `upper` is down 25.0 % of the time")


def test_few_outage_losses_still_name_the_failed_line() -> None:
    brief = PAIR + CUT.replace('"1 s"', '"520 ms"')
    made = explained(brief, advice=False)
    assert made.finding.state == "harmed"
    assert "it is down 1.0 % of the time and loses 20 datagrams (1.0 %)" in made.sentence


def test_explain_names_reordering_by_round_robin() -> None:
    longer = TWO.replace('lower = { ends = ["near", "far"], medium = "ethernet-100" }', LONGER)
    sets = (("router.near.ecmp", "round-robin"), ("host.a.tcp.recovery", "sack"))
    made = explained(longer, sets)
    assert "because packets that router `near` sends over several paths are reordered: " in made.sentence
    assert "segments are retransmitted although none is lost" in made.sentence
    assert made.advice is not None
    assert "let router `near` keep each connection on one path by a hash" in made.advice.tried


def test_outage_off_the_path_is_not_named() -> None:
    lower = CUT.replace("upper", "lower")
    assert "is down" not in find(explained(PAIR + lower, advice=False).at).evidence


def path(share: float, *nodes: str) -> Path:
    return Path(share=share, steps=[Step(link=f"{a}{b}", from_=a, to=b) for a, b in pairwise(nodes)])


def test_hops_of_several_paths_are_in_order_with_shares() -> None:
    paths = [path(0.5, *"anxfb"), path(0.25, *"anyfb"), path(0.25, *"anxgb")]
    flow = FlowOutcome(kind="udp-stream", paths=paths, goodput_bit_per_s=1.0, offered_bit_per_s=1.0)
    outcome = Outcome(
        version=VERSION,
        variant="base",
        engine="simulate",
        repeat=0,
        seed=1,
        sweep={},
        flows={"stream": flow},
        links={},
    )
    found = ledger.parts(outcome, "stream")
    links = [link for link, _, _ in found]
    assert sorted(links, key=links.index) == links
    assert {link: share for (link, _, _), share in found.items()} == pytest.approx(
        {"an": 1.0, "nx": 0.75, "ny": 0.25, "xf": 0.5, "yf": 0.25, "xg": 0.25, "fb": 0.75, "gb": 0.25}
    )
    for one in paths:
        way = [links.index(step.link) for step in one.steps]
        assert way == sorted(way)


def test_a_value_for_a_variant_holds_in_that_variant_alone() -> None:
    text = TWO + '[variant.one]\n"router.near.ecmp" = "hash"\n[variant.two]\n'
    sets = [('variant.one."router.near.ecmp"', "first"), ('variant.two."router.near.ecmp"', "round-robin")]
    campaign = engpass.loads(text, sets).campaign
    policies = [Settings.at(campaign, name, ()).kind("router", "near", "ecmp") for name in ("one", "two")]
    assert policies == ["first", "round-robin"]


BONDED = """\
name = "bonded"
[host.a]
[host.b]
[switch.s]
kind = "ethernet"
[link.near]
ends = ["a", "s"]
medium = "ethernet-100"
[link.longer]
ends = ["a", "s"]
medium = "ethernet-100"
delay = "300 us"
[link.out]
ends = ["s", "b"]
medium = "ethernet-1g"
[bond.both]
node = "a"
links = ["near", "longer"]
mode = "round-robin"
[traffic.stream]
kind = "tcp-stream"
from = "a"
to = "b"
message = "64 KiB"
[run]
duration = "1 s"
"""


def test_bond_that_reorders_packets_is_named_even_if_the_flow_gets_its_limit() -> None:
    made = explained(BONDED, advice=False)
    assert made.finding.state in ("harmed", "at limit")
    assert "packets that bond `both` sends over several paths are reordered" in made.sentence
    assert made.sentence.count("reordered") == 1
    assert "reordered" not in explained(BONDED.replace("round-robin", "hash"), advice=False).sentence


def test_control_that_needs_marks_is_proposed_only_where_a_queue_marks() -> None:
    text = ONE.replace('ecmp = "first"', 'ecmp = "first"\nqueue = { red = { ecn = true } }')
    for given, wanted in ((ONE, False), (text, True)):
        at = explained(given, advice=False).at
        said = [step.say for proposal in congestion.propose(at) for step in proposal.steps]
        assert any("`bbr`" in one for one in said)
        assert any("`dctcp`" in one for one in said) is wanted


@pytest.mark.parametrize("rate", ["5 Mbit/s", "9 Mbit/s", "20 Mbit/s"])
def test_a_link_is_down_as_long_as_its_events_say_although_the_nic_sends_into_it(rate: str) -> None:
    testbed: dict[str, Given] = {
        "name": "A NIC whose link fails",
        "host": {"a": {}, "b": {}},
        "router": {"r": {}},
        "link": {
            "l1": {"ends": ["a", "r"], "medium": "ethernet-10"},
            "l2": {"ends": ["r", "b"], "medium": "ethernet-100"},
        },
        "traffic": {"u": {"kind": "udp-stream", "from": "a", "to": "b", "message": "1000 B", "rate": rate}},
        "event": {
            "d": {"target": "l1", "at": "1 s", "change": "down"},
            "u": {"target": "l1", "at": "2 s", "change": "up"},
        },
        "run": {"duration": "4 s"},
    }
    made = explain(choose_in(engpass.testbed.load(testbed), None, [], None), advice=False)
    assert made.finding.evidence.startswith("it is down 25.0 % of the time and loses ")
    assert made.at.books["l1", "a", "r"].books.share("idle: line down") < 0.13, "the NIC sends all the time"
