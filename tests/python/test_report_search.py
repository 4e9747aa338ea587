"""The pages about a search and about a path."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import Cli
from engpass.report.page import render_search
from engpass.report.search import bounds
from engpass.report.search_page import drawings
from engpass.store import RunRecord
from engpass.types.plan import Drawing
from engpass.views.search import sentence
from test_search import NARROW


def record(method: str, result: dict[str, Any] | None, trials: list[dict[str, Any]]) -> RunRecord:
    return RunRecord(
        name="a <search>",
        source="a.toml",
        text="[host.<a>]",
        overrides=[("run.seed", "1")],
        engines=["measure"],
        variants=["base"],
        axes=(),
        repeats=1,
        topology=Drawing(),
        traffic="u",
        method=method,
        settings={"from": "a", "to": "b", "settle_s": None, "most_bit_per_s": 10_000_000, "trial_s": 2.0},
        environment={"version": "1", "memory_bytes": 1 << 30},
        created="2026-11-22T09:00:00+00:00",
        id="abc",
        points_total=len(trials),
        points_done=len(trials),
        status="partial" if result is None else "done",
        result=result,
        trials=trials,
    )


def trial(load: float, lost: int, *, kept: bool = True, valid: bool = True) -> dict[str, Any]:
    loss = lost / 1000
    return {
        "load_bit_per_s": load,
        "duration_s": 1.0,
        "sent": 1000,
        "asked": 1000,
        "lost": lost,
        "loss": loss,
        "forwarded_bit_per_s": load * (1 - loss),
        "kept": kept,
        "valid": valid,
    }


TRIALS = [trial(2e7, 400), trial(1e7, 0), trial(3e7, 500, kept=False), trial(1.5e7, 0, valid=False)]
GOAL = {"loss_ratio": 0.0, "final_trial_s": 1.0, "duration_sum_s": 21.0, "exceed_ratio": 0.5}
LATE = {"departures": ["trials last <1 s>"], "invalid_trials": 1, "trials": 4, "trial_seconds": 4.0}
REGULAR = {
    "goal": GOAL,
    "regular": True,
    "why": "",
    "lower_bit_per_s": 1e7,
    "upper_bit_per_s": 2e7,
    "conditional_throughput_bit_per_s": 1e7,
}
IRREGULAR = {**REGULAR, "regular": False, "why": "no <bound>", "lower_bit_per_s": None}
IRREGULAR["conditional_throughput_bit_per_s"] = None


@pytest.mark.parametrize(
    ("method", "result", "said", "found"),
    [
        (
            "mlrsearch",
            {"goals": [REGULAR, IRREGULAR], **LATE},
            "Upper bound",
            "Without loss `u` carries 10.00 Mbit/s of payload.",
        ),
        (
            "rfc2544",
            {"finished": True, "throughput_bit_per_s": 1e7, "lowest_lossy_bit_per_s": 2e7, **LATE},
            "20.00 Mbit/s has loss",
            "10.00 Mbit/s of payload without loss",
        ),
        (
            "rfc2544",
            {"finished": False, "throughput_bit_per_s": None, "lowest_lossy_bit_per_s": None, **LATE},
            "none so far; the search ended early",
            "All tried loads of `u` have loss",
        ),
        (
            "frame-loss",
            {"highest_clean_bit_per_s": 1e7, **LATE},
            "largest tried load without loss, in steps of 10 % of the largest load: 10.00 Mbit/s",
            "The largest tried load of `u` without loss is 10.00 Mbit/s of payload.",
        ),
    ],
)
def test_every_search_method_has_a_page(method: str, result: dict[str, Any], said: str, found: str) -> None:
    made = record(method, result, TRIALS)
    page = render_search(made)
    assert said in page
    assert found in sentence(made)
    for name in ("loss", "received", "steps"):
        assert f'id="figure-{name}"' in page
    # The texts of all four outcomes of a trial.
    for word in ("loss", "no loss", "could not send this load", "too slow"):
        assert word in page
    assert "<dt>most</dt><dd>10.00 Mbit/s</dd>" in page
    assert "<dt>trial</dt><dd>2 s</dd>" in page
    assert "not conforming" in page
    assert "too late in 1 of 4 trials" in page
    # Text of a file is never markup.
    assert "<search>" not in page
    assert "<bound>" not in page
    assert "<1 s>" not in page
    drawn = json.dumps(drawings(made)["steps"].to_dict())
    assert all(name in drawn for name, _ in bounds(made))


def test_page_of_an_unfinished_search_says_so() -> None:
    page = render_search(record("mlrsearch", None, TRIALS[:1]))
    assert "has not ended" in page
    assert 'id="figure-steps"' in page
    assert "has not ended" in render_search(record("mlrsearch", None, []))


def test_path_result_has_a_page() -> None:
    transfer = {
        "fraction": 0.5,
        "window_bytes": 25_000,
        "granted_bytes": 26_000,
        "bytes": 2_437_500,
        "seconds": 5.0,
        "rtt_s": 0.032,
        "expected_bit_per_s": 4e6,
        "achieved_bit_per_s": 3.9e6,
        "finished": False,
        "transfer_time_ratio": 2.5,
        "efficiency": 0.98,
        "efficiencies": [0.97, 0.99],
        "buffer_delay": 0.28,
    }
    result = {
        "mtu_bytes": 1400,
        "rtt_s": 0.025,
        "rtt_p50_s": 0.026,
        "bandwidth_bit_per_s": 1e7,
        "bandwidth_known": True,
        "bdp_bytes": 31_250,
        "ideal_bit_per_s": 9.6e6,
        "connections": 2,
        "transfers": [transfer],
        "invalid_runs": 0,
        "departures": ["transfers of 5 s"],
    }
    made = record("rfc6349", result, [])
    page = render_search(made)
    parts = ("1,400 B", "given", "25,000 B", "26,000 B", "2.50", "28.0 %", "ended early")
    for part in (*parts, "98.0 % (97.0 % to 99.0 %)"):
        assert part in page, part
    assert "not conforming" in page
    assert 'id="figure-windows"' in page
    assert "31,250 B" in sentence(made)
    assert "has not ended" in render_search(record("rfc6349", None, []))


def test_report_draws_a_search_by_its_id(cli: Cli) -> None:
    (cli.directory / "narrow.toml").write_text(NARROW)
    given = ("--engine", "simulate", "--method", "frame-loss", "--trial", "1 s", "--json")
    last = json.loads(cli("search", "narrow.toml", *given).stdout.splitlines()[-1])
    told = cli("report", last["id"][:6], "-o", "page.html", "--figures", "pictures")
    assert "report of" in told.stderr
    page = (cli.directory / "page.html").read_text(encoding="utf-8")
    assert "Loss against load" in page
    names = {file.name for file in (cli.directory / "pictures").iterdir()}
    assert {"loss.svg", "received.png", "steps.png"} <= names
    (cli.directory / "claims.json").write_text("[]")
    assert "has no claims" in cli("report", last["id"], "--claims", "claims.json", code=2).stderr
