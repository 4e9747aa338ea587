"""Delay beside goodput and loss: exact values, one row per point, and a table that fits."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from msgspec.structs import asdict, replace
from rich.console import Console

import engpass
from conftest import TESTBED, Cli
from engpass.cli.summary import summary
from engpass.report import render
from engpass.store import RunRecord
from engpass.types.outcome import Delays, FlowOutcome, Outcome, Quantiles
from engpass.types.plan import Drawing
from report_kyoto import Record, outcome

FIGURES = ("min", "p50", "p90", "p99", "p999", "max")

PATH_45_MS: dict[str, Any] = {
    "name": "A path of 45 ms",
    "host": {"a": {}, "b": {}},
    "link": {"long": {"ends": ["a", "b"], "medium": "ethernet-10g", "delay": "45 ms"}},
    "traffic": {
        "probe": {
            "kind": "udp-stream",
            "from": "a",
            "to": "b",
            "message": "1000 B",
            "rate": "1 Mbit/s",
        }
    },
    "run": {"duration": "2 s"},
}


def test_no_quantile_of_a_path_of_45_ms_is_below_45_ms() -> None:
    result = engpass.load(PATH_45_MS).run(["simulate"])
    (delay,) = (one.flows["probe"].delay_s for one in result.outcomes)
    assert delay is not None
    # A frame of 1054 bytes, preamble included, on a line of 10 Gbit/s.
    expected = 45e-3 + 1054 * 8 / 10e9
    assert list(asdict(delay.network).values()) == pytest.approx([expected] * 7, abs=1e-12)


def header(shown: str) -> list[str]:
    (line,) = (line for line in shown.splitlines() if line.startswith("┃"))
    return [cell.strip() for cell in line.strip("┃").split("┃")]


def test_summary_leaves_out_columns_to_fit_into_100_characters(cli: Cli) -> None:
    (cli.directory / "lan.toml").write_text(TESTBED)
    shown = cli("run", "lan.toml").stdout
    assert header(shown) == [
        "Variant",
        "traffic.stream.message",
        "Goodput",
        "Loss",
        "Delay p50",
        "Delay p99",
        "Limit",
    ]
    assert re.search(
        r"^no room for Offered and Error: `engpass export \w+` has all columns$", shown, re.MULTILINE
    )
    assert max(len(line) for line in shown.splitlines() if line.startswith("│")) <= 100
    narrow = cli("run", "lan.toml", "--set", "traffic.stream.message=1 kB").stdout
    assert header(narrow)[:4] == ["Variant", "Goodput", "Error", "Offered"]
    assert "no room" not in narrow


def test_limits_alone_have_no_delay_columns(cli: Cli) -> None:
    (cli.directory / "lan.toml").write_text(TESTBED)
    shown = cli("run", "lan.toml", "--engine", "limit").stdout
    assert not any(column.startswith("Delay") for column in header(shown))
    assert "idle delay: a message takes" in cli("limit", "lan.toml").stdout


class Shelf:
    """A store of outcomes at their positions."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        self.outcomes = outcomes

    def read_outcomes(self, _run: object, ranges: list[range] | None = None) -> list[tuple[int, Outcome]]:
        wanted = {position for one in ranges or [range(len(self.outcomes))] for position in one}
        return [(at, one) for at, one in enumerate(self.outcomes) if at in wanted]


def two_engines() -> list[Outcome]:
    """Two repeats of `simulate` with delays, and two of `measure`, which gives no one-way delays."""
    flow = FlowOutcome(kind="udp-stream", goodput_bit_per_s=20e6, offered_bit_per_s=20e6)
    simulated = [
        replace(flow, delay_s=Delays(network=Quantiles(min=s, p50=s, p90=s, p99=s, p99_9=s, max=s)))
        for s in (10e-3, 30e-3)
    ]
    return [
        *(outcome("free", "simulate", repeat, {}, {"stream": one}) for repeat, one in enumerate(simulated)),
        *(outcome("free", "measure", repeat, {}, {"stream": flow}) for repeat in range(2)),
    ]


def test_summary_folds_repeats_and_leaves_unknown_delays_blank() -> None:
    record = RunRecord(
        id="0",
        name="Two engines",
        source="two.toml",
        text="",
        overrides=[],
        engines=["simulate", "measure"],
        variants=["free"],
        axes=(),
        repeats=2,
        topology=Drawing(),
        environment={},
        created="",
        points_total=4,
        points_done=4,
        status="done",
    )
    out = Console(file=io.StringIO(), width=160)
    summary(Shelf(two_engines()), record, out)  # type: ignore[arg-type]
    shown = out.file.getvalue()  # type: ignore[attr-defined]
    place = header(shown).index("Delay p50")
    rows = [
        [cell.strip() for cell in line.strip("│").split("│")] for line in shown.splitlines() if "│" in line
    ]
    assert [(row[1], *row[place : place + 2]) for row in rows] == [
        ("simulate", "20 ms", "20 ms"),
        ("measure", "", ""),
    ]


def test_export_contains_every_delay_figure(cli: Cli) -> None:
    (cli.directory / "lan.toml").write_text(TESTBED)
    cli("run", "lan.toml")
    rows = list(csv.DictReader(io.StringIO(cli("export").stdout)))
    for row in rows:
        delays = [row[f"delay_{figure}_s"] for figure in FIGURES]
        if row["engine"] == "limit":
            assert delays == [""] * 6
            assert float(row["idle_delay_s"]) > 0
        else:
            assert [float(one) for one in delays] == sorted(map(float, delays))


def test_report_shows_delays_only_where_known() -> None:
    record = Record(
        engines=["simulate", "measure"], variants=["free"], repeats=2, points_total=4, points_done=4
    )
    page = render(record, two_engines())
    section = page[page.index('<h2 id="points">') :]
    assert re.search(r'Delay p50 <span class="unit">ms</span>', section)
    simulated, measured = re.findall(r"<tr><td[^>]*>free.*</tr>", section)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in (simulated, measured)]
    assert cells[0][-3:-1] == ["20", "20"]
    assert cells[1][-3:-1] == ["", ""], "no delay is known, not a delay of 0"
    bare = render(record, two_engines()[2:])
    assert "Delay p50" not in bare
