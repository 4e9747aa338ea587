"""Ledgers: balance, damaged stores, sums, shares and the waterfall."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engpass.error import EngpassError
from engpass.results import ledger
from engpass.results.ledger import Books
from engpass.types.outcome import VERSION, FlowOutcome, LinkOutcome, Outcome, RealFlow
from ledgers import links


def outcome(links: dict[str, LinkOutcome]) -> Outcome:
    """An outcome with these links, and with a flow that has an agent's results for one end."""
    real = RealFlow(schedule_kept=1.0, ends={"ss2": {"bytes": 1}})
    flow = FlowOutcome(kind="udp-stream", goodput_bit_per_s=1e6, offered_bit_per_s=1e6, real=real)
    return Outcome(
        version=VERSION,
        variant="base",
        engine="simulate",
        repeat=0,
        seed=1,
        sweep={},
        flows={"stream": flow},
        links=links,
        hosts={"ss2": {"settings": 1}},
    )


ACCOUNTS = [account for family in ledger.FAMILIES for account in family.accounts] + ["generator: cbr", "new"]

random_books = st.builds(
    lambda accounts, parts: Books(sum(accounts.values()), parts, accounts),
    st.dictionaries(st.sampled_from(ACCOUNTS), st.integers(1, 2**48), min_size=1),
    st.sampled_from([1, 7, 13]),
)


@given(random_books)
def test_waterfall_goes_from_line_rate_to_delivered(one: Books) -> None:
    steps = ledger.waterfall(one)
    assert (steps[0].name, steps[0].left) == ("line rate", 1.0)
    assert steps[-1].left == pytest.approx(one.share("delivered"), abs=1e-12)
    for before, after in pairwise(steps[:-1]):
        assert before.left - after.taken == pytest.approx(after.left, abs=1e-9)
    assert {step.family for step in steps[1:]} == {ledger.family(n).key for n in one.names} | {"delivered"}


@given(random_books, st.floats(0, 1))
def test_waterfall_of_one_flow_ends_in_its_own_share(one: Books, own: float) -> None:
    steps, delivered = ledger.waterfall(one, own), one.share("delivered")
    assert steps[-1].left == min(own, delivered)
    others = [step for step in steps if step.name == "other flows"]
    assert len(others) == (own < delivered)
    if others:
        assert others[0].taken == pytest.approx(delivered - own)
        assert steps[-3].left - others[0].taken == pytest.approx(own, abs=1e-9)


@given(st.lists(random_books, min_size=1, max_size=4))
def test_ledger_sums_balance_in_any_units(several: list[Books]) -> None:
    total = ledger.add(several)
    assert total is not None
    assert sum(total.accounts.values()) == total.capacity
    bits = sum(one.bits("delivered") for one in several)
    assert total.bits("delivered") == pytest.approx(bits)
    assert sum(total.of(family.key) for family in ledger.FAMILIES) == pytest.approx(1)


def test_empty_ledgers_have_no_sum() -> None:
    assert ledger.add([]) is None
    assert ledger.directions(outcome({"wire": LinkOutcome(directions=[])})) == []
    assert ledger.directions(outcome({})) == []


def test_ledger_parts_convert_to_bits_and_shares() -> None:
    one = Books(26, 13, {"delivered": 13, "lost datagrams": 13})
    assert (one.bits("delivered"), one.share("lost datagrams"), one.idle) == (1.0, 0.5, 0.0)


def test_accounts_are_ordered_by_family() -> None:
    shuffled = [
        "idle: CPU",
        "generator: b",
        "delivered",
        "idle: later",
        "generator: a",
        "ACK and control",
        "cell headers",
        "new",
    ]
    assert ledger.ordered(shuffled) == [
        "cell headers",
        "delivered",
        "ACK and control",
        "generator: a",
        "generator: b",
        "new",
        "idle: CPU",
        "idle: later",
    ]
    assert ledger.title("generator: a") == "traffic `a`"


def _off_by_one(accounts: dict[str, int]) -> None:
    accounts["delivered"] += 1


def _negative(accounts: dict[str, int]) -> None:
    accounts["lost datagrams"] = accounts.get("lost datagrams", 0) - accounts["delivered"] * 3
    accounts["delivered"] *= 4


@pytest.mark.parametrize(
    ("damage", "said"), [(_off_by_one, "does not balance"), (_negative, "has a negative account")]
)
def test_unbalanced_or_negative_ledger_is_rejected(
    damage: Callable[[dict[str, int]], None], said: str
) -> None:
    whole = outcome(links(0.2, 0.1, 0.5))
    assert len(ledger.directions(whole)) == 6
    kept = whole.links["receiver"].directions[0].ledger
    assert kept is not None
    damage(kept.accounts)
    with pytest.raises(EngpassError, match=said) as caught:
        ledger.directions(whole)
    assert "`receiver`" in caught.value.message
    assert "--fresh" in (caught.value.help or "")


def test_slim_outcome_keeps_the_ledgers() -> None:
    whole = outcome({**links(0.2, 0.1, 0.5), "old": LinkOutcome(directions=[])})
    kept = ledger.slim(whole)
    assert ledger.directions(kept) == ledger.directions(whole)
    assert list(kept.links) == ["sender", "receiver", "load"]
    assert (kept.hosts, kept.flows["stream"].real) == ({}, RealFlow(schedule_kept=1.0))
