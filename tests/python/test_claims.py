"""Claims: every check with curves that hold and curves that fail, and the claims file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from engpass.campaign import Axis, AxisValue
from engpass.claims import Campaign, ClaimsError, Judged, counted, judge, read, summed
from engpass.claims.checks import CHECKS, Verdict
from engpass.claims.expectation import expectation, heading
from engpass.claims.missing import NoDataError
from engpass.claims.quantity import Quantity, say, say_range
from engpass.types.outcome import (
    VERSION,
    CellCounts,
    Datagrams,
    Delays,
    DirectionOutcome,
    Engine,
    EngineOutcome,
    FlowLimit,
    FlowOutcome,
    Ledger,
    LinkOutcome,
    NodeOutcome,
    Outcome,
    Quantiles,
    Stage,
    SweptValue,
    Tcp,
)

KB = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

Rows = dict[str, list[float]]
"""Goodput in Mbit/s over `KB`, by variant."""

HEAD = 'title = "T"\nreference = "R"\ntext = "T"\n'
BREAKS = 'breaks = { "run.seed" = "2" }\n'
BODY = '[[claim]]\nid = "c"\nstatement = "S"\nsource = "s"\nkind = "derived"\n' + BREAKS


def outcome(
    variant: str,
    flows: Mapping[str, FlowOutcome],
    *,
    engine: Engine = "simulate",
    repeat: int = 0,
    sweep: Mapping[str, SweptValue] | None = None,
    links: Mapping[str, LinkOutcome] | None = None,
) -> Outcome:
    return Outcome(
        version=VERSION,
        variant=variant,
        engine=engine,
        repeat=repeat,
        seed=1,
        sweep=dict(sweep or {}),
        flows=dict(flows),
        links=dict(links or {}),
    )


def flow(bit_per_s: float, lost: int = 0) -> FlowOutcome:
    counts = Datagrams(sent=1000, received=1000 - lost, lost=lost)
    return FlowOutcome(
        kind="udp-stream", goodput_bit_per_s=bit_per_s, offered_bit_per_s=bit_per_s, datagrams=counts
    )


def limit(*stages: Stage, idle_delay_s: float | None = None) -> FlowOutcome:
    known = FlowLimit(stages=list(stages), candidates=[], idle_delay_s=idle_delay_s)
    return FlowOutcome(kind="udp-stream", goodput_bit_per_s=1.0, offered_bit_per_s=1.0, limit=known)


def outcomes(rows: Rows, lost: Rows | None = None, repeats: int = 1) -> list[Outcome]:
    return [
        outcome(
            variant,
            {"stream": flow(mbit * 1e6, int((lost or {}).get(variant, [0] * 10)[i]))},
            repeat=repeat,
            sweep={"traffic.stream.message": SweptValue(number=kb * 1000)},
        )
        for variant, values in rows.items()
        for i, (kb, mbit) in enumerate(zip(KB, values, strict=True))
        for repeat in range(repeats)
    ]


AXIS = Axis("traffic.stream.message", tuple(AxisValue(f"{kb} kB", kb * 1000.0, "B") for kb in KB))


def verdict(tmp_path: Path, claim: str, rows: Rows, lost: Rows | None = None) -> Verdict:
    path = tmp_path / "claims.toml"
    path.write_text(f"{HEAD}{BODY}{claim}\n")
    campaign = Campaign([AXIS], outcomes(rows, lost))
    (judged,) = judge(read(path).claims, {"main": campaign})
    assert judged.verdict is not None
    assert judged.to_json()["holds"] is judged.verdict.holds
    assert judged.status == ("holds" if judged.verdict.holds else "fails")
    assert "nan" not in judged.verdict.obtained.lower()
    return judged.verdict


FREE = [7.0, 13.0, 18.0, 21.0, 25.0, 27.0, 29.0, 31.0, 33.0, 25.0]
GONE = [7.0, 13.0, 18.0, 21.0, 1.5, 1.2, 0.5, 0.3, 0.2, 0.6]
FLAT = [7.0, 13.0, 18.0, 21.0, 21.3, 21.5, 21.5, 21.5, 21.5, 21.4]
NONE_LOST = [0.0] * 10

VALUE = 'value = "25 Mbit/s"\ntolerance = "1 %"\ncheck = "value"\nwith = { variant = "v", at = "5 kB" }'
EACH = (
    'value = "v"\nleast = "20 Mbit/s"\nmost = "22.07 Mbit/s"\ncheck = "value"\n'
    'with = { variant = "v", from = "4 kB" }'
)
GREATEST = (
    'value = "33.6 Mbit/s"\ntolerance = "2 %"\ncheck = "value"\n'
    'with = { variant = "v", statistic = "greatest" }'
)
LEAST = 'value = "v"\nleast = "5 Mbit/s"\ncheck = "value"\nwith = { variant = "v", statistic = "least" }'
MEAN = (
    'value = "v"\nmost = "1 Mbit/s"\ncheck = "value"\n'
    'with = { variant = "v", statistic = "mean", from = "7 kB" }'
)
SHARE = (
    'value = "50 %"\ntolerance = "1 %"\ncheck = "value"\n'
    'with = { variant = "v", at = "5 kB", per = "6.25 MB/s" }'
)
RISES = 'value = "v"\ncheck = "rises"\nwith = { variant = "v", from = "1 kB", to = "9 kB" }'
FALL = 'value = "v"\ncheck = "falls"\nwith = { variant = "v", at = "10 kB", by = "5 %" }'
LOSSLESS = 'value = "v"\ncheck = "none"\nwith = { variant = "v", count = "lost", from = "2 kB" }'
CROSSING = (
    'value = "v"\nleast = "4.5 kB"\nmost = "5 kB"\ncheck = "crossing"\n'
    'with = { variant = "v", level = "22 Mbit/s" }'
)
SAME = (
    'value = "v"\ncheck = "same"\nwith = { variant = "v", reference = "free", within = "1 %", to = "4 kB" }'
)
ONSET = (
    'value = "v"\nleast = "5 kB"\nmost = "5 kB"\ncheck = "onset"\n'
    'with = { variant = "v", reference = "free", by = "10 %" }'
)
LEVEL = 'value = "v"\ncheck = "flat"\nwith = { variant = "v", from = "5 kB", within = "2 %" }'
CLIFF = (
    'value = "6.5 kB"\ntolerance = "0.6 kB"\ncheck = "cliff"\n'
    'with = { variant = "v", least = "20 Mbit/s", most = "2 Mbit/s" }'
)
OSCILLATION = (
    'value = "3 kB"\ntolerance = "0.3 kB"\ncheck = "oscillation"\n'
    'with = { variant = "v", by = "5 %", periods = "200 %" }'
)
WAVES = [20.0, 25.0, 30.0, 22.0, 26.0, 31.0, 24.0, 28.0, 32.0, 29.0]
DIPS = (
    'value = "v"\nleast = "20 %"\nmost = "50 %"\ncheck = "dips"\n'
    'with = { variant = "v", below = "15 Mbit/s", from = "3 kB", deepest = "6 Mbit/s", '
    'highest = "20 Mbit/s" }'
)
HOLES = [7.0, 13.0, 18.0, 21.0, 3.0, 21.5, 21.5, 2.0, 21.5, 21.5]
MORE = (
    'value = "v"\ncheck = "more-dips"\n'
    'with = { variant = "v", after = "flat free", below = "15 Mbit/s", from = "3 kB" }'
)
RATIO = (
    'value = "v"\ncheck = "mean-ratio"\n'
    'with = { variant = "v", reference = "gone", least = "500 %", from = "8 kB" }'
)
OVER = [21.5] * 6 + [9.0, 3.0, 1.0, 0.5]
OVER_LOST = [0.0] * 6 + [10.0, 90.0, 90.0, 90.0]


Case = tuple[str, list[float], list[float], str]

HOLDS: list[Case] = [
    (VALUE, FREE, NONE_LOST, "25.00 Mbit/s"),
    (EACH, FLAT, [9.0] * 10, "21.00 to 21.50 Mbit/s"),
    (GREATEST, FREE, NONE_LOST, "33.00 Mbit/s at 9 kB"),
    (LEAST, FREE, NONE_LOST, "7.00 Mbit/s at 1 kB"),
    (MEAN, GONE, NONE_LOST, "0.400 Mbit/s on average"),
    (SHARE, FREE, NONE_LOST, "50.00 %"),
    (RISES, FREE, NONE_LOST, "7.00 to 33.00 Mbit/s"),
    (FALL, FREE, NONE_LOST, "33.00 Mbit/s to 25.00 Mbit/s"),
    (LOSSLESS, FREE, [5.0] + [0.0] * 9, "0 of 9,000 lost"),
    (CROSSING, FREE, NONE_LOST, "5 kB: 21.00 Mbit/s before, 25.00 Mbit/s there"),
    (SAME, GONE, NONE_LOST, "0.0 % difference at 1 kB"),
    (ONSET, GONE, NONE_LOST, "5 kB: 1.50 Mbit/s, `free` 25.00 Mbit/s"),
    (LEVEL, FLAT, NONE_LOST, "21.30 to 21.50 Mbit/s"),
    (CLIFF, OVER, OVER_LOST, "6.50 kB; 21.50 Mbit/s before, 500.00 kbit/s at 10 kB"),
    (OSCILLATION, WAVES, NONE_LOST, "3.00 kB; 2 periods, from 3 kB to 9 kB"),
    (DIPS, HOLES, NONE_LOST, "25.00 %: 2 of 8 sizes; 2.00 to 21.50 Mbit/s"),
    (MORE, HOLES, NONE_LOST, "0, 0, 2 of 8 sizes"),
    (RATIO, HOLES, NONE_LOST, "15.00 Mbit/s against 366.67 kbit/s"),
]

FAILS: list[Case] = [
    (VALUE, [*FREE[:4], 24.7, *FREE[5:]], NONE_LOST, "24.70 Mbit/s"),
    (EACH, HOLES, NONE_LOST, "2.00 to 21.50 Mbit/s"),
    (EACH, [*FLAT[:9], 22.2], NONE_LOST, "21.00 to 22.20 Mbit/s"),
    (GREATEST, [*FREE[:9], 35.0], NONE_LOST, "35.00 Mbit/s at 10 kB"),
    (GREATEST, [20.0] * 10, NONE_LOST, "20.00 Mbit/s at 1 kB"),
    (LEAST, [*FREE[:9], 4.9], NONE_LOST, "4.90 Mbit/s at 10 kB"),
    (MEAN, [*GONE[:9], 4.0], NONE_LOST, "1.25 Mbit/s on average"),
    (SHARE, GONE, NONE_LOST, "3.00 %"),
    (RISES, [7.0, 13.0, 13.0, *FREE[3:]], NONE_LOST, "13.00 Mbit/s at 3 kB, after 13.00 Mbit/s"),
    (RISES, [*FREE[:8], 30.0, 25.0], NONE_LOST, "30.00 Mbit/s at 9 kB, after 31.00 Mbit/s"),
    (FALL, sorted(FREE), NONE_LOST, "31.00 Mbit/s to 33.00 Mbit/s"),
    (FALL, [*FREE[:9], 32.5], NONE_LOST, "33.00 Mbit/s to 32.50 Mbit/s"),
    (LOSSLESS, FREE, [0.0] * 9 + [1.0], "1 of 9,000 lost"),
    (CROSSING, [*FREE[:4], 21.5, *FREE[5:]], NONE_LOST, "6 kB: 21.50 Mbit/s before, 27.00 Mbit/s there"),
    (CROSSING, [20.0] * 10, NONE_LOST, "never passes 22 Mbit/s"),
    (CROSSING, [23.0] * 10, NONE_LOST, "never passes 22 Mbit/s"),
    (SAME, [7.0, 12.0, *FREE[2:]], NONE_LOST, "7.7 % difference at 2 kB"),
    (ONSET, FREE, NONE_LOST, "no fall"),
    (ONSET, [*FREE[:5], *GONE[5:]], NONE_LOST, "6 kB: 1.20 Mbit/s, `free` 27.00 Mbit/s"),
    (ONSET, [*FREE[:2], *GONE[4:], 0.1, 0.1], NONE_LOST, "3 kB: 1.50 Mbit/s, `free` 18.00 Mbit/s"),
    (LEVEL, FREE, NONE_LOST, "25.00 to 33.00 Mbit/s"),
    (LEVEL, [0.0] * 10, NONE_LOST, "0 bit/s"),
    (CLIFF, [21.5] * 10, NONE_LOST, "no loss at any point"),
    (CLIFF, OVER, [1.0] * 10, "losses at the first point"),
    (CLIFF, OVER, [0.0] * 9 + [1.0], "9.50 kB; 1.00 Mbit/s before, 500.00 kbit/s at 10 kB"),
    (CLIFF, [*OVER[:9], 2.5], OVER_LOST, "6.50 kB; 21.50 Mbit/s before, 2.50 Mbit/s at 10 kB"),
    (CLIFF, [19.0, *OVER[1:]], OVER_LOST, "6.50 kB; 19.00 Mbit/s before, 500.00 kbit/s at 10 kB"),
    (OSCILLATION, FREE, NONE_LOST, "fewer than two maxima"),
    (OSCILLATION, [*WAVES[:8], 28.0, 29.0], NONE_LOST, "3.00 kB; 1 periods, from 3 kB to 6 kB"),
    (
        OSCILLATION,
        [1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0, 9.0, 1.0, 1.0],
        NONE_LOST,
        "2.00 kB; 3 periods, from 2 kB to 8 kB",
    ),
    (
        OSCILLATION,
        [9.0, 9.5, 1.0, 2.0, 3.0, 4.0, 9.0, 1.0, 9.0, 1.0],
        NONE_LOST,
        "3.50 kB; 2 periods, from 2 kB to 9 kB, uneven",
    ),
    (DIPS, FLAT, NONE_LOST, "0.00 %: 0 of 8 sizes; 18.00 to 21.50 Mbit/s"),
    (DIPS, [*HOLES[:6], 7.0, 7.0, 7.0, 7.0], NONE_LOST, "62.50 %: 5 of 8 sizes; 3.00 to 21.50 Mbit/s"),
    (DIPS, GONE, NONE_LOST, "75.00 %: 6 of 8 sizes; 0.20 to 21.00 Mbit/s"),
    (
        DIPS,
        [*HOLES[:4], 7.0, 21.5, 21.5, 7.0, 21.5, 21.5],
        NONE_LOST,
        "25.00 %: 2 of 8 sizes; 7.00 to 21.50 Mbit/s",
    ),
    (DIPS, [*[19.0] * 8, 3.0, 3.0], NONE_LOST, "25.00 %: 2 of 8 sizes; 3.00 to 19.00 Mbit/s"),
    (MORE, FLAT, NONE_LOST, "0, 0, 0 of 8 sizes"),
    (MORE.replace("flat free", "flat gone"), HOLES, NONE_LOST, "0, 6, 2 of 8 sizes"),
    (RATIO, [1.0] * 10, NONE_LOST, "1.00 Mbit/s against 366.67 kbit/s"),
]


@pytest.mark.parametrize(
    ("claim", "values", "lost", "obtained"),
    HOLDS,
)
def test_claim_holds_for_matching_curves(
    tmp_path: Path, claim: str, values: list[float], lost: list[float], obtained: str
) -> None:
    rows = {"v": values, "free": FREE, "flat": FLAT, "gone": GONE}
    assert verdict(tmp_path, claim, rows, {"v": lost}) == Verdict(obtained, True)


@pytest.mark.parametrize(
    ("claim", "values", "lost", "obtained"),
    FAILS,
)
def test_claim_does_not_hold_for_other_curves(
    tmp_path: Path, claim: str, values: list[float], lost: list[float], obtained: str
) -> None:
    rows = {"v": values, "free": FREE, "flat": FLAT, "gone": GONE}
    found = verdict(tmp_path, claim, rows, {"v": lost})
    assert found == Verdict(obtained, False)


def test_every_check_has_holding_and_failing_cases() -> None:
    several = {case[0].split('check = "')[1].split('"')[0] for case in TOGETHER}
    assert {case[3] for case in TOGETHER} == {True, False}
    for cases in (HOLDS, FAILS):
        assert {case[0].split('check = "')[1].split('"')[0] for case in cases} | several == set(CHECKS)


TOTAL = (
    'value = "100 Mbit/s"\ntolerance = "1 %"\ncheck = "value"\nwith = { variant = "v", quantity = "total" }'
)
FAIR = (
    'value = "100 %"\ntolerance = "0.5 %"\ncheck = "value"\nwith = { variant = "v", quantity = "fairness" }'
)
TRIP = 'value = "v"\nleast = "20 ms"\nmost = "30 ms"\ncheck = "round-trip"\nwith = { variant = "v" }'
TIMERS = 'value = "v"\ncheck = "none"\nwith = { variant = "v", count = "timeouts" }'

Flow = tuple[float, float | None, int]
"""Goodput in Mbit/s, smoothed round-trip time in ms, timeouts."""

# One list of flows for each repeat; the claims name a flow that is not in the lists.
TOGETHER: list[tuple[str, list[list[Flow]], str, bool]] = [
    (TOTAL, [[(60.0, 20.0, 0), (40.0, 20.0, 0)]], "100.00 Mbit/s", True),
    (TOTAL, [[(60.0, 20.0, 0), (40.0, 20.0, 0)], [(99.0, None, 0)]], "99.50 Mbit/s", True),
    (TOTAL, [[(60.0, 20.0, 0), (38.9, 20.0, 0)]], "98.90 Mbit/s", False),
    (FAIR, [[(50.0, 20.0, 0), (50.0, 20.0, 0)]], "100.00 %", True),
    (FAIR, [[(55.0, 20.0, 0), (45.0, 20.0, 0)]], "99.01 %", False),
    (FAIR, [[(100.0, 20.0, 0), *[(0.0, 20.0, 0)] * 9]], "10.00 %", False),
    (FAIR, [[(0.0, None, 0)]], "cannot be checked: the outcome has no fairness", False),
    (TRIP, [[(1.0, 20.0, 0), (9.0, 29.5, 0)]], "20.00 to 29.50 ms", True),
    (TRIP, [[(1.0, 19.9, 0), (9.0, 29.5, 0)]], "19.90 to 29.50 ms", False),
    (TRIP, [[(1.0, 20.0, 0), (9.0, 30.5, 0)]], "20.00 to 30.50 ms", False),
    (TRIP, [[(1.0, None, 0)]], "cannot be checked: the outcome has no shortest round trip", False),
    (TIMERS, [[(1.0, 20.0, 0), (9.0, 20.0, 0)]], "0 timeouts", True),
    (TIMERS, [[(1.0, 20.0, 0), (9.0, 20.0, 1)], [(1.0, 20.0, 2)]], "3 timeouts", False),
]


@pytest.mark.parametrize(("claim", "repeats", "obtained", "holds"), TOGETHER)
def test_checks_judge_all_flows_of_a_run_together(
    tmp_path: Path, claim: str, repeats: list[list[Flow]], obtained: str, holds: bool
) -> None:
    made = [
        outcome(
            "v",
            {
                f"f{number}": FlowOutcome(
                    kind="tcp-stream",
                    goodput_bit_per_s=mbit * 1e6,
                    offered_bit_per_s=mbit * 1e6,
                    tcp=Tcp(smoothed_rtt_s=None if trip is None else trip / 1e3, timeouts=timeouts),
                )
                for number, (mbit, trip, timeouts) in enumerate(flows)
            },
            repeat=repeat,
        )
        for repeat, flows in enumerate(repeats)
    ]
    path = tmp_path / "claims.toml"
    path.write_text(f"{HEAD}{BODY}{claim}\n")
    (judged,) = judge(read(path).claims, {"main": Campaign([], made)})
    assert judged.verdict == Verdict(obtained, holds, judged="cannot be checked" not in obtained)


def test_limit_has_no_timeouts() -> None:
    limited = outcome("v", {"f": limit()}, engine="limit")
    with pytest.raises(NoDataError, match="no timeouts"):
        Campaign([], [limited]).curve("limit", "v", "f", "timeouts")


@pytest.mark.parametrize(
    "claim",
    [
        VALUE,
        EACH,
        GREATEST,
        RISES,
        FALL,
        LOSSLESS,
        CROSSING,
        SAME,
        ONSET,
        LEVEL,
        OSCILLATION,
        DIPS,
        MORE.replace("flat free", "free"),
        RATIO,
        TOTAL,
        FAIR,
        TRIP,
        TIMERS,
    ],
)
def test_a_claim_without_data_does_not_hold(tmp_path: Path, claim: str) -> None:
    found = verdict(tmp_path, claim, {"w": FREE, "free": FREE})
    assert (found.holds, found.judged) == (False, False)
    assert found.obtained == "cannot be checked: no point of simulate, variant v"


def test_fall_check_needs_a_point_before_it(tmp_path: Path) -> None:
    found = verdict(tmp_path, FALL.replace('at = "10 kB"', 'at = "1 kB"'), {"v": FREE})
    assert found == Verdict("cannot be checked: no point before this value", False, judged=False)


def test_curve_is_the_mean_of_the_repeats() -> None:
    rows = outcomes({"v": [1.0] * 10}) + outcomes({"v": [3.0] * 10})
    curve = Campaign([AXIS], rows).curve("simulate", "v", "stream", "goodput")
    assert {sample.value for sample in curve.samples} == {2e6}
    sent = Campaign([AXIS], rows).curve("simulate", "v", "stream", "sent")
    assert sent.at(1000).value == 2000


def test_the_limit_has_stages_and_no_losses() -> None:
    limited = limit(Stage(name="cell headers", rate_bit_per_s=2.0))
    campaign = Campaign([], [outcome("v", {"stream": limited}, engine="limit")])
    assert campaign.curve("limit", "v", "stream", "cell headers").samples[0].value == 2.0
    for quantity in ("lost", "sent", "no stage"):
        with pytest.raises(NoDataError):
            campaign.curve("limit", "v", "stream", quantity)


def test_each_delay_quantity_reads_its_own_figure() -> None:
    times = Quantiles(min=1.0, p50=2.0, p90=3.0, p99=4.0, p99_9=5.0, max=6.0)
    delayed = replace(flow(1.0), delay_s=Delays(network=times))
    campaign = Campaign(
        [],
        [outcome("v", {"f": delayed}), outcome("v", {"f": limit(idle_delay_s=0.5)}, engine="limit")],
    )
    told = [
        campaign.curve("limit" if name == "idle delay" else "simulate", "v", "f", name).samples[0].value
        for name in ("idle delay", *(f"delay {one}" for one in ("min", "p50", "p90", "p99", "p999", "max")))
    ]
    assert told == [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for engine, name in (("simulate", "idle delay"), ("limit", "delay p99")):
        with pytest.raises(NoDataError, match=f"the engine does not report `{name}`"):
            campaign.curve(engine, "v", "f", name)


GOOD = BODY + 'value = "1 Mbit/s"\n'
MEASURED = (
    '[[claim]]\nid = "c"\nstatement = "S"\nkind = "measured"\nsection = "4.1"\nprinted = "1Mbps"\n'
    'published = "1 Mbit/s"\ncheck = "rises"\nwith = { variant = "v" }\n' + BREAKS
)
OPEN = '[[claim]]\nid = "c"\nstatement = "S"\nsource = "s"\nkind = "open"\ndecided_by = "a measurement"\n'
RISING = 'check = "rises"\nwith = { variant = "v" }\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "there are no claims"),
        ("titel = 1", 4, "unknown key `titel`"),
        (GOOD, 4, "`check` is missing"),
        (
            GOOD + 'check = "valeu"\nwith = { variant = "v" }',
            11,
            "unknown check `valeu`\nhelp: did you mean `value`?",
        ),
        (
            GOOD + 'check = "value"\nwith = { variant = "v" }',
            4,
            "it needs one description of the accepted values",
        ),
        (GOOD + 'check = "value"\ntolerance = "1 %"', 4, "needs the argument `variant`"),
        (
            GOOD + 'check = "value"\ntolerance = "1 %"\nleast = "1 kB"\nwith = { variant = "v" }',
            12,
            "it needs one description of the accepted values",
        ),
        (
            GOOD + 'check = "value"\ntolerance = "1 kB"\nwith = { variant = "v" }',
            12,
            "is not a tolerance for `1 Mbit/s`",
        ),
        (GOOD + 'check = "value"\ntolerance = "1 parsec"\nwith = { variant = "v" }', 12, "is not a quantity"),
        (
            GOOD + 'check = "value"\ntolerance = "1 %"\nwith = { variant = "v", top = "1 B" }',
            13,
            "no argument `top`",
        ),
        (
            GOOD + 'check = "value"\ntolerance = "1 %"\nwith = { variant = "v", statistic = "median" }',
            13,
            "`statistic` is `median`; use one of each, mean, greatest, least",
        ),
        (
            GOOD + 'check = "none"\nwith = { variant = "v", count = "found" }',
            12,
            "`count` is `found`; use one of lost, timeouts",
        ),
        (
            GOOD + 'check = "value"\nleast = "2 B"\nmost = "1 B"\nwith = { variant = "v" }',
            13,
            "`2 B` to `1 B` is not an interval",
        ),
        (GOOD + 'check = "rises"\ntolerance = "1 %"\nwith = { variant = "v" }', 12, "compares no number"),
        (GOOD + 'check = "rises"\nwith = { variant = 1 }', 12, "the value of `variant` is not text"),
        (GOOD + 'check = "rises"\nengine = 1\nwith = { variant = "v" }', 12, "`engine` is not text"),
        (
            GOOD + 'check = "rises"\ncampaign = "x"\nwith = { variant = "v" }',
            12,
            "unknown campaign `x`",
        ),
        (2 * (GOOD + RISING), 14, "two claims have the id `c`"),
        (GOOD.replace("derived", "felt") + RISING, 8, "unknown kind `felt`"),
        ("[campaign.x]\nset = { a = 1 }", 5, "the value of `a` is not text"),
        ("[campaign.x]\nvariants = []", 5, "`variants` is not a list of names"),
        ("[campaign.x]\nrepeats = true", 5, "`repeats` is not a whole number"),
        ("campaign = { x = 1 }", 1, "it is not a table"),
        ("claim = [1]", 1, "it is not a table"),
        ("notes = [1]", 4, "`notes` is not a list of sentences"),
        # Values that the source prints.
        (
            GOOD.replace("derived", "measured") + RISING,
            4,
            "a measured claim needs the value that its source prints\nhelp: give the `section`",
        ),
        (MEASURED.replace('section = "4.1"\n', ""), 4, "a printed value needs `section`"),
        (MEASURED.replace('printed = "1Mbps"\n', ""), 4, "a printed value needs `printed`"),
        (
            MEASURED.replace("1Mbps", "it is about 1 Mbps"),
            9,
            "`printed` is `it is about 1 Mbps`, neither a number nor one word",
        ),
        (MEASURED.replace("1Mbps", "単調に増大する"), 9, "neither a number nor one word"),
        (MEASURED.replace("measured", "prediction"), 10, "a prediction has no published value"),
        (MEASURED + 'value = "1 Mbit/s"', 14, "it has both `published` and `value`"),
        # Expectations.
        (GOOD + RISING + "expected = false", 4, "`reason` is missing"),
        (
            GOOD + RISING + 'reason = "r"',
            13,
            "`reason` says why a claim is expected to fail, and needs `expected = false`",
        ),
        (GOOD + RISING + 'expected = "no"', 13, "`expected` is not `true` or `false`"),
        (
            GOOD + RISING + 'decided_by = "d"',
            13,
            "`decided_by` is for open claims: a claim of kind `derived` is decided by its check",
        ),
        (OPEN.replace('decided_by = "a measurement"\n', ""), 4, "`decided_by` is missing"),
        (OPEN + RISING, 10, "an open claim has no `check`"),
        (OPEN + BREAKS, 10, "`breaks` needs a claim that is expected to hold"),
        # Changes that break a claim.
        (GOOD.replace(BREAKS, "") + RISING, 4, "it needs `breaks`, one change with which it no longer holds"),
        (GOOD.replace('"run.seed" = "2"', '"a.b" = "1", "c.d" = "2"') + RISING, 9, "more than one key"),
        (GOOD.replace('"2"', "2") + RISING, 9, "the value of `run.seed` is not text"),
        (
            GOOD + RISING + 'expected = false\nreason = "r"',
            9,
            "`breaks` needs a claim that is expected to hold",
        ),
    ],
)
def test_claims_file_error_names_line_cause_and_remedy(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(HEAD + text)
    with pytest.raises(ClaimsError) as error:
        read(path)
    assert message in str(error.value)
    assert error.value.message.startswith(f"{path}:{line}: ")
    assert error.value.help


def test_printed_value_needs_its_source_text(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(HEAD.replace('text = "T"\n', "") + MEASURED)
    with pytest.raises(ClaimsError, match="does not name the source text"):
        read(path)


def kinds(tmp_path: Path, *claims: str) -> list[Judged]:
    """Claims with running ids, judged on `FREE`."""
    path = tmp_path / "claims.toml"
    path.write_text(HEAD + "".join(c.replace('id = "c"', f'id = "c{i}"') for i, c in enumerate(claims)))
    return judge(read(path).claims, {"main": Campaign([AXIS], outcomes({"v": FREE, "w": sorted(FREE)}))})


KNOWN = GOOD.replace(BREAKS, "") + RISING + 'expected = false\nreason = "r"\n'


def test_claims_are_counted_by_kind_and_status(tmp_path: Path) -> None:
    to_9 = RISING.replace('"v"', '"v", to = "9 kB"')
    judged = kinds(
        tmp_path,
        OPEN,
        GOOD + to_9,
        GOOD + RISING,
        KNOWN,
        KNOWN.replace(RISING, to_9),
        MEASURED.replace(RISING, to_9),
        GOOD.replace("derived", "prediction") + to_9,
        GOOD.replace("derived", "estimate") + to_9,
    )
    assert [one.claim.kind for one in judged] == [
        "measured",
        *["derived"] * 4,
        "estimate",
        "prediction",
        "open",
    ]
    none = {"fails": 0, "known_difference": 0, "holds_after_all": 0, "open": 0}
    assert counted(judged) == {
        "measured": {"claims": 1, "holds": 1, **none},
        "derived": {
            "claims": 4,
            "holds": 1,
            **none,
            "fails": 1,
            "known_difference": 1,
            "holds_after_all": 1,
        },
        "estimate": {"claims": 1, "holds": 1, **none},
        "prediction": {"claims": 1, "holds": 1, **none},
        "open": {"claims": 1, "holds": 0, **none, "open": 1},
    }
    assert summed([one.status for one in judged]) == "5 of 8 claims hold, 1 known difference, 1 fails, 1 open"
    assert summed(["holds"]) == "1 of 1 claims hold"


def test_claim_json_contains_its_expectation(tmp_path: Path) -> None:
    measured, known, unknown = (one.to_json() for one in kinds(tmp_path, MEASURED, KNOWN, OPEN))
    assert (measured["published"], measured["section"], measured["printed"]) == ("1 Mbit/s", "4.1", "1Mbps")
    assert (measured["value"], measured["source"]) == (None, None)
    assert (measured["expected"], measured["breaks"]) == (True, {"run.seed": "2"})
    assert (known["published"], known["value"], known["breaks"]) == (None, "1 Mbit/s", None)
    told = (known["holds"], known["expected"], known["status"], known["reason"])
    assert told == (False, False, "known difference", "r")
    told = (unknown["holds"], unknown["expected"], unknown["status"], unknown["decided_by"])
    assert told == (None, None, "open", "a measurement")


def test_unpublished_value_names_its_origin() -> None:
    assert expectation("measured", "33.6 Mbit/s", None) == "33.6 Mbit/s"
    assert expectation("derived", "22.10 Mbit/s", None) == "22.10 Mbit/s"
    assert expectation("derived", None, "21.55 Mbit/s") == "computed: 21.55 Mbit/s"
    assert expectation("estimate", None, "a part") == "estimated: a part"
    assert expectation("prediction", None, "its fair share") == "predicted: its fair share"
    assert expectation("open", None, None) == ""


@pytest.mark.parametrize(
    ("stated", "expected", "head"),
    [
        (True, False, "Stated"),
        (False, True, "Expected"),
        (True, True, "Stated or expected"),
        (False, False, "Expected"),
    ],
)
def test_column_without_published_values_is_headed_expected(stated: bool, expected: bool, head: str) -> None:
    assert heading(stated=stated, expected=expected) == head


def direction(start: str, end: str, cells: int, utilisation: float, **accounts: int) -> DirectionOutcome:
    named = {name.replace("_", " "): amount for name, amount in accounts.items()}
    return DirectionOutcome(
        from_=start,
        to=end,
        utilisation=utilisation,
        cells=CellCounts(capacity=1000, sent=cells, clp1=0, efci=0, lost=0),
        ledger=Ledger(units_per_bit=13, capacity=sum(accounts.values()), accounts=named),
    )


LINKS = {
    "wire": LinkOutcome(
        directions=[
            direction("a", "b", 192, 0.18, encapsulation=832, AAL5_trailers=832),
            direction("b", "a", 7, 0.5, encapsulation=1),
        ]
    )
}


@pytest.mark.parametrize(
    ("quantity", "value", "unit"),
    [
        ("cells", 192, "cells"),
        ("utilisation", 0.18, ""),
        ("encapsulation", 8, "B"),
        ("encapsulation + AAL5 trailers", 16, "B"),
        # The ledger omits empty accounts.
        ("padding", 0, "B"),
    ],
)
def test_a_link_has_cells_utilisation_and_accounts(quantity: str, value: float, unit: str) -> None:
    curve = Campaign([], [outcome("v", {}, links=LINKS)]).curve("simulate", "v", "f", quantity, link="wire")
    assert (curve.samples[0].value, curve.unit) == (value, unit)


NODES = {
    "pc": NodeOutcome(engines={"cpu": EngineOutcome(load=0.25)}),
    "router": NodeOutcome(engines={"forwarding": EngineOutcome(load=0.5), "wan": EngineOutcome(load=0.75)}),
}


@pytest.mark.parametrize(("node", "load"), [("pc", 0.25), ("router", 0.5), ("router.wan", 0.75)])
def test_a_node_has_the_load_of_its_engines(node: str, load: float) -> None:
    campaign = Campaign([], [replace(outcome("v", {}), nodes=NODES)])
    curve = campaign.curve("simulate", "v", "f", "load", node=node)
    assert (curve.samples[0].value, curve.unit) == (load, "")


@pytest.mark.parametrize(
    ("node", "quantity", "cause"),
    [
        ("router.lan", "load", "no engine `router.lan`"),
        ("bridge", "load", "no engine `bridge`"),
        ("pc", "goodput", "`goodput` is no signal of engines"),
    ],
)
def test_missing_engine_data_is_an_error(node: str, quantity: str, cause: str) -> None:
    campaign = Campaign([], [replace(outcome("v", {}), nodes=NODES)])
    with pytest.raises(NoDataError, match=cause):
        campaign.curve("simulate", "v", "f", quantity, node=node)


def test_a_claim_reads_a_link_or_a_node(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(HEAD + GOOD + RISING + 'link = "wire"\nnode = "pc"\n')
    with pytest.raises(ClaimsError, match="both `link` and `node`"):
        read(path)


def test_missing_link_data_is_an_error() -> None:
    link = LinkOutcome(directions=[DirectionOutcome(from_="a", to="b"), DirectionOutcome(from_="b", to="a")])
    campaign = Campaign([], [outcome("v", {}, links={"wire": link})])
    for name, quantity, said in (
        ("rope", "cells", "no link `rope`"),
        ("wire", "cells", "does not report `cells`"),
        ("wire", "padding", "has no ledger"),
    ):
        with pytest.raises(NoDataError, match=said):
            campaign.curve("simulate", "v", "f", quantity, link=name)


def test_unreadable_claims_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClaimsError, match="cannot be read"):
        read(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ClaimsError, match="not UTF-8"):
        read(tmp_path / "binary.toml")
    (tmp_path / "text.toml").write_text("= 1")
    with pytest.raises(ClaimsError, match="is not TOML"):
        read(tmp_path / "text.toml")


def test_tolerance_of_a_share_is_in_percentage_points(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    body = (
        GOOD.replace("1 Mbit/s", "16.41 %")
        + 'check = "value"\ntolerance = "0.05 %"\nwith = { variant = "v" }'
    )
    path.write_text(HEAD + body)
    measure = read(path).claims[0].measure
    assert measure is not None
    accept = measure.accept
    assert accept is not None
    assert (round(accept.low, 9), round(accept.high, 9), accept.text) == (0.1636, 0.1646, "±0.05 %")
    assert 0.1646 in accept
    assert 0.16461 not in accept


def test_claim_accepts_a_single_bound(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(f'{HEAD}{GOOD}check = "value"\nleast = "155 Mbit/s"\nwith = {{ variant = "v" }}')
    measure = read(path).claims[0].measure
    assert measure is not None
    assert measure.accept is not None
    assert 1e12 in measure.accept
    assert 154e6 not in measure.accept
    assert measure.tolerance == "at least 155 Mbit/s"


@pytest.mark.parametrize(
    ("text", "value", "unit", "decimals"),
    [
        ("22.10 Mbit/s", 22_100_000.0, "bit/s", 2),
        ("16.41 %", 0.1641, "", 2),
        ("64 kB", 64_000.0, "B", 0),
        ("1 KiB", 1024.0, "B", 0),
        ("20 ms", 0.02, "s", 0),
        ("384 cells", 384.0, "cells", 0),
    ],
)
def test_quantity_is_parsed_with_unit_and_decimals(text: str, value: float, unit: str, decimals: int) -> None:
    quantity = Quantity.parse(text)
    assert (quantity.value, quantity.unit, quantity.decimals) == (value, unit, decimals)


@pytest.mark.parametrize("text", ["", "9", "kB", "nan Mbit/s", "1e9 B", "9 kb", "inf %"])
def test_invalid_quantity_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity.parse(text)


@example(0.9995, "s")
@example(900.0, "s")
@example(1.0, "cells")
@given(st.floats(0, 1e12), st.sampled_from(["bit/s", "B", "", "s", "cells"]))
def test_printed_value_has_its_unit_and_precision(value: float, unit: str) -> None:
    said = say(value, unit)
    number, _, name = said.partition(" ")
    assert name
    factor = Quantity.parse(f"1 {name.split()[-1]}").value
    said_value = 0.0 if number == "<" else float(number.replace(",", "")) * factor
    # Two decimals or three digits, one decimal for per cent, none for bits and bytes.
    tolerance = 0.51 if name in ("bit/s", "B") else 0.051 if unit == "" else 0.0051
    assert math.isclose(said_value, value, abs_tol=tolerance * factor, rel_tol=0.005)
    # One is a cell, a range is of cells.
    assert say_range(0, value, unit).split()[-1] == ("cells" if name == "cell" else name.split()[-1])


def test_nan_and_infinity_are_never_printed() -> None:
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not a valid result"):
            say(value, "bit/s")
