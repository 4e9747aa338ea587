"""The books: they balance, or the store is damaged; sums, shares and the waterfall."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engpass import ledger
from engpass.error import EngpassError
from engpass.ledger import Books
from ledgers import links

ACCOUNTS = [account for family in ledger.FAMILIES for account in family.accounts] + ["other: cbr", "new"]

random_books = st.builds(
    lambda accounts, parts: Books(sum(accounts.values()), parts, accounts),
    st.dictionaries(st.sampled_from(ACCOUNTS), st.integers(1, 2**48), min_size=1),
    st.sampled_from([1, 7, 13]),
)


@given(random_books)
def test_the_waterfall_goes_from_all_to_what_is_delivered(one: Books) -> None:
    steps = ledger.waterfall(one)
    assert (steps[0].name, steps[0].left) == ("line rate", 1.0)
    assert steps[-1].left == pytest.approx(one.share("delivered"), abs=1e-12)
    for before, after in pairwise(steps[:-1]):
        assert before.left - after.taken == pytest.approx(after.left, abs=1e-9)
    assert {step.family for step in steps[1:]} == {ledger.family(n).key for n in one.names} | {"delivered"}


@given(random_books, st.floats(0, 1))
def test_the_waterfall_of_one_of_several_flows_ends_in_its_own(one: Books, own: float) -> None:
    steps, delivered = ledger.waterfall(one, own), one.share("delivered")
    assert steps[-1].left == min(own, delivered)
    others = [step for step in steps if step.name == "other flows"]
    assert len(others) == (own < delivered)
    if others:
        assert others[0].taken == pytest.approx(delivered - own)
        assert steps[-3].left - others[0].taken == pytest.approx(own, abs=1e-9)


@given(st.lists(random_books, min_size=1, max_size=4))
def test_sums_balance_whatever_their_units(several: list[Books]) -> None:
    total = ledger.add(several)
    assert total is not None
    assert sum(total.accounts.values()) == total.capacity
    bits = sum(one.bits("delivered") for one in several)
    assert total.bits("delivered") == pytest.approx(bits)
    assert sum(total.of(family.key) for family in ledger.FAMILIES) == pytest.approx(1)


def test_nothing_is_the_sum_of_nothing() -> None:
    assert ledger.add([]) is None
    assert ledger.directions({"links": {"wire": {"directions": []}}}) == []
    assert ledger.directions({}) == []


def test_units() -> None:
    assert (ledger.parts("1/13 bit"), ledger.parts("bit")) == (13, 1)
    for wrong in ("bits", "13 bit", "1/0.5 bit", ""):
        with pytest.raises(ValueError):  # noqa: PT011 (int() has its own words)
            ledger.parts(wrong)
    one = Books(26, 13, {"delivered": 13, "dead": 13})
    assert (one.bits("delivered"), one.share("dead"), one.idle) == (1.0, 0.5, 0.0)


def test_accounts_stand_in_the_order_of_their_families() -> None:
    shuffled = [
        "idle: CPU",
        "other: b",
        "delivered",
        "idle: later",
        "other: a",
        "control",
        "cell headers",
        "new",
    ]
    assert ledger.ordered(shuffled) == [
        "cell headers",
        "delivered",
        "control",
        "new",
        "other: a",
        "other: b",
        "idle: CPU",
        "idle: later",
    ]
    assert ledger.title("other: a") == "traffic `a`"


def _off_by_one(use: dict[str, Any]) -> None:
    use["directions"][0]["ledger"]["delivered"] += 1


def _negative(use: dict[str, Any]) -> None:
    side = use["directions"][0]["ledger"]
    side["dead"] = side.get("dead", 0) - side["delivered"] * 3
    side["delivered"] *= 4


def _no_sum(use: dict[str, Any]) -> None:
    use["ledger"]["delivered"] -= 1
    use["ledger"]["dead"] = use["ledger"].get("dead", 0) + 1


def _no_number(use: dict[str, Any]) -> None:
    use["ledger"]["delivered"] = "much"


def _no_unit(use: dict[str, Any]) -> None:
    use["unit"] = "furlong"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_off_by_one, "does not balance"),
        (_negative, "has a negative account"),
        (_no_sum, "is not the sum of its directions"),
        (_no_number, "cannot be read"),
        (_no_unit, "cannot be read"),
    ],
)
def test_books_that_do_not_balance_are_refused(damage: Callable[[dict[str, Any]], None], said: str) -> None:
    outcome = {"links": links(0.2, 0.1, 0.5)}
    assert len(ledger.directions(outcome)) == 6
    broken = copy.deepcopy(outcome)
    damage(broken["links"]["receiver"])
    with pytest.raises(EngpassError, match=said) as caught:
        ledger.directions(broken)
    assert "`receiver`" in caught.value.message
    assert "--fresh" in (caught.value.help or "")


def test_a_slim_outcome_has_the_same_books() -> None:
    outcome = {"links": {**links(0.2, 0.1, 0.5), "old": {"directions": []}}, "flows": {}}
    before = ledger.directions(outcome)
    kept = ledger.slim(copy.deepcopy(outcome))
    assert ledger.directions(kept) == before
    assert "old" not in kept["links"]
    assert all("capacity_cells" not in side for side in kept["links"]["sender"]["directions"])
    assert "links" not in ledger.slim({"links": {"old": {"directions": []}}})
