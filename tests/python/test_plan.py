"""The expansion of a campaign into points."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engpass.campaign import Axis, AxisValue, Plan, axes_from_json, check_size, choose
from engpass.error import ChoiceError, EngpassError

names = st.text("abcdefgh-", min_size=1, max_size=5)
values = st.builds(AxisValue, names, st.none() | st.floats(allow_nan=False, allow_infinity=False), st.none())
axes = st.lists(
    st.builds(Axis, names, st.lists(values, min_size=1, max_size=4).map(tuple)),
    max_size=3,
    unique_by=lambda a: a.path,
).map(tuple)
plans = st.builds(
    Plan,
    st.sampled_from([("limit",), ("simulate",), ("limit", "simulate")]),
    st.lists(names, min_size=1, max_size=3, unique=True).map(tuple),
    axes,
    st.integers(1, 4),
)


@given(plans)
def test_points_are_the_product_in_order(plan: Plan) -> None:
    texts = [[(a.path, v.text) for v in a.values] for a in plan.axes]
    expected = [
        (engine, variant, sweep, repeat)
        for engine in plan.engines
        for variant in plan.variants
        for sweep in itertools.product(*texts)
        for repeat in range(1 if engine == "limit" else plan.repeats)
    ]
    assert [(p.engine, p.variant, p.sweep, p.repeat) for p in plan] == expected
    assert [p.position for p in plan] == list(range(plan.total))


@given(plans)
def test_positions_find_the_repeats_of_a_sweep_point(plan: Plan) -> None:
    found = [
        position
        for engine in plan.engines
        for variant in plan.variants
        for index in range(plan.sweep_points)
        for position in plan.positions(engine, variant, index)
    ]
    assert found == list(range(plan.total))
    for engine, variant in itertools.product(plan.engines, plan.variants):
        for index in range(plan.sweep_points):
            for repeat, position in enumerate(plan.positions(engine, variant, index)):
                point = plan.point(position)
                assert (point.engine, point.variant, point.repeat) == (engine, variant, repeat)
                assert point.sweep == plan.sweep(index)


def test_engine_outside_the_plan_has_no_positions() -> None:
    assert not plan_of(1).positions("simulate", "base", 0)


@given(axes)
def test_axes_round_trip_through_json(given_axes: tuple[Axis, ...]) -> None:
    assert axes_from_json(msgspec.json.encode(given_axes).decode()) == given_axes


def plan_of(sizes: int) -> Plan:
    values = tuple(AxisValue(f"{i} B", float(i), "B") for i in range(sizes))
    return Plan(("limit",), ("base",), (Axis("a.b", values),), 1)


def test_position_outside_the_plan_is_an_error() -> None:
    with pytest.raises(IndexError):
        plan_of(3).point(3)


def test_a_million_points_are_computed_not_listed() -> None:
    plan = plan_of(1000)
    plan = Plan(("limit",), ("base",), (*plan.axes, Axis("c.d", plan.axes[0].values)), 1)
    assert plan.total == 1_000_000
    assert plan.point(999_999).sweep == (("a.b", "999 B"), ("c.d", "999 B"))


def test_choices_keep_the_known_order_and_count_once() -> None:
    assert choose("engine", ["simulate", "limit", "limit"], ("limit", "simulate")) == ("limit", "simulate")
    assert choose("engine", None, ("limit", "simulate")) == ("limit", "simulate")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["simulat"], "unknown engine `simulat`\nhelp: did you mean `simulate`?"),
        (["x"], "unknown engine `x`\nhelp: use one of `limit`, `simulate`"),
        ([], "no engine is selected\nhelp: use one of `limit`, `simulate`"),
    ],
)
def test_unknown_choice_lists_the_known_ones(wanted: list[str], message: str) -> None:
    with pytest.raises(ChoiceError) as error:
        choose("engine", wanted, ("limit", "simulate"))
    assert str(error.value) == message


def test_large_campaign_needs_confirmation() -> None:
    check_size(10_000, 10_000)
    check_size(10_001, None)
    with pytest.raises(EngpassError, match="10,001 points, more than 10,000") as error:
        check_size(10_001, 10_000)
    assert "`--yes`" in str(error.value)
    with pytest.raises(EngpassError, match="larger steps"):
        check_size(10**12, None)
