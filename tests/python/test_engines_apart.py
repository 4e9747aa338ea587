"""Engines side by side: differences, marks, and points that are invalid because of lateness."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from engpass.report import render
from engpass.results.engine_difference import apart
from engpass.types.outcome import Drop, Engine, FlowOutcome, MeasuredPoint, Outcome, Place
from report_kyoto import Record, outcome

LATE = "0.1 % of the packets were 2 ms late or more"


def test_differences_are_relative_to_simulate() -> None:
    found = {
        one.engine: one
        for one in apart({"limit": 120.0, "simulate": 100.0, "emulate": 94.0, "measure": 104.0})
    }
    assert found["simulate"].share is None
    assert found["emulate"].share == pytest.approx(-0.06)
    assert {name for name, one in found.items() if one.far} == {"emulate"}


def test_exceeded_limit_is_marked() -> None:
    assert [one.engine for one in apart({"limit": 90.0, "simulate": 100.0}) if one.far] == ["limit"]


def test_zero_goodputs_are_not_marked_as_apart() -> None:
    assert not any(one.far for one in apart({"simulate": 0.0, "emulate": 0.0}))
    assert any(one.far for one in apart({"simulate": 0.0, "emulate": 5.0}))
    # A single datagram against none at the other engine is not marked.
    assert not any(one.far for one in apart({"limit": 22e6, "simulate": 0.0, "emulate": 37e3}))
    assert apart({}) == []


def four(late: bool) -> tuple[Record, list[Outcome]]:
    """One point of each engine."""
    rates: dict[Engine, float] = {"limit": 25e6, "simulate": 20e6, "emulate": 18e6, "measure": 20.1e6}
    outcomes = []
    for engine, rate in rates.items():
        flow = FlowOutcome(kind="udp-stream", goodput_bit_per_s=rate, offered_bit_per_s=rate)
        outcomes.append(outcome("free", engine, 0, {}, {"stream": flow}))
    if late:
        outcomes[2] = replace(outcomes[2], valid=False, invalid=LATE)
    record = Record(variants=["free"], engines=list(rates), repeats=1, points_total=4, points_done=4)
    return record, outcomes


def test_report_shows_four_engines_side_by_side() -> None:
    page = render(*four(late=False))
    section = page[page.index('<h2 id="engines">') :]
    section = section[: section.index("</section>")]
    assert "1 of 2 goodputs differ from <code>simulate</code> by more than 5.0 %." in section
    assert '<span class="mark">-10.0 % !</span>' in section
    assert section.count(" !</span>") == 1
    assert "invalid" not in section
    assert "emulated in real time and measured" in page
    assert re.findall(r">([a-z]+)</td>", section)[1::2] == ["simulate", "emulate", "measure"]
    assert "(<code>emulate</code> has 18" in page[: page.index('<h2 id="results">')]


def test_report_shows_the_notes_of_real_hosts() -> None:
    record, outcomes = four(late=False)
    notes = ["TCP of `dl` has `bbr`"]
    measured = MeasuredPoint(at="1997-11-05T10:00:00Z", took_s=1.0, carrier="model", notes=notes)
    outcomes[2] = replace(outcomes[2], measured=measured)
    assert '<p class="muted">emulate: TCP of <code>dl</code> has <code>bbr</code></p>' in render(
        record, outcomes
    )


def test_report_names_invalid_points() -> None:
    page = render(*four(late=True))
    assert f"1 emulated point is invalid: {LATE}" in page
    assert page.count('<span class="badge bad">invalid</span>') == 3, "in the sentence and in both tables"


def test_losses_of_two_engines_are_not_added_up() -> None:
    record, outcomes = four(late=False)
    place = Place(node="s", link="out", to="b")
    drop = Drop(place=place, cause="buffer full", flow="stream", cells=7, datagrams=3)
    outcomes[1:3] = [replace(one, drops=[drop]) for one in outcomes[1:3]]
    page = render(record, outcomes)
    section = page[page.index('<h2 id="losses">') :]
    section = section[: section.index("</section>")]
    assert section.count('class="number">7</td>') == 2
    assert ">emulate</td>" in section


def test_report_of_one_engine_has_no_comparison() -> None:
    record, outcomes = four(late=False)
    assert 'id="engines"' not in render(record, outcomes[:2]), "the limit stands beside every goodput anyway"
