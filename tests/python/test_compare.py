"""Comparison of runs: which signals differ, in which direction, and how the command shows it."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conftest import Program
from engpass.results.comparison import Comparison, compare
from engpass.results.samples import FLOW_SIGNALS, GOODPUT, LOSS
from engpass.results.student import half_width, mean, quantile
from engpass.show.blocks import Prose, Table
from engpass.show.text import cell_text
from engpass.types.outcome import VERSION, Datagrams, FlowOutcome, Outage, Outcome, Tcp
from engpass.views.comparison import Compared, view


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
    assert (found.common, found.alone, found.differences) == (1, ((), ()), ())


@given(st.floats(1e3, 1e9), st.floats(1e3, 1e9), st.integers(1, 3), st.integers(1, 3))
def test_runs_without_scatter_differ_by_more_than_rounding(
    one: float, other: float, first: int, second: int
) -> None:
    found = compared(repeats(*[one] * first), repeats(*[other] * second))
    apart, rounding = abs(one - other), 1e-3 * max(one, other)
    if apart > 1.001 * rounding:
        (difference,) = found.differences
        assert difference.signal == GOODPUT
        assert difference.verdict == ("better" if other > one else "worse")
        assert difference.change == pytest.approx((other - one) / one)
        assert difference.uncertainty == pytest.approx(0.0, abs=1e-9)
    elif apart < 0.999 * rounding:
        assert not found.differences


def drawn(rng: random.Random, mean: float, count: int) -> list[Outcome]:
    return repeats(*(rng.gauss(mean, 1e5) for _ in range(count)))


@pytest.mark.parametrize(("first", "second"), [(2, 2), (3, 3), (5, 5), (40, 40), (3, 40), (5, 10)])
def test_runs_with_equal_means_rarely_differ(first: int, second: int) -> None:
    rng = random.Random(first)
    pairs = ((drawn(rng, 1e7, first), drawn(rng, 1e7, second)) for _ in range(1000))
    alarms = sum(bool(compared(*pair).differences) for pair in pairs)
    # One in a thousand is expected: more than five have a probability of 0.06 %.
    assert alarms <= 5


def test_more_repeats_show_smaller_differences() -> None:
    rng = random.Random(1)

    def shown(count: int) -> int:
        pairs = ((drawn(rng, 1e7, count), drawn(rng, 1.01e7, count)) for _ in range(50))
        return sum(bool(compared(*pair).differences) for pair in pairs)

    # The means are one standard deviation apart, and the ranges of 100 repeats about five.
    assert shown(5) <= 10
    assert shown(100) == 50


@pytest.mark.parametrize(
    ("one", "other", "probability"),
    [
        # Data sets and probabilities of Welch's test as other programs give them.
        (
            (27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4),
            (27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4),
            0.021378,
        ),
        ((30.02, 29.99, 30.11, 29.97, 30.01, 29.99), (29.89, 29.93, 29.72, 29.98, 30.02, 29.98), 0.090773),
    ],
)
def test_interval_ends_at_zero_at_the_probability_of_welchs_test(
    one: tuple[float, ...], other: tuple[float, ...], probability: float
) -> None:
    first, second = (mean([(value, 1.0) for value in values]) for values in (one, other))
    assert half_width(first, second, probability) == pytest.approx(abs(first.value - second.value), rel=1e-4)


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [
        # Two-sided at 5 %, 1 % and 0.1 %, from the tables of textbooks.
        (1, (12.706, 63.657, 636.619)),
        (2, (4.303, 9.925, 31.599)),
        (3, (3.182, 5.841, 12.924)),
        (5, (2.571, 4.032, 6.869)),
        (10, (2.228, 3.169, 4.587)),
        (19, (2.093, 2.861, 3.883)),
        (100, (1.984, 2.626, 3.390)),
        (1e7, (1.960, 2.576, 3.291)),
    ],
)
def test_t_quantiles_match_published_tables(freedom: float, expected: tuple[float, ...]) -> None:
    found = [quantile(probability, freedom) for probability in (0.975, 0.995, 0.9995)]
    assert found == pytest.approx(expected, abs=0.0005)


def test_a_single_repeat_differs_if_it_is_no_likely_repeat_of_the_other_run() -> None:
    run = repeats(9.9e6, 10.0e6, 10.1e6, 10.0e6)
    # Standard deviation 81.65 kbit/s; 12.924 is the t quantile with 3 degrees of freedom.
    most = 12.924 * 81.65e3 * (1 + 1 / 4) ** 0.5
    for one, other in ((run, repeats(10e6 + 0.999 * most)), (repeats(10e6 - 0.999 * most), run)):
        assert not compared(one, other).differences
    for one, other in ((run, repeats(10e6 + 1.001 * most)), (repeats(10e6 - 1.001 * most), run)):
        assert len(compared(one, other).differences) == 1


def test_loss_has_the_error_of_a_ratio_of_sums() -> None:
    same = mean([(1.0, 100.0), (3.0, 100.0), (5.0, 100.0)])
    assert (same.value, same.variance) == pytest.approx((0.03, 0.02**2))
    # Shares that are equal leave no error, however many datagrams the repeats have.
    assert mean([(1.0, 10.0), (100.0, 1000.0)]).variance == pytest.approx(0.0, abs=1e-30)
    assert mean([(1.0, 10.0), (50.0, 1000.0)]).value == pytest.approx(51 / 1010)


def test_a_maximum_is_compared_by_its_mean_over_the_repeats() -> None:
    gap = FLOW_SIGNALS["outage_longest_s"]

    def gaps(*seconds: float) -> list[Outcome]:
        found = [outcome(1e6, repeat=repeat) for repeat, _ in enumerate(seconds)]
        return [
            replace(one, flows={"f": replace(one.flows["f"], outage=Outage(longest_s=longest, lost=0))})
            for one, longest in zip(found, seconds, strict=True)
        ]

    # The longest of many repeats is longer than that of a few, although nothing has changed.
    assert not compare([gaps(1.0, 2.0), gaps(1.0, 2.0, 1.5, 1.0, 2.5)], [gap]).differences
    (one,) = compare([gaps(1.0, 1.0), gaps(2.0, 2.0)], [gap]).differences
    assert (one.change, one.verdict) == (1.0, "worse")


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (10e6, 28e6, "+180.0 %"),
        (28e6, 10e6, "-64.3 %"),
        (1e6, 25e6, "25-fold"),
        (0.0, 1e6, "from 0"),
        (1e6, 0.0, "-100.0 %"),
    ],
)
def test_change_is_relative_to_the_first_run(one: float, other: float, said: str) -> None:
    runs = [repeats(one), repeats(other)]
    document = view([Compared("a", "x"), Compared("b", "y")], [], compare(runs, [GOODPUT]))
    (table,) = [block for block in document.blocks if isinstance(block, Table)]
    assert said in map(cell_text, table.rows[0])
    assert not any("±" in note for note in table.all_notes)


def test_scatter_of_rounding_has_no_interval() -> None:
    runs = [repeats(1e6, 1e6 * (1 + 1e-9)), repeats(2e6, 2e6)]
    document = view([Compared("a", "x"), Compared("b", "y")], [], compare(runs, [GOODPUT]))
    (table,) = [block for block in document.blocks if isinstance(block, Table)]
    assert not any("±" in note for note in table.all_notes)
    assert "+100.0 %" in map(cell_text, table.rows[0])


def test_table_shows_the_interval_of_a_change_of_random_results() -> None:
    runs = [repeats(9.9e6, 10e6, 10.1e6), repeats(19.9e6, 20e6, 20.1e6)]
    document = view([Compared("a", "x"), Compared("b", "y")], [], compare(runs, [GOODPUT]))
    (table,) = [block for block in document.blocks if isinstance(block, Table)]
    cells = dict(zip([column.title for column in table.columns], table.rows[0], strict=True))
    # Each mean has a variance of 0.01 / 3 (Mbit/s)²; the t quantile for 4 degrees of freedom is 8.61.
    assert cell_text(cells["Change"]) == "+100.0 % ±7.0 %"
    assert any("±" in note for note in table.all_notes)


def sentence(*runs: list[Outcome]) -> str:
    return view([Compared("a", "x"), Compared("b", "y")], [], compared(*runs)).sentence


def test_sentence_agrees_with_its_numbers() -> None:
    one, two = [outcome(1e6)], [outcome(1e6), outcome(1e6, flow="g")]
    assert sentence(one, one) == "the only result does not differ by more than chance explains"
    assert sentence(one, two) == "the only common result does not differ by more than chance explains"
    assert sentence(two, two) == "none of 2 results differs by more than chance explains"
    assert sentence(one, [outcome(2e6, lost=1)]) == (
        "the only result differs by more than chance explains; of its signals 1 is better and 1 is worse"
    )
    assert sentence(two, [outcome(2e6), outcome(2e6, flow="g")]) == (
        "2 of 2 results differ by more than chance explains; of their signals 2 are better"
    )


def test_more_loss_is_worse() -> None:
    (one,) = compared([outcome(1e6, lost=1)], [outcome(1e6, lost=5)]).differences
    assert (one.signal, one.verdict) == (LOSS, "worse")
    assert one.change == pytest.approx(4.0)


def test_a_run_names_a_result_that_others_lack() -> None:
    one = [outcome(1e6), outcome(1e6, flow="g"), outcome(1e6, variant="u")]
    found = compared(one, [outcome(1e6), outcome(1e6, variant="w")])
    document = view([Compared("a", "x"), Compared("b", "y")], [], found)
    assert [block.text for block in document.blocks if isinstance(block, Prose)] == [
        "run a: x; 2 results that not all runs have, such as `g` at `v`, simulate",
        "run b: y; 1 result that not all runs have, that of `f` at `w`, simulate",
    ]


def test_values_that_one_run_sweeps_have_their_unit(program: Program, testbed_file: Path) -> None:
    text = testbed_file.read_text()
    for most in ("4 kB", "5 kB"):
        testbed_file.write_text(text.replace('to = "4 kB"', f'to = "{most}"'))
        program("run", testbed_file.name, "--engine", "limit", "--variant", "plain")
    for runs in (ids(program), ids(program)[::-1]):
        assert "`stream` at `plain`, traffic.stream.message = 5 kB, limit" in program("compare", *runs).stdout


def test_results_of_one_run_only_are_counted_and_not_compared() -> None:
    found = compared([outcome(1e6), outcome(1e6, flow="g")], [outcome(2e6), outcome(1e6, variant="w")])
    assert (found.common, [len(alone) for alone in found.alone]) == (1, [1, 1])
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
    before, after, change = [cell for cell in goodputs if isinstance(cell, dict)]
    assert before["unit"] == after["unit"] == "bit/s"
    assert change["share"] == pytest.approx(after["value"] / before["value"] - 1)
    assert change["share"] < 0


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


def test_more_repeats_of_one_run_hide_nothing() -> None:
    base, other = repeats(10e6, 10.1e6, 10.2e6), repeats(14e6, 14.1e6, 14.2e6)
    more = repeats(14e6, 14.1e6, 14.2e6, 13.9e6, 14.3e6)
    equal, unequal = compared(base, other), compared(base, more)
    assert equal.differences == unequal.differences != ()
    assert compared(more, base).differences != ()


def test_interval_of_a_factor_is_a_factor() -> None:
    runs = [repeats(1e6, 1.01e6, 0.99e6), repeats(25e6, 26e6, 24e6)]
    document = view([Compared("a", "x"), Compared("b", "y")], [], compare(runs, [GOODPUT]))
    (table,) = [block for block in document.blocks if isinstance(block, Table)]
    cells = dict(zip([column.title for column in table.columns], table.rows[0], strict=True))
    # Variances of 1e8 / 3 and 1e12 / 3 (bit/s)²; the t quantile for 2.0004 degrees of freedom is 31.6.
    assert cell_text(cells["Change"]) == "25-fold ±18.2"
