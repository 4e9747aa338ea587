"""The report as a file: its texts, its size, and its safety against hostile names."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace

import report_cases as cases
from engpass.report import figures, render, theme
from engpass.report.charts import page_charts
from engpass.report.figures import FIGURES, heat_map
from engpass.results.aggregate import tabulate
from engpass.types.outcome import FlowOutcome, SweptValue, Transfer
from ledgers import with_ledgers
from report_kyoto import MESSAGES, Record, axis, kyoto

CLAIMS: list[dict[str, Any]] = [
    {
        "id": "2",
        "statement": "The plateau at `16 %`",
        "source": "<b>",
        "value": "20.5 to 22.1 Mbit/s",
        "obtained": 21.55,
        "holds": False,
        "kind": "prediction",
    },
    {
        "id": "1",
        "statement": "The free bandwidth by the formula",
        "section": "4.1",
        "printed": "22.10<Mbps>",
        "published": "22.10 Mbit/s",
        "obtained": "22.10 Mbit/s",
        "tolerance": "0.01",
        "holds": True,
        "status": "holds",
        "kind": "derived",
    },
    {
        "id": "3",
        "statement": "A dip",
        "published": "at 16 kB",
        "obtained": "a rise",
        "holds": False,
        "expected": False,
        "status": "known difference",
        "reason": "no cost explains `it`",
        "kind": "derived",
    },
    {"id": "4", "statement": "The buffer", "status": "open", "decided_by": "a data sheet", "kind": "open"},
]


class Reader(HTMLParser):
    """Collects text by section, script elements, and all addresses in attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self._inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "poster", "srcset", "xlink:href"):
                self.addresses.append(value or "")
            if name.startswith("on"):
                self.handlers.append(f"{tag} {name}")
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag in ("script", "style", "h2"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if "script" in self._inside:
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif "style" not in self._inside:
            self.text += data
            if "h2" in self._inside:
                self.headings.append(data)

    def json(self, name: str) -> Any:
        return next(json.loads(text) for attrs, text in self.scripts if attrs.get("id") == name)


def points(page: Reader) -> list[dict[str, str]]:
    text = gzip.decompress(base64.b64decode(page.json("points-data"))).decode()
    return list(csv.DictReader(io.StringIO(text)))


def test_page_sections_are_in_the_documented_order() -> None:
    run, outcomes = kyoto()
    page = Reader(render(run, outcomes, CLAIMS, ["A note of `it`"]))
    assert page.headings == [
        "Results",
        "Claims",
        "Testbed",
        "Points",
        "Bottlenecks",
        "Losses",
        "Environment",
        "Testbed file",
    ]
    assert "4 variants" in page.text
    assert "64 values of the message of stream (1 kB to 64 kB)" in page.text
    assert "1 of 4 claims hold, 1 known difference, 1 fails, 1 open." in page.text
    assert "A note of it" in page.text
    assert "host ss2 limits stream to 33.80 Mbit/s" in page.text
    assert "Example CPU at 2.4 GHz" in page.text
    assert 'output_buffer = "384 cells"' in page.text
    assert set(page.json("page-data")["charts"]["stream"]) == {
        "goodput",
        "loss",
        "offered-received",
        "waterfall",
    }


def test_page_numbers_equal_the_outcomes() -> None:
    run, outcomes = kyoto()
    page = Reader(render(run, outcomes))
    nine = SweptValue(number=9000.0)
    at_nine = [
        o.flows["stream"]
        for o in outcomes
        if (o.variant, o.engine, o.sweep) == ("congested", "simulate", {MESSAGES.path: nine})
    ]
    data = page.json("page-data")["datasets"]["rows0"]
    rows = [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]
    row = next(
        r for r in rows if r["series"] == "congested" and r["engine"] == "simulate" and r["where"] == "9 kB"
    )
    rates = [flow.goodput_bit_per_s / 1e6 for flow in at_nine]
    assert row["goodput_bit_per_s"] == pytest.approx(sum(rates) / len(rates), rel=1e-6)
    assert row["goodput_bit_per_s_low"] == pytest.approx(min(rates), rel=1e-6)
    assert row["goodput_bit_per_s_high"] == pytest.approx(max(rates), rel=1e-6)
    assert row["x"] == 9
    assert row["repeats"] == 5
    counts = [flow.datagrams for flow in at_nine if flow.datagrams is not None]
    assert len(counts) == 5
    lost, sent = (sum(one.lost for one in counts), sum(one.sent for one in counts))
    assert row["loss"] == pytest.approx(100 * lost / sent, rel=1e-6)
    limit = next(
        r for r in rows if r["series"] == "congested" and r["engine"] == "limit" and r["where"] == "9 kB"
    )
    assert limit["goodput_bit_per_s"] == pytest.approx(22.08, abs=0.01)


def test_page_download_contains_every_outcome() -> None:
    run, outcomes = kyoto()
    rows = points(Reader(render(run, outcomes)))
    assert len(rows) == sum(len(o.flows) for o in outcomes)
    figures = ("goodput_bit_per_s", "summary", "sentence")
    assert rows[0] | dict.fromkeys(figures, "") == {
        "point": "0",
        "variant": "free",
        "engine": "limit",
        "repeat": "0",
        "seed": "0",
        "traffic.stream.message": "1000.0",
        "flow": "stream",
        "kind": "udp-stream",
        **{f"delay_{figure}_s": "" for figure in ("min", "mean", "p50", "p90", "p99", "p999", "max")},
        "goodput_bit_per_s": "",
        "offered_bit_per_s": str(outcomes[0].flows["stream"].offered_bit_per_s),
        "sent_datagrams": "",
        "received_datagrams": "",
        "lost_datagrams": "",
        "loss": "",
        "in_flight_datagrams": "",
        "bound_bit_per_s": "",
        "idle_delay_s": "",
        "bottleneck": "host `ss2`",
        "next_bottleneck": "link `receiver`",
        "summary": "",
        "bound_bottleneck": "",
        "bound_summary": "",
        "next": "link `receiver`",
        "sentence": "",
    }


def test_element_ids_of_a_page_are_unique() -> None:
    run, outcomes = cases.swept(["free", "congested"], [cases.BUFFERS, cases.SHARES, cases.WORDS])
    names = re.findall(r'<[^<>]* id="([^"]*)"', render(run, outcomes, CLAIMS).split("<script>", 1)[0])
    assert len(names) > 10
    assert len(names) == len(set(names))


def test_page_of_a_run_is_deterministic() -> None:
    run, outcomes = kyoto(repeats=1)
    assert render(run, outcomes) == render(run, outcomes)


def test_page_refers_to_no_external_address() -> None:
    run, outcomes = kyoto()
    page = Reader(render(run, outcomes, CLAIMS))
    assert [a for a in page.addresses if not a.startswith(("#", "data:"))] == []
    assert page.handlers == []
    assert {"iframe", "img", "object", "embed", "form", "base"}.isdisjoint(page.tags)


def test_content_security_policy_allows_only_own_scripts() -> None:
    run, outcomes = kyoto(repeats=1)
    text = render(run, outcomes)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy[1]
    run_by_browser = [body for attrs, body in Reader(text).scripts if "type" not in attrs]
    assert len(run_by_browser) == 2
    for body in run_by_browser:
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]


