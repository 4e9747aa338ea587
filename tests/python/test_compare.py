"""Comparison of runs: which signals differ, in which direction, and how the command shows it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conftest import Program
from engpass.results.comparison import Comparison, compare
from engpass.results.samples import FLOW_SIGNALS, GOODPUT, LOSS
from engpass.types.outcome import VERSION, Datagrams, FlowOutcome, Outcome, Tcp


def outcome(
    goodput: float, *, repeat: int = 0, lost: int = 0, flow: str = "f", variant: str = "v"
) -> Outcome:
    counts = Datagrams(sent=100, received=100 - lost, lost=lost)
    found = FlowOutcome(
        kind="udp-stream", goodput_bit_per_s=goodput, offered_bit_per_s=goodput, datagrams=counts
    )
    return Outcome(
        version=VERSION,
        variant=variant,
        engine="simulate",
        repeat=repeat,
        seed=1,
        sweep={},
        flows={flow: found},
        links={},
    )


def repeats(*goodputs: float) -> list[Outcome]:
    return [outcome(goodput, repeat=number) for number, goodput in enumerate(goodputs)]


def compared(*runs: list[Outcome]) -> Comparison:
    return compare(runs, [GOODPUT, LOSS])


def test_a_run_differs_from_itself_in_nothing() -> None:
    run = repeats(10e6, 11e6)
    found = compared(run, run)
    assert (found.common, found.alone, found.differences) == (1, (0, 0), ())


@given(
    st.lists(st.floats(1e3, 1e9), min_size=1, max_size=5),
    st.lists(st.floats(1e3, 1e9), min_size=1, max_size=5),
)
def test_runs_differ_only_if_their_means_are_further_apart_than_half_their_ranges(
    one: list[float], other: list[float]
) -> None:
    found = compared(repeats(*one), repeats(*other))
    means = [sum(rates) / len(rates) for rates in (one, other)]
    scatter = (max(one) - min(one) + max(other) - min(other)) / 2
    apart = abs(means[0] - means[1])
    if apart > 1.001 * max(scatter, 1e-3 * max(means)):
        assert [difference.signal for difference in found.differences] == [GOODPUT]
        assert found.differences[0].verdict == ("better" if means[1] > means[0] else "worse")
        change = found.differences[0].change
        assert change is not None
        assert -1 <= change <= 1
    elif apart < 0.999 * max(scatter, 1e-3 * max(means)):
        assert not found.differences


def test_more_loss_is_worse() -> None:
    (one,) = compared([outcome(1e6, lost=1)], [outcome(1e6, lost=5)]).differences
    assert (one.signal, one.verdict) == (LOSS, "worse")
    assert one.change == pytest.approx(0.8)


def test_results_of_one_run_only_are_counted_and_not_compared() -> None:
    found = compared([outcome(1e6), outcome(1e6, flow="g")], [outcome(2e6), outcome(1e6, variant="w")])
    assert (found.common, found.alone) == (1, (1, 1))
    assert [one.place.flow for one in found.differences] == ["f"]


def test_the_place_with_the_greatest_change_comes_first_with_all_its_signals() -> None:
    first = [outcome(1e6, flow="a"), outcome(1e6, flow="b", lost=10)]
    second = [outcome(1.1e6, flow="a"), outcome(4e6, flow="b", lost=11)]
    found = compared(first, second)
    assert [(one.place.flow, one.signal) for one in found.differences] == [
        ("b", GOODPUT),
        ("b", LOSS),
        ("a", GOODPUT),
    ]


def test_a_signal_without_a_better_direction_has_no_verdict() -> None:
    offered = FLOW_SIGNALS["offered_bit_per_s"]
    (one,) = compare([[outcome(1e6)], [outcome(2e6)]], [offered]).differences
    assert one.verdict == ""


def test_a_signal_that_one_run_lacks_differs_without_a_change() -> None:
    timeouts = FLOW_SIGNALS["timeouts"]
    counted = outcome(1e6)
    flows = {"f": replace(counted.flows["f"], tcp=Tcp(timeouts=3))}
    (one,) = compare([[outcome(1e6)], [replace(counted, flows=flows)]], [timeouts]).differences
    assert (one.change, one.verdict) == (None, "")


def ids(program: Program) -> list[str]:
    return [line["id"] for line in map(json.loads, program("runs", "--json").stdout.splitlines())]


def test_the_command_names_runs_their_overrides_and_what_changed(
    program: Program, testbed_file: Path
) -> None:
    only = ["--engine", "simulate", "--variant", "plain"]
    program("run", testbed_file.name, *only)
    program("run", testbed_file.name, *only, "--set", "host.a.cost.per_datagram=500 us")
    base, slower = sorted(ids(program), key=lambda one: "per_datagram" in program("show", one).stdout)
    shown = program("compare", base, slower).stdout
    assert f"run {slower}: {testbed_file.name}, host.a.cost.per_datagram = 500 us" in shown
    assert "worse" in shown
    document = json.loads(program("compare", base, slower, "--json").stdout)
    (table,) = [block for block in document["blocks"] if "rows" in block]
    goodputs = next(row for row in table["rows"] if "Goodput" in row)
    assert all(cell["unit"] == "bit/s" for cell in goodputs if isinstance(cell, dict))


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (["last"], "a comparison needs two runs"),
        (["last", "last"], "is given twice"),
        (["last", "zzz"], "there is no run `zzz`"),
    ],
)
def test_a_comparison_without_two_runs_says_what_to_do(
    program: Program, testbed_file: Path, runs: list[str], said: str
) -> None:
    program("run", testbed_file.name, "--engine", "limit")
    failed = program("compare", *runs, code=2)
    assert said in failed.stderr
    assert "help: " in failed.stderr
