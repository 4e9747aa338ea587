"""Words for figures."""

from __future__ import annotations

from engpass import say


def test_lateness_of_nothing_is_no_lateness() -> None:
    found = {"packets": 0, "p50_ns": 0, "p99_ns": 0, "p999_ns": 0, "max_ns": 0}
    assert say.lateness(found) == "no packet was carried yet"
    assert say.lateness({}) == "no packet was carried yet"
    told = say.lateness({**found, "packets": 7, "p50_ns": 12_000, "max_ns": 2_000_000})
    assert told == "packets are late: half by 12 us, 99 % by 0 us, 99.9 % by 0 us, at most 2 ms"