def test_hostile_names_stay_text() -> None:
    run, outcomes = cases.hostile()
    claims = [
        {"id": cases.HOSTILE, "statement": cases.HOSTILE, "source": cases.HOSTILE, "published": cases.HOSTILE}
    ]
    claims[0] |= {"obtained": cases.HOSTILE, "tolerance": cases.HOSTILE, "kind": cases.HOSTILE}
    text = render(run, outcomes, claims)
    page = Reader(text)
    plain_run, plain_outcomes = kyoto(repeats=2)
    plain = Reader(render(plain_run, plain_outcomes, [CLAIMS[0]]))
    # The page has no more scripts, kinds of elements or handlers than with harmless names.
    assert len(page.scripts) == len(plain.scripts) == 4
    assert set(page.tags) <= set(plain.tags) | {"li", "ul"}
    assert page.handlers == []
    assert [a for a in page.addresses if not a.startswith(("#", "data:"))] == []
    assert text.count("</script") == 4
    assert page.json("page-data")["flows"] == [
        cases.HOSTILE.replace("\u2028", " ") + "stream",
    ]
    # The hostile name is shown as text.
    assert "<script>document.title='broken'</script>" in page.text


def test_page_lists_claims_by_kind_with_their_status() -> None:
    run, outcomes = kyoto(repeats=1)
    text = render(run, outcomes, CLAIMS)
    assert '<span class="good">✓ holds</span>' in text
    assert '<span class="bad">✗ does not hold</span>' in text
    assert '<span class="mark">≠ known difference</span>' in text
    assert '<span class="muted">? open</span>' in text
    page = Reader(text).text
    # Known kinds in their order, each with its own summary.
    order = [
        page.index(said)
        for said in ("1 of 2 claims hold", "0 of 1 claims hold, 1 fails", "determine it; 1 open")
    ]
    assert order == sorted(order)
    assert "why not: no cost explains it" in page
    assert "decided by: a data sheet" in page
    assert "section 4.1" in page
    assert "“22.10<Mbps>”" in page
    assert "The plateau at <code>16 %</code>" in text
    assert "&lt;b&gt;" in text
    assert "Claims" not in Reader(render(run, outcomes)).headings


