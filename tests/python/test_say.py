"""Formatting of values."""

from __future__ import annotations

import pytest

from engpass import formatting
from engpass.claims.checks.base import Interval
from engpass.claims.quantity import say as say_in_a_claim
from engpass.types.units import UNITS
from engpass.units import unit_for


def test_lateness_without_packets_says_that_none_were_carried() -> None:
    found = {"packets": 0, "p50_ns": 0, "p99_ns": 0, "p999_ns": 0, "max_ns": 0}
    assert formatting.lateness(found) == "no packets yet"
    assert formatting.lateness({}) == "no packets yet"
    told = formatting.lateness({**found, "packets": 7, "p50_ns": 12_000, "max_ns": 2_000_000})
    assert told == "lateness of packets: 50 % within 12 us, 99 % within 0 s, 99.9 % within 0 s, at most 2 ms"


@pytest.mark.parametrize(
    ("bit_per_s", "said"),
    [
        (0, "0 bit/s"),
        (999, "999 bit/s"),
        (269_000, "269.00 kbit/s"),
        (999_996, "1.00 Mbit/s"),
        (155_520_000, "155.52 Mbit/s"),
        (1.6e12, "1.60 Tbit/s"),
    ],
)
def test_rate_has_two_decimals_and_its_largest_unit(bit_per_s: float, said: str) -> None:
    assert formatting.rate(bit_per_s) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (12e-6, "12 us"),
        (999.9e-6, "1 ms"),
        (0.0141234, "14.1 ms"),
        (5e-8, "50 ns"),
        (75, "75 s"),
        (150, "150 s"),
        (600, "10 min"),
        (5400, "90 min"),
        (4 * 3600, "4 h"),
        (10_000, "2.78 h"),
        (36 * 3600, "36 h"),
        (86_400, "1 d"),
        (300_000, "3.47 d"),
    ],
)
def test_duration_has_three_digits_and_its_largest_unit(seconds: float, said: str) -> None:
    assert formatting.duration(seconds) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0.0 %"),
        (0.00001, "< 0.01 %"),
        (0.00009, "< 0.01 %"),
        (0.0001, "0.01 %"),
        (0.0004, "0.04 %"),
        (0.00054, "0.054 %"),
        (0.001, "0.1 %"),
        (-0.0028, "-0.28 %"),
        (0.00994, "0.99 %"),
        (0.00996, "1.0 %"),
        (0.0277, "2.8 %"),
        (1, "100.0 %"),
    ],
)
def test_small_share_is_not_printed_as_zero(share: float, said: str) -> None:
    assert formatting.percent(share) == said


@pytest.mark.parametrize(
    ("value", "base", "said"),
    [
        (1.6e12, "bit/s", "1.60 Tbit/s"),
        (12e-6, "s", "12 us"),
        (0.0004, "", "0.04 %"),
        (16e8, "B/s", "1.60 GB/s"),
    ],
)
def test_terminal_page_and_claims_format_values_alike(value: float, base: str, said: str) -> None:
    """Without one formatter a time of 12 us had four forms: 12 us, 0.012 ms, 12 µs and 12.00 us."""
    assert say_in_a_claim(value, base) == formatting.quantity(value, base) == said
    if base == "s":
        assert formatting.counted("smoothed_rtt_s", value) == unit_for("s", [value]).say(value) == said


def test_obtained_value_has_unit_and_decimals_of_its_claim() -> None:
    accept = Interval(0.2e6, 0.3e6, "bit/s", "", 2, "Mbit/s")
    assert accept.say(0.26e6) == "0.260 Mbit/s"
    assert accept.say_range(0.25e6, 0.26e6) == "0.250 to 0.260 Mbit/s"
    assert accept.say_range(0.26e6, 0.26e6) == "0.260 Mbit/s"
    assert Interval(192, 192, "cells", "", 2, "cells").say(192) == "192 cells"


def test_every_displayed_unit_is_accepted_in_files() -> None:
    for base, value in (("bit/s", 1e12), ("B/s", 1e9), ("B", 1e9), ("s", 1e-12)):
        assert unit_for(base, [value]).name in UNITS


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (0.747, 0.0141, "747 → 14.1 ms"),
        (1.11, 0.000332, "1.11 s → 332 us"),
        (0.000332, 1.11, "332 us → 1.11 s"),
        (1.0, 0.1, "1 → 0.1 s"),
        (0.0, 0.002, "0 → 2 ms"),
        (None, 0.002, "none → 2 ms"),
    ],
)
def test_two_times_share_a_unit_unless_they_are_far_apart(
    before: float | None, after: float | None, text: str
) -> None:
    assert formatting.change(before, after, "s") == text


def test_two_rates_share_a_unit_unless_they_are_far_apart() -> None:
    assert formatting.change(6.1e6, 21.8e6, "bit/s") == "6.10 → 21.80 Mbit/s"
    assert formatting.change(21.8e6, 3_000.0, "bit/s") == "21.80 Mbit/s → 3.00 kbit/s"
    assert formatting.change(0.0, 21.8e6, "bit/s") == "0.00 → 21.80 Mbit/s"
    assert formatting.both(0.000332, 1.11, "s") == "332 us to 1.11 s"
    assert formatting.both(0.001, 0.002, "") == "0.1 to 0.2 %"
