"""Claims: every check with curves that hold and curves that do not, and the file that names them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engpass.campaign import Axis, AxisValue
from engpass.claims import Campaign, ClaimsError, judge, read
from engpass.claims.checks import CHECKS, Verdict
from engpass.claims.curves import NoDataError
from engpass.claims.quantity import Quantity, say, say_range

KB = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

Rows = dict[str, list[float]]
"""Goodput in Mbit/s over `KB`, by variant."""

HEAD = 'title = "T"\nreference = "R"\n'


def outcomes(rows: Rows, lost: Rows | None = None, repeats: int = 1) -> list[dict[str, Any]]:
    return [
        {
            "engine": "simulate",
            "variant": variant,
            "repeat": repeat,
            "sweep": {"traffic.stream.message": kb * 1000},
            "flows": {
                "stream": {
                    "goodput_bit_per_s": mbit * 1e6,
                    "offered_bit_per_s": mbit * 1e6,
                    "sent_datagrams": 1000,
                    "lost_datagrams": int((lost or {}).get(variant, [0] * 10)[i]),
                }
            },
        }
        for variant, values in rows.items()
        for i, (kb, mbit) in enumerate(zip(KB, values, strict=True))
        for repeat in range(repeats)
    ]


AXIS = Axis("traffic.stream.message", tuple(AxisValue(f"{kb} kB", kb * 1000.0, "B") for kb in KB))


def verdict(tmp_path: Path, claim: str, rows: Rows, lost: Rows | None = None) -> Verdict:
    path = tmp_path / "claims.toml"
    body = 'id = "c"\nstatement = "S"\nsource = "s"\nkind = "measured"\n'
    published = "" if "published" in claim else 'published = "p"\n'
    path.write_text(f"{HEAD}[[claim]]\n{body}{published}{claim}\n")
    campaign = Campaign([AXIS], outcomes(rows, lost))
    (judged,) = judge(read(path).claims, {"main": campaign})
    assert judged.to_json()["holds"] is judged.verdict.holds
    assert "nan" not in judged.verdict.obtained.lower()
    return judged.verdict


FREE = [7.0, 13.0, 18.0, 21.0, 25.0, 27.0, 29.0, 31.0, 33.0, 25.0]
GONE = [7.0, 13.0, 18.0, 21.0, 1.5, 1.2, 0.5, 0.3, 0.2, 0.6]
FLAT = [7.0, 13.0, 18.0, 21.0, 21.3, 21.5, 21.5, 21.5, 21.5, 21.4]
NONE_LOST = [0.0] * 10

VALUE = 'published = "25 Mbit/s"\ntolerance = "1 %"\ncheck = "value"\nwith = { variant = "v", at = "5 kB" }'
MAXIMUM = 'published = "33.6 Mbit/s"\ntolerance = "2 %"\ncheck = "maximum"\nwith = { variant = "v" }'
RISES = 'check = "rises"\nwith = { variant = "v", from = "1 kB", to = "9 kB" }'
FALL = 'check = "first-fall"\nwith = { variant = "v", at = "10 kB", by = "5 %" }'
LOSSLESS = 'check = "lossless"\nwith = { variant = "v", from = "2 kB" }'
CROSSING = 'accept = ["4.0 kB", "4.3 kB"]\ncheck = "crossing"\nwith = { variant = "v", level = "22 Mbit/s" }'
SAME = 'check = "same"\nwith = { variant = "v", reference = "free", within = "1 %", to = "4 kB" }'
ONSET = 'check = "onset"\nwith = { variant = "v", reference = "free", level = "22 Mbit/s", by = "10 %" }'
COLLAPSE = (
    'check = "collapse"\nwith = { variant = "v", reference = "free", from = "8 kB", most = "1.1 Mbit/s" }'
)
PLATEAU = (
    'accept = ["20.5 Mbit/s", "22.1 Mbit/s"]\ncheck = "plateau"\nwith = { variant = "v", from = "5 kB" }'
)
LEVEL = 'check = "flat"\nwith = { variant = "v", from = "5 kB", within = "2 %" }'
CLIFF = (
    'published = "6.5 kB"\ntolerance = "0.6 kB"\ncheck = "cliff"\n'
    'with = { variant = "v", least = "20 Mbit/s", most = "2 Mbit/s" }'
)
WITHIN = 'accept = ["20 Mbit/s", "22.07 Mbit/s"]\ncheck = "within"\nwith = { variant = "v", from = "4 kB" }'
OSCILLATION = (
    'published = "3 kB"\ntolerance = "0.3 kB"\ncheck = "oscillation"\n'
    'with = { variant = "v", by = "5 %", periods = "200 %" }'
)
WAVES = [20.0, 25.0, 30.0, 22.0, 26.0, 31.0, 24.0, 28.0, 32.0, 29.0]
DIPS = (
    'accept = ["20 %", "50 %"]\ncheck = "dips"\n'
    'with = { variant = "v", below = "15 Mbit/s", from = "3 kB", deepest = "6 Mbit/s", '
    'highest = "20 Mbit/s" }'
)
HOLES = [7.0, 13.0, 18.0, 21.0, 3.0, 21.5, 21.5, 2.0, 21.5, 21.5]
MORE = (
    'check = "more-dips"\nwith = { variant = "v", after = "flat free", below = "15 Mbit/s", from = "3 kB" }'
)
RATIO = 'check = "mean-ratio"\nwith = { variant = "v", reference = "gone", least = "500 %", from = "8 kB" }'
OVER = [21.5] * 6 + [9.0, 3.0, 1.0, 0.5]
OVER_LOST = [0.0] * 6 + [10.0, 90.0, 90.0, 90.0]


Case = tuple[str, list[float], list[float], str]

HOLDS: list[Case] = [
    (VALUE, FREE, NONE_LOST, "25.00 Mbit/s"),
    (MAXIMUM, FREE, NONE_LOST, "33.00 Mbit/s at 9 kB"),
    (RISES, FREE, NONE_LOST, "7.00 to 33.00 Mbit/s"),
    (FALL, FREE, NONE_LOST, "10 kB: 33.00 Mbit/s to 25.00 Mbit/s"),
    (LOSSLESS, FREE, [5.0] + [0.0] * 9, "0 of 9,000 lost"),
    (CROSSING, FREE, NONE_LOST, "4.25 kB"),
    (SAME, GONE, NONE_LOST, "0.00 % apart at 1 kB"),
    (ONSET, GONE, NONE_LOST, "5 kB; crossing at 4.25 kB"),
    (COLLAPSE, GONE, NONE_LOST, "at most 0.60 Mbit/s, at 10 kB"),
    (PLATEAU, FLAT, NONE_LOST, "21.30 to 21.50 Mbit/s; 0 of 6,000 lost"),
    (LEVEL, FLAT, NONE_LOST, "21.30 to 21.50 Mbit/s"),
    (CLIFF, OVER, OVER_LOST, "6.50 kB; 21.50 Mbit/s before, 0.50 Mbit/s at 10 kB"),
    (WITHIN, FLAT, [9.0] * 10, "21.00 to 21.50 Mbit/s"),
    (OSCILLATION, WAVES, NONE_LOST, "3.00 kB; 2 periods, from 3 kB to 9 kB"),
    (DIPS, HOLES, NONE_LOST, "25.00 %: 2 of 8 sizes; 2.00 to 21.50 Mbit/s"),
    (MORE, HOLES, NONE_LOST, "0, 0, 2 of 8 sizes"),
    (RATIO, HOLES, NONE_LOST, "15.00 Mbit/s to 0.37 Mbit/s"),
]

FAILS: list[Case] = [
    (VALUE, [*FREE[:4], 24.7, *FREE[5:]], NONE_LOST, "24.70 Mbit/s"),
    (MAXIMUM, [*FREE[:9], 35.0], NONE_LOST, "35.00 Mbit/s at 10 kB"),
    (MAXIMUM, [20.0] * 10, NONE_LOST, "20.00 Mbit/s at 1 kB"),
    (RISES, [7.0, 13.0, 13.0, *FREE[3:]], NONE_LOST, "13.00 Mbit/s at 3 kB, 13.00 Mbit/s before it"),
    (RISES, [*FREE[:8], 30.0, 25.0], NONE_LOST, "30.00 Mbit/s at 9 kB, 31.00 Mbit/s before it"),
    (FALL, sorted(FREE), NONE_LOST, "no fall"),
    (FALL, [7.0, 6.9, *FREE[2:]], NONE_LOST, "2 kB: 7.00 Mbit/s to 6.90 Mbit/s"),
    (FALL, [*FREE[:9], 32.5], NONE_LOST, "10 kB: 33.00 Mbit/s to 32.50 Mbit/s"),
    (LOSSLESS, FREE, [0.0] * 9 + [1.0], "1 of 9,000 lost"),
    (CROSSING, [*FREE[:4], 21.9, *FREE[5:]], NONE_LOST, "5.02 kB"),
    (CROSSING, [20.0] * 10, NONE_LOST, "never passes 22 Mbit/s"),
    (CROSSING, [23.0] * 10, NONE_LOST, "never passes 22 Mbit/s"),
    (SAME, [7.0, 12.0, *FREE[2:]], NONE_LOST, "7.69 % apart at 2 kB"),
    (ONSET, FREE, NONE_LOST, "no fall; crossing at 4.25 kB"),
    (ONSET, [*FREE[:5], *GONE[5:]], NONE_LOST, "6 kB; crossing at 4.25 kB"),
    (ONSET, [*FREE[:2], *GONE[4:], 0.1, 0.1], NONE_LOST, "3 kB; crossing at 4.25 kB"),
    (COLLAPSE, [*GONE[:9], 1.2], NONE_LOST, "at most 1.20 Mbit/s, at 10 kB"),
    (
        COLLAPSE,
        [*GONE[:5], 1.6, *GONE[6:]],
        NONE_LOST,
        "at most 0.60 Mbit/s, at 10 kB; rises again at 6 kB",
    ),
    (COLLAPSE, FREE, NONE_LOST, "at most 33.00 Mbit/s, at 9 kB; never half of `free`"),
    (PLATEAU, [*FLAT[:9], 20.4], NONE_LOST, "20.40 to 21.50 Mbit/s; 0 of 6,000 lost"),
    (PLATEAU, [*FLAT[:9], 22.2], NONE_LOST, "21.30 to 22.20 Mbit/s; 0 of 6,000 lost"),
    (PLATEAU, FLAT, [0.0] * 9 + [1.0], "21.30 to 21.50 Mbit/s; 1 of 6,000 lost"),
    (LEVEL, FREE, NONE_LOST, "25.00 to 33.00 Mbit/s"),
    (LEVEL, [0.0] * 10, NONE_LOST, "0.00 Mbit/s"),
    (CLIFF, [21.5] * 10, NONE_LOST, "no loss anywhere"),
    (CLIFF, OVER, [1.0] * 10, "losses from the start"),
    (CLIFF, OVER, [0.0] * 9 + [1.0], "9.50 kB; 1.00 Mbit/s before, 0.50 Mbit/s at 10 kB"),
    (CLIFF, [*OVER[:9], 2.5], OVER_LOST, "6.50 kB; 21.50 Mbit/s before, 2.50 Mbit/s at 10 kB"),
    (CLIFF, [19.0, *OVER[1:]], OVER_LOST, "6.50 kB; 19.00 Mbit/s before, 0.50 Mbit/s at 10 kB"),
    (WITHIN, HOLES, NONE_LOST, "2.00 to 21.50 Mbit/s"),
    (WITHIN, [*FLAT[:9], 22.2], NONE_LOST, "21.00 to 22.20 Mbit/s"),
    (OSCILLATION, FREE, NONE_LOST, "no two maxima"),
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
    (RATIO, [1.0] * 10, NONE_LOST, "1.00 Mbit/s to 0.37 Mbit/s"),
]


@pytest.mark.parametrize(
    ("claim", "values", "lost", "obtained"),
    HOLDS,
)
def test_what_holds(
    tmp_path: Path, claim: str, values: list[float], lost: list[float], obtained: str
) -> None:
    rows = {"v": values, "free": FREE, "flat": FLAT, "gone": GONE}
    assert verdict(tmp_path, claim, rows, {"v": lost}) == Verdict(obtained, True)


@pytest.mark.parametrize(
    ("claim", "values", "lost", "obtained"),
    FAILS,
)
def test_what_does_not_hold(
    tmp_path: Path, claim: str, values: list[float], lost: list[float], obtained: str
) -> None:
    rows = {"v": values, "free": FREE, "flat": FLAT, "gone": GONE}
    found = verdict(tmp_path, claim, rows, {"v": lost})
    assert found == Verdict(obtained, False)


def test_every_check_is_tried_both_ways() -> None:
    several = {case[0].split('check = "')[1].split('"')[0] for case in TOGETHER}
    assert {case[3] for case in TOGETHER} == {True, False}
    for cases in (HOLDS, FAILS):
        assert {case[0].split('check = "')[1].split('"')[0] for case in cases} | several == set(CHECKS)


TOTAL = 'published = "100 Mbit/s"\ntolerance = "1 %"\ncheck = "total"\nwith = { variant = "v" }'
FAIR = 'published = "100 %"\ntolerance = "0.5 %"\ncheck = "fairness"\nwith = { variant = "v" }'
TRIP = 'accept = ["20 ms", "30 ms"]\ncheck = "round-trip"\nwith = { variant = "v" }'
TIMERS = 'check = "no-timeout"\nwith = { variant = "v" }'

Flow = tuple[float, float | None, int]
"""Goodput in Mbit/s, smoothed round trip in ms, timeouts."""

# One list of flows for each repeat; the claims are about a flow that is not among them.
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
def test_all_flows_together(
    tmp_path: Path, claim: str, repeats: list[list[Flow]], obtained: str, holds: bool
) -> None:
    made = [
        {
            "engine": "simulate",
            "variant": "v",
            "repeat": repeat,
            "sweep": {},
            "flows": {
                f"f{number}": {
                    "goodput_bit_per_s": mbit * 1e6,
                    "smoothed_rtt_s": None if trip is None else trip / 1e3,
                    "timeouts": timeouts,
                }
                for number, (mbit, trip, timeouts) in enumerate(flows)
            },
        }
        for repeat, flows in enumerate(repeats)
    ]
    path = tmp_path / "claims.toml"
    body = 'id = "c"\nstatement = "S"\nsource = "s"\nkind = "derived"\n'
    published = "" if "published" in claim else 'published = "p"\n'
    path.write_text(f"{HEAD}[[claim]]\n{body}{published}{claim}\n")
    (judged,) = judge(read(path).claims, {"main": Campaign([], made)})
    assert judged.verdict == Verdict(obtained, holds)


def test_timeouts_are_no_quantity_of_the_limit() -> None:
    limit = {"engine": "limit", "variant": "v", "sweep": {}, "flows": {"f": {"goodput_bit_per_s": 1.0}}}
    with pytest.raises(NoDataError, match="no timeouts"):
        Campaign([], [limit]).curve("limit", "v", "f", "timeouts")


@pytest.mark.parametrize(
    "claim",
    [
        VALUE,
        MAXIMUM,
        RISES,
        FALL,
        LOSSLESS,
        CROSSING,
        SAME,
        ONSET,
        COLLAPSE,
        PLATEAU,
        WITHIN,
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
    assert (found.holds, found.obtained) == (False, "cannot be checked: no point of simulate, variant v")


def test_the_mean_of_the_repeats_counts() -> None:
    rows = outcomes({"v": [1.0] * 10}) + outcomes({"v": [3.0] * 10})
    curve = Campaign([AXIS], rows).curve("simulate", "v", "stream", "goodput")
    assert {sample.value for sample in curve.samples} == {2e6}
    sent = Campaign([AXIS], rows).curve("simulate", "v", "stream", "sent")
    assert sent.at(1000).value == 2000


def test_the_limit_has_stages_and_no_losses() -> None:
    flows = {
        "stream": {"goodput_bit_per_s": 1.0, "stages": [{"name": "cell headers", "rate_bit_per_s": 2.0}]}
    }
    campaign = Campaign([], [{"engine": "limit", "variant": "v", "sweep": {}, "flows": flows}])
    assert campaign.curve("limit", "v", "stream", "cell headers").samples[0].value == 2.0
    for quantity in ("lost", "sent", "no stage"):
        with pytest.raises(NoDataError):
            campaign.curve("limit", "v", "stream", quantity)


GOOD = '[[claim]]\nid = "c"\nstatement = "S"\nsource = "s"\nkind = "measured"\npublished = "1 Mbit/s"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no claims"),
        ("= 1", "is not TOML"),
        ("titel = 1", "unknown key `titel`"),
        (GOOD, "it has no `check`"),
        (
            GOOD + 'check = "valeu"\nwith = { variant = "v" }',
            "there is no check `valeu`\nhelp: did you mean `value`?",
        ),
        (GOOD + 'check = "value"\nwith = { variant = "v" }', "it needs what is accepted, once"),
        (GOOD + 'check = "value"\ntolerance = "1 %"', "needs the argument `variant`"),
        (GOOD + 'check = "value"\ntolerance = "1 kB"\nwith = { variant = "v" }', "is no tolerance of"),
        (GOOD + 'check = "value"\ntolerance = "1 parsec"\nwith = { variant = "v" }', "is no quantity"),
        (
            GOOD + 'check = "value"\ntolerance = "1 %"\nwith = { variant = "v", top = "1 B" }',
            "no argument `top`",
        ),
        (GOOD + 'check = "value"\naccept = ["2 B", "1 B"]\nwith = { variant = "v" }', "is no interval"),
        (GOOD + 'check = "rises"\ntolerance = "1 %"\nwith = { variant = "v" }', "compares no number"),
        (GOOD + 'check = "rises"\nwith = { variant = 1 }', "the argument `variant` is no text"),
        (GOOD + 'check = "rises"\nengine = 1\nwith = { variant = "v" }', "`engine` is not text"),
        (GOOD + 'check = "rises"\ncampaign = "x"\nwith = { variant = "v" }', "there is no campaign `x`"),
        (2 * (GOOD + 'check = "rises"\nwith = { variant = "v" }\n'), "two claims have this id"),
        (
            GOOD.replace("measured", "felt") + 'check = "rises"\nwith = { variant = "v" }',
            "there is no kind `felt`",
        ),
        ("[campaign.x]\nset = { a = 1 }", "the value of `a` is no text"),
        ("[campaign.x]\nvariants = []", "`variants` is no list of names"),
        ("[campaign.x]\nrepeats = true", "`repeats` is not a whole number"),
        ("campaign = { x = 1 }", "it is no table"),
        ("claim = [1]", "it is no table"),
    ],
)
def test_a_file_that_is_not_in_order(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(HEAD + text)
    with pytest.raises(ClaimsError) as error:
        read(path)
    assert message in str(error.value)
    assert str(path) in error.value.message
    assert error.value.help


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ClaimsError, match="cannot be read"):
        read(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ClaimsError, match="not UTF-8"):
        read(tmp_path / "binary.toml")


def test_a_tolerance_of_a_share_counts_in_points_of_it(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    body = (
        GOOD.replace("1 Mbit/s", "16.41 %")
        + 'check = "value"\ntolerance = "0.05 %"\nwith = { variant = "v" }'
    )
    path.write_text(HEAD + body)
    accept = read(path).claims[0].accept
    assert accept is not None
    assert (round(accept.low, 9), round(accept.high, 9), accept.text) == (0.1636, 0.1646, "±0.05 %")
    assert 0.1646 in accept
    assert 0.16461 not in accept


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
def test_quantities(text: str, value: float, unit: str, decimals: int) -> None:
    quantity = Quantity.parse(text)
    assert (quantity.value, quantity.unit, quantity.decimals) == (value, unit, decimals)


@pytest.mark.parametrize("text", ["", "9", "kB", "nan Mbit/s", "1e9 B", "9 kb", "inf %"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        Quantity.parse(text)


@given(st.floats(0, 1e12), st.sampled_from(["bit/s", "B", "", "s", "cells"]))
def test_a_value_is_said_with_its_unit(value: float, unit: str) -> None:
    said = say(value, unit)
    number, _, name = said.partition(" ")
    assert name
    factor = Quantity.parse(f"1 {name}").value
    assert math.isclose(float(number.replace(",", "")) * factor, value, abs_tol=0.0051 * factor, rel_tol=1e-9)
    assert say_range(0, value, unit).endswith(name)


def test_what_is_no_number_is_never_said() -> None:
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="no result"):
            say(value, "bit/s")