def test_only_published_values_are_headed_stated() -> None:
    run, outcomes = kyoto(repeats=1)
    computed = {**CLAIMS[1], "id": "5", "published": None, "printed": None, "value": "21.55 Mbit/s"}
    stated = Reader(render(run, outcomes, [CLAIMS[1]])).text
    assert "StatedObtained" in _heads(stated)
    page = Reader(render(run, outcomes, [*CLAIMS, computed])).text
    assert "Stated or expectedObtained" in _heads(page)
    assert "ExpectedObtained" in _heads(page)
    assert "computed: 21.55 Mbit/s" in page
    assert "predicted: 20.5 to 22.1 Mbit/s" in page


def _heads(page: str) -> str:
    """The text of a page without the line breaks between cells."""
    return "".join(page.splitlines())


def test_page_notes_missing_points() -> None:
    run, outcomes = kyoto(repeats=1)
    part = replace(run, points_done=100, status="partial")
    assert f"Only 100 of {run.points_total} points are done." in Reader(render(part, outcomes)).text
    nothing = Reader(render(Record(axes=(MESSAGES,), points_total=10), []))
    assert "No point of this run is done yet." in nothing.text
    assert "No point is done yet." in nothing.text


def test_page_shows_readable_times_and_sizes() -> None:
    run, outcomes = kyoto(repeats=1)
    created = "2026-11-21T21:19:13.490541+02:00"
    page = Reader(
        render(replace(run, created=created, environment={"memory_bytes": 25_274_793_984}), outcomes)
    )
    assert "2026-11-21 19:19:13 UTC" in page.text
    assert "memory25.3 GB" in page.text


def test_page_lists_the_overrides() -> None:
    run, outcomes = kyoto(repeats=1)
    page = Reader(render(replace(run, overrides=[("traffic.stream.message", "9 kB")]), outcomes))
    assert "Values that override the file:" in page.text
    assert "traffic.stream.message = 9 kB" in page.text


def test_page_download_escapes_formulas() -> None:
    run, outcomes = cases.swept(["=1+1"], [], repeats=1)
    assert {row["variant"] for row in points(Reader(render(run, outcomes)))} == {"'=1+1"}


def test_a_hundred_thousand_points_make_a_small_file() -> None:
    run, outcomes = cases.many_points(20_000)
    text = render(run, outcomes)
    assert len(text.encode()) < 5_000_000
    page = Reader(text)
    rows = page.json("page-data")["datasets"]["rows0"]["rows"]
    assert 100 < len(rows) <= 500
    assert "20000 values of the message of stream are drawn as 500 groups" in page.text
    assert len(points(page)) == 100_000


def test_too_large_download_folds_the_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engpass.report.csv_download.MAX_ENCODED", 25_000)
    run, outcomes = kyoto(repeats=2)
    page = Reader(render(run, outcomes))
    rows = points(page)
    # 4 variants x 64 sizes of the stream by both engines, and the interference in three variants.
    assert len(rows) == 4 * 64 * 2 + 3 * 64
    assert {"goodput_bit_per_s_least", "loss_greatest"} <= set(rows[0])
    assert f"`engpass export {run.id} -o points.csv`".replace("`", "") in page.text


def test_points_too_many_for_the_page_are_left_to_the_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engpass.report.csv_download.MAX_ENCODED", 10)
    run, outcomes = kyoto(repeats=2)
    text = render(run, outcomes)
    assert f"<code>engpass export {run.id} -o points.csv</code> writes all outcomes" in text
    assert 'id="download"' not in text


def test_two_wide_axes_are_drawn_as_maps() -> None:
    rates = axis("traffic.stream.rate", [(f"{n} Mbit/s", n * 1e6) for n in range(2, 42)], "bit/s")
    sizes = axis("traffic.stream.message", [(f"{n} B", float(n)) for n in range(1400, 0, -100)], "B")
    run, outcomes = cases.swept(["free", "congested"], [sizes, rates], repeats=2)
    page = Reader(render(run, outcomes))
    data = page.json("page-data")
    cells = data["datasets"]["cells0"]
    rows = [dict(zip(cells["columns"], row, strict=True)) for row in cells["rows"]]
    assert len(rows) == 2 * 14 * 40, "a cell for each pair of values, in each variant"
    (one,) = [row for row in rows if (row["series"], row["x"], row["y"]) == ("free", "0.3 kB", "7 Mbit/s")]
    goodputs = [
        outcome.flows["stream"].goodput_bit_per_s / 1e6
        for outcome in outcomes
        if (outcome.variant, outcome.engine) == ("free", "simulate")
        and outcome.sweep["traffic.stream.message"].number == 300
        and outcome.sweep["traffic.stream.rate"].number == 7e6
    ]
    assert len(goodputs) == 2
    assert one["goodput_bit_per_s"] == pytest.approx(sum(goodputs) / 2)
    charts = data["charts"]["stream"]
    assert {"goodput-map", "goodput"} <= set(charts)
    assert set(cases.valid(figures(run, outcomes))) == set(charts)
    assert "loss" not in charts, "its map shows more"
    encoding = charts["goodput-map"]["spec"]["encoding"]
    assert encoding["x"]["sort"][:2] == ["0.1 kB", "0.2 kB"], "in the order of the values, not of the file"
    assert encoding["color"]["legend"] == {"title": "Mbit/s"}
    assert "Points whose goodput is farthest" not in page.text, "all are near it"


def test_points_far_from_the_fair_share_have_a_table_of_their_own() -> None:
    rates = axis("traffic.stream.rate", [(f"{n} Mbit/s", n * 1e6) for n in range(2, 202)], "bit/s")
    run, outcomes = cases.swept(["free"], [rates], repeats=1)
    far = next(place for place, one in enumerate(outcomes) if one.engine == "simulate")
    stream = outcomes[far].flows["stream"]
    slow = structs.replace(stream, goodput_bit_per_s=stream.goodput_bit_per_s / 2)
    outcomes[far] = structs.replace(outcomes[far], flows={**outcomes[far].flows, "stream": slow})
    text = render(run, outcomes)
    _, _, table = text.partition("Points whose goodput is farthest from the fair share")
    assert table.partition("</table>")[0].count("<tr>") == 2, "a head and one point"


def test_a_map_of_many_values_has_few_cells() -> None:
    rates = axis("traffic.stream.rate", [(f"{n} Mbit/s", n * 1e6) for n in range(1, 126)], "bit/s")
    sizes = axis("traffic.stream.message", [(f"{n} B", float(n)) for n in range(1, 261)], "B")
    run, outcomes = cases.swept(["free"], [sizes, rates], repeats=0)
    table = tabulate(run, outcomes)
    cells = heat_map.cells(table, "stream")
    # Groups of three neighbours of each axis.
    assert len(cells) == 87 * 42
    means = [point.goodput.value for point in table.points if point.at[0] < 3 and point.at[1] < 3]
    first = next(cell for cell in cells if (cell["x"], cell["y"]) == ("1 B", "1 Mbit/s"))
    assert len(means) == 9
    assert first["goodput_bit_per_s"] == pytest.approx(table.rate.of(sum(means) / 9), rel=1e-6)
    (map_,) = [figure for figure in FIGURES if figure.name == "goodput-map"]
    assert "the 260 values of the message of stream are in 87 groups" in map_.says(table, "stream")


def test_page_shows_ledger_figures_with_their_key() -> None:
    run, outcomes = with_ledgers(repeats=1)
    page = render(run, outcomes)
    assert '<h2 id="ledger">Ledger</h2>' in page
    for name in ("ledger", "ledger-waterfall"):
        assert f'id="figure-{name}"' in page
    assert re.search(r'fill="var\(--waste1\)"/></svg>lost datagrams</li>', page)
    assert re.search(r'fill="var\(--idle1\)"/></svg>idle: CPU</li>', page)
    # The figure uses the colour variables of the page, light or dark.
    (spec,) = re.findall(r'"ledger":(\{.*?\}),"ledger-waterfall":', page)
    assert "var(--delivered1)" in spec
    assert theme.LIGHT["delivered1"] not in spec
    run, outcomes = kyoto(repeats=1)
    assert '<h2 id="ledger">' not in render(run, outcomes)


def test_page_of_transfers_opens_on_the_slowest() -> None:
    run, outcomes = kyoto()
    flows = {
        name: FlowOutcome(
            kind="tcp-stream",
            goodput_bit_per_s=1e6,
            offered_bit_per_s=1e6,
            transfer=Transfer(received_bytes=1000, duration_s=seconds),
        )
        for name, seconds in (("first", 0.1), ("slow", 0.3), ("last", 0.2))
    }
    run = replace(run, axes=(), variants=["free"])
    one = structs.replace(outcomes[0], engine="simulate", variant="free", sweep={}, flows=flows)
    charts, _ = page_charts(tabulate(run, [one]))
    assert list(charts) == ["slow", "last", "first"]
