"""Figures: their contents for various runs, and their files."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from msgspec.structs import replace

import report_cases as cases
from engpass.report import export_figures, figures, theme
from engpass.report.figures import FIGURES, goodput_resources, waterfall
from engpass.results import ledger
from engpass.results.aggregate import MAX_ROWS, tabulate
from engpass.results.axes import axis_of, label
from engpass.types.outcome import (
    Delays,
    EngineOutcome,
    NodeOutcome,
    Outcome,
    Quantiles,
    QueueOutcome,
    Stage,
    Transfer,
)
from engpass.units import unit_for
from ledgers import with_ledgers
from report_kyoto import MESSAGES, Record, axis, kyoto

Made = tuple[Record, list[Outcome]]

SHAPES: dict[str, Callable[[], Made]] = {
    "no sweep": lambda: cases.swept(["free", "congested"], []),
    "one value": lambda: cases.swept(["free"], [axis("traffic.stream.message", [("9 kB", 9000.0)], "B")]),
    "two axes": lambda: cases.swept(["free", "congested"], [cases.BUFFERS, cases.SHARES], repeats=2),
    "second axis as colour": lambda: cases.swept(["free"], [cases.BUFFERS, cases.SHARES], repeats=2),
    "three axes": lambda: cases.swept(["free", "congested"], [cases.BUFFERS, cases.SHARES, cases.WORDS]),
    "words": lambda: cases.swept(["free", "congested"], [cases.WORDS]),
    "limit alone": lambda: cases.swept(["free"], [MESSAGES], engines=("limit",)),
    "three engines": lambda: cases.swept(["free"], [cases.BUFFERS], engines=("limit", "simulate", "emulate")),
    "no limit": lambda: cases.swept(["free"], [cases.BUFFERS], engines=("simulate",)),
    "hostile": lambda: cases.hostile(repeats=1),
    "several flows": cases.several_flows,
    "ledgers": lambda: with_ledgers(repeats=2),
    "engines": lambda: cases.with_engines(cases.swept(["free", "congested"], [MESSAGES])),
    "engines of variants": lambda: cases.with_engines(cases.swept(["free", "congested"], [])),
    "engines over words": lambda: cases.with_engines(cases.swept(["free"], [cases.WORDS, cases.SHARES])),
    "engines in panels": lambda: cases.with_engines(
        cases.swept(["free", "congested"], [cases.BUFFERS, cases.SHARES, cases.WORDS], repeats=1)
    ),
}


def png_size(data: bytes) -> tuple[int, int]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


# The PNG follows from the SVG alone and takes longer: these shapes have every figure and every name.
PNG_SHAPES = ("hostile", "ledgers", "engines", "several flows")


@pytest.mark.parametrize("shape", SHAPES)
def test_every_figure_is_exported_as_svg_and_png(
    shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shape not in PNG_SHAPES:
        monkeypatch.setattr(vl_convert, "svg_to_png", lambda *_, **__: b"")
    run, outcomes = SHAPES[shape]()
    made = cases.valid(figures(run, outcomes))
    files = export_figures(run, outcomes, tmp_path / "a" / "b")
    assert sorted(file.name for file in files) == sorted(
        f"{name}.{kind}" for name in [*made, "testbed"] for kind in ("svg", "png")
    )
    for file in files:
        if file.suffix == ".png" and shape not in PNG_SHAPES:
            continue
        if file.suffix == ".png":
            assert min(png_size(file.read_bytes())) > 200
        else:
            svg = ET.parse(file).getroot()
            assert svg.tag == "{http://www.w3.org/2000/svg}svg"
            marks = [e for e in svg.iter() if e.tag.endswith(("path", "rect", "text"))]
            assert len(marks) > 10


def test_figures_depend_on_the_shape_of_the_run() -> None:
    assert list(figures(*kyoto(repeats=1))) == ["goodput", "loss", "offered-received", "waterfall"]
    assert list(figures(*SHAPES["limit alone"]())) == ["goodput", "waterfall"]
    assert list(figures(*SHAPES["no limit"]())) == ["goodput", "loss", "offered-received"]
    assert "goodput-stream-2" in figures(*cases.several_flows())
    assert figures(Record(axes=(MESSAGES,)), []) == {}


@pytest.mark.parametrize(("wait", "more"), [(0.0105, []), (0.02, ["message-delay"])])
def test_message_delay_has_a_figure_if_messages_wait_longer_than_packets(
    wait: float, more: list[str]
) -> None:
    def quantiles(p99: float) -> Quantiles:
        return Quantiles(min=0.0, p50=p99, p90=p99, p99=p99, p99_9=p99, max=p99)

    run, outcomes = kyoto(repeats=1)
    delays = Delays(network=quantiles(0.01), message=quantiles(wait))
    slow = [
        replace(one, flows={name: replace(flow, delay_s=delays) for name, flow in one.flows.items()})
        for one in outcomes
    ]
    assert list(cases.valid(figures(run, slow))) == [
        "goodput",
        "loss",
        "delay",
        *more,
        "offered-received",
        "waterfall",
    ]


def test_transfers_have_a_figure_of_their_time() -> None:
    run, outcomes = kyoto(repeats=1)
    done = Transfer(received_bytes=1000, duration_s=0.5, goodput_bit_per_s=16000.0)
    sent = [
        replace(one, flows={name: replace(flow, transfer=done) for name, flow in one.flows.items()})
        for one in outcomes
    ]
    assert "transfer" in cases.valid(figures(run, sent))


def test_ledger_stack_sums_to_the_line_at_every_value() -> None:
    run, outcomes = with_ledgers(repeats=2)
    made = figures(run, outcomes)
    assert list(made)[-2:] == ["ledger", "ledger-waterfall"]
    spec = made["ledger"].to_dict()
    rows = next(data for data in spec["datasets"].values() if "share" in data[0])
    sums: dict[tuple[str, float], float] = {}
    for row in rows:
        sums[row["panel"], row["x"]] = sums.get((row["panel"], row["x"]), 0.0) + row["share"]
    assert len(sums) == 4 * 64
    assert all(total == pytest.approx(100, abs=0.01) for total in sums.values())
    shown = spec["spec"]["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert shown[0] == "physical framing"
    assert shown[-1] == "idle: CPU"
    assert shown.index("delivered") < shown.index("lost datagrams") < shown.index("traffic interference")


def test_ledgers_of_two_engines_are_drawn_side_by_side() -> None:
    run, outcomes = with_ledgers(repeats=1)
    both = [*outcomes, *(replace(one, engine="measure") for one in outcomes if one.engine == "simulate")]
    made = figures(run, both)
    spec = made["ledger"].to_dict()
    rows = next(data for data in spec["datasets"].values() if "share" in data[0])
    sums: dict[tuple[str, float], float] = {}
    for row in rows:
        sums[row["panel"], row["x"]] = sums.get((row["panel"], row["x"]), 0.0) + row["share"]
    assert all(total == pytest.approx(100, abs=0.01) for total in sums.values())
    assert {"congested, simulate", "congested, measure"} <= {panel for panel, _ in sums}
    below = made["ledger-waterfall"].to_dict()["vconcat"]
    assert [part["title"]["subtitle"][0].rpartition("; ")[2] for part in below] == ["simulate", "measure"]


def test_ledger_waterfall_shows_the_point_furthest_below_limit() -> None:
    run, outcomes = with_ledgers(repeats=2)
    spec = figures(run, outcomes)["ledger-waterfall"].to_dict()
    assert "variant congested" in spec["title"]["subtitle"][0] or "shaped-18" in spec["title"]["subtitle"][0]
    rows = next(data for data in spec["datasets"].values() if "step" in data[0])
    assert (rows[0]["step"], rows[0]["low"], rows[0]["high"]) == ("line rate", 0, 100)
    for before, after in itertools.pairwise(rows[1:-1]):
        assert after["high"] == pytest.approx(before["low"], abs=1e-3)
    assert rows[-1]["step"] == "delivered"


def test_ledger_waterfall_says_if_no_point_is_below_its_limit() -> None:
    run, outcomes = with_ledgers()
    (figure,) = [figure for figure in FIGURES if figure.name == "ledger-waterfall"]
    assert "the point furthest below its limit" in figure.says(tabulate(run, outcomes), "stream")
    exceeded = [
        replace(one, flows={name: replace(flow, goodput_bit_per_s=1.0) for name, flow in one.flows.items()})
        if one.engine == "limit"
        else one
        for one in outcomes
    ]
    assert "no point is below its limit" in figure.says(tabulate(run, exceeded), "stream")


def test_ledger_waterfall_of_one_of_two_flows_ends_with_its_own_payload() -> None:
    run, alone = with_ledgers(repeats=2)
    shared = []
    for outcome in alone:
        stream = outcome.flows["stream"]
        other = replace(stream, goodput_bit_per_s=stream.goodput_bit_per_s / 3)
        shared.append(replace(outcome, flows={**outcome.flows, "other": other}))
    (_, before), (_, after) = (
        (spec, next(data for data in spec["datasets"].values() if "step" in data[0]))
        for spec in (
            figures(run, alone)["ledger-waterfall"].to_dict(),
            figures(run, shared)["ledger-waterfall-stream"].to_dict(),
        )
    )
    assert [row["step"] for row in after] == [
        *(row["step"] for row in before[:-1]),
        "other flows",
        "delivered",
    ]
    whole, own = before[-1]["high"], after[-1]["high"]
    # The other flow gets a third of the stream's rate: a quarter of the sum.
    assert own == pytest.approx(whole * 3 / 4)
    assert after[-2]["high"] - after[-2]["low"] == pytest.approx(whole / 4)


def test_run_with_one_point_has_no_ledger_stack() -> None:
    _, outcomes = with_ledgers(repeats=1)
    one = [replace(o, sweep={}) for o in outcomes if o.sweep["traffic.stream.message"].number == 9000]
    names = list(figures(Record(repeats=1), one))
    assert "ledger" not in names
    assert "ledger-waterfall" in names


def test_sharing_figure_compares_several_flows() -> None:
    run, outcomes = cases.several_flows()
    spec = figures(run, outcomes)["sharing-stream-2"].to_dict()
    kept = [spec["data"].get("values"), *spec.get("datasets", {}).values()]
    rows = next(data for data in kept if data and "chosen" in data[0])
    free = {row["flow"]: row for row in rows if row["series"] == "free"}
    # The goodputs are 1, 1/2 and 1/3 of a rate, so their mean is 11/18 of it.
    assert [round(free[name]["share"], 6) for name in free] == [
        pytest.approx(1800 / 11 / number, abs=1e-5) for number in (1, 2, 3)
    ]
    assert [row["chosen"] for row in free.values()] == [False, True, False]
    assert free["stream"]["label"].endswith("Mbit/s")
    assert not any("sharing" in name for name in figures(*kyoto(repeats=1))), "one flow shares with nobody"


def panels(spec: dict[str, Any]) -> list[str]:
    return [panel["title"]["text"] for panel in spec["vconcat"]]


def test_goodput_and_loads_share_the_swept_axis() -> None:
    run, outcomes = SHAPES["engines"]()
    drawn = figures(run, outcomes)["goodput-resources"]
    spec = drawn.to_dict()
    assert panels(spec) == [
        "goodput of stream in Mbit/s",
        "load of edge: forwarding in %",
        "load of edge: card in %",
    ]
    assert spec["resolve"]["scale"] == {"x": "shared"}
    assert [panel["layer"][0]["encoding"]["x"]["title"] for panel in spec["vconcat"]] == [
        None,
        None,
        "message of stream in kB",
    ]
    rows = drawn.datasets["together"]
    by_subject: dict[str, dict[tuple[object, ...], float]] = {}
    for row in rows:
        at = (row["series"], row["engine"], row["x"])
        by_subject.setdefault(str(row["subject"]), {})[at] = float(row["value"])
    goodput, forwarding, card = by_subject["0"], by_subject["edge: forwarding"], by_subject["edge: card"]
    assert len(goodput) == 2 * 2 * 64
    # 1 % for each Mbit/s, and a tenth of that.
    assert forwarding == pytest.approx({at: min(100.0, rate) for at, rate in goodput.items()}, rel=1e-4)
    assert card == pytest.approx({at: load / 10 for at, load in forwarding.items()}, rel=1e-4)


def test_queues_that_differ_by_four_cells_or_packets_are_below_the_goodput() -> None:
    run, outcomes = with_ledgers(repeats=1)

    def message(outcome: Outcome) -> float:
        return outcome.sweep["traffic.stream.message"].number or 0.0

    def with_queues(outcome: Outcome) -> Outcome:
        """The first line has a queue that grows with the message, and all others one of 3 packets at most."""
        if outcome.engine != "simulate":
            return outcome
        cells = round(message(outcome) / 100)
        queues = itertools.chain(
            [QueueOutcome(longest_bytes=53 * cells, longest_cells=cells)],
            itertools.repeat(QueueOutcome(longest_bytes=1, longest_packets=3 if cells > 90 else 0)),
        )
        links = {
            name: replace(link, directions=[replace(side, queue=next(queues)) for side in link.directions])
            for name, link in outcome.links.items()
        }
        return replace(outcome, links=links)

    drawn = figures(run, [with_queues(one) for one in outcomes])["goodput-resources"]
    name, link = next((name, link) for name, link in outcomes[-1].links.items())
    port = f"{name}: {link.directions[0].from_} → {link.directions[0].to}"
    assert panels(drawn.to_dict()) == ["goodput of stream in Mbit/s", f"longest queue, {port}, in cells"]
    rows = [row for row in drawn.datasets["together"] if row["subject"] == f"queue {port}"]
    assert rows
    assert all(row["engine"] == "simulate" for row in rows), "the limit has no queues"
    for row in rows:
        assert row["value"] == round(10 * float(row["x"]))


def test_goodput_and_loads_need_a_load_that_differs() -> None:
    run, outcomes = SHAPES["engines"]()
    for same in (
        [
            replace(one, nodes={"edge": NodeOutcome(engines={"forwarding": EngineOutcome(load=0.5)})})
            for one in outcomes
        ],
        [
            one
            for one in outcomes
            if one.variant == "free" and one.sweep["traffic.stream.message"].number == 9000
        ],
        [replace(one, nodes={}) for one in outcomes],
    ):
        assert "goodput-resources" not in figures(run, same)
    # Two engines of Engpass that differ at the only point are no reason, either.
    at_one_point = [
        replace(
            one,
            sweep={},
            nodes={"edge": NodeOutcome(engines={"cpu": EngineOutcome(load=len(one.engine) / 10)})},
        )
        for one in outcomes[:2]
    ]
    assert "goodput-resources" not in figures(Record(repeats=1), at_one_point)


def test_goodput_and_loads_of_variants_have_their_names_as_axis() -> None:
    run, outcomes = SHAPES["engines of variants"]()
    spec = figures(run, outcomes)["goodput-resources"].to_dict()
    assert spec["vconcat"][-1]["layer"][0]["encoding"]["x"]["field"] == "series"


def test_goodput_and_loads_name_the_values_of_further_axes() -> None:
    run, outcomes = SHAPES["engines in panels"]()
    table = tabulate(run, outcomes)
    fixed = "shaping of data 14 %, encapsulation of data llc-snap"
    assert f"At {fixed}." in goodput_resources.says(table, "stream")
    assert figures(run, outcomes)["goodput-resources"].to_dict()["title"]["subtitle"] == [fixed]
    rows = goodput_resources.rows(table)
    # Two variants, two engines of Engpass and five buffers, in three panels.
    assert len(rows) == 2 * 2 * 5 * 3
    places = [(row["subject"], row["series"], row["engine"], row["x"]) for row in rows]
    assert len(set(places)) == len(places)


def test_goodput_and_loads_of_several_flows_begin_with_the_chosen_one() -> None:
    run, outcomes = cases.with_engines(cases.several_flows())
    made = figures(run, outcomes)
    assert panels(made["goodput-resources-stream-2"].to_dict())[:3] == [
        f"goodput of {name} in Mbit/s" for name in ("stream 2", "stream", "stream 3")
    ]


def test_goodput_and_loads_of_many_flows_show_those_that_differ_most() -> None:
    run, outcomes = SHAPES["engines"]()
    many = []
    for one in outcomes:
        stream = one.flows["stream"]
        rate = stream.goodput_bit_per_s
        # The flows 1 to 9 differ the more the higher their number.
        each = {
            f"f{number}": replace(stream, goodput_bit_per_s=5e6 + rate * number / 10)
            for number in range(1, 10)
        }
        many.append(replace(one, flows=each))
    table = tabulate(run, many)
    spec = goodput_resources.draw(table, "f2").to_dict()
    assert panels(spec)[:7] == [
        *(f"goodput of f{number} in Mbit/s" for number in (2, 5, 6, 7, 8, 9)),
        "load of edge: forwarding in %",
    ]
    assert "Shown are 6 of 9 flows: the chosen one and those that differ most." in goodput_resources.says(
        table, "f2"
    )


def test_goodput_and_loads_of_many_points_have_few_rows() -> None:
    run, outcomes = cases.with_engines(cases.many_points(4000))
    table = tabulate(run, outcomes)
    rows = goodput_resources.rows(table)
    assert len(rows) == 64 * 3
    assert len({row["x"] for row in rows}) == 64
    assert "Shown are 64 of 4,000 values." in goodput_resources.says(table, "stream")


def test_axes_have_readable_units() -> None:
    spec = json.dumps(figures(*kyoto(repeats=1))["goodput"].to_dict())
    assert '"title": "message of stream in kB"' in spec
    assert '"title": "goodput in Mbit/s"' in spec
    assert label("circuit.data.shaping") == "shaping of data"
    assert label('switch."my.switch".output_buffer') == "output buffer of my.switch"


def test_second_axis_is_panels_or_colours_and_third_a_menu() -> None:
    run, outcomes = cases.swept(["free", "congested"], [cases.BUFFERS, cases.SHARES, cases.WORDS])
    table = tabulate(run, outcomes)
    assert table.series == ("free", "congested")
    assert table.panels == ("14 %", "16 %", "18 %")
    assert [choice.texts for choice in table.choices] == [["llc-snap", "vc-mux", "lane"]]
    assert any("above the figures" in note for note in table.notes)
    spec = figures(run, outcomes)["goodput"].to_dict()
    assert spec["facet"]["field"] == "panel"
    assert [parameter["name"] for parameter in spec["params"]] == ["choice0"]
    alone = tabulate(*cases.swept(["free"], [cases.BUFFERS, cases.SHARES]))
    assert (alone.series, alone.panels) == (("14 %", "16 %", "18 %"), ())


def test_figure_table_has_a_bounded_number_of_rows() -> None:
    many = [axis(f"host.h{i}.cost", [(f"{n} s", float(n)) for n in range(1, 9)], "s") for i in range(3)]
    run, outcomes = cases.swept(["free"], many, engines=("simulate",), repeats=1)
    table = tabulate(run, outcomes)
    assert len(table.points) == 8**3
    assert len(table.rows("stream")) <= MAX_ROWS


def test_limit_waterfall_has_every_stage_for_every_variant() -> None:
    run, outcomes = cases.swept(["free", "congested"], [], engines=("limit",))
    limits = [outcome.flows["stream"].limit for outcome in outcomes]
    for limit, stage in zip(
        limits,
        (Stage(name="shaper", rate_bit_per_s=30e6), Stage(name="policer", rate_bit_per_s=20e6)),
        strict=True,
    ):
        assert limit is not None
        limit.stages.insert(4, stage)
    spec = figures(run, outcomes)["waterfall"].to_dict()
    names = spec["layer"][0]["encoding"]["y"]["sort"]
    assert names[3:6] == ["cell headers", "policer", "shaper"]
    assert names[-1] == "host ss2"
    rows = next(data for data in spec["datasets"].values() if "stage" in data[0])
    assert len(rows) == 2 * len(names)
    left = {(row["series"], row["stage"]): row["rate"] for row in rows}
    assert left["congested", "policer"] == left["congested", "shaper"] == 20
    assert left["free", "policer"] == left["free", "cell headers"]
    assert left["free", "shaper"] == 30


def test_waterfall_of_many_variants_names_those_shown() -> None:
    names = [f"variant {number}" for number in range(10)]
    table = tabulate(*cases.swept(names, [], engines=("limit",)))
    assert [block.text for block in waterfall.blocks(table, "stream")] == names[:8]
    assert len({block.colour for block in waterfall.blocks(table, "stream")}) == 8
    assert waterfall.says(table, "stream").endswith(
        " The first 8 of 10 variants; the table of points also has variant 8, variant 9."
    )


def test_grouped_points_keep_the_extremes() -> None:
    run, outcomes = cases.many_points(2000)
    flow = outcomes[1234].flows["stream"]
    outcomes[1234] = replace(outcomes[1234], flows={"stream": replace(flow, goodput_bit_per_s=99e6)})
    rows = tabulate(run, outcomes).rows("stream")
    assert len(rows) <= 500
    assert max(row["goodput_bit_per_s_high"] for row in rows) == 99
    assert sum(int(row["repeats"]) for row in rows) == 10_000


def test_axis_of_doubling_values_is_logarithmic() -> None:
    doubling = axis("a.b", [(f"{2**n} B", 2.0**n) for n in range(4, 16)], "B")
    assert axis_of(doubling).log
    assert not axis_of(MESSAGES).log


def test_axis_units_follow_the_data() -> None:
    assert unit_for("B", [64_000], ["64 kB"]).say(9_000) == "9 kB"
    assert unit_for("B", [65_536], ["64 KiB"]).say(65_536) == "64 KiB"
    assert unit_for("s", [0.00093]).say(0.00093) == "930 us"
    assert unit_for("", [0.16], ["16 %"]).say(0.1641) == "16.41 %"
    assert unit_for("", [3.0], ["3"]).say(3) == "3"
    assert unit_for("cells", [384.0], ["384 cells"]).say(384) == "384 cells"


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_palettes_have_sufficient_contrast(palette: dict[str, str]) -> None:
    for text, paper in itertools.product(
        ("ink", "muted", "accent", "good", "bad", "mark"), ("paper", "panel")
    ):
        assert contrast(palette[text], palette[paper]) >= 4.5, (text, paper)
    accounts = [account for family in ledger.FAMILIES for account in family.accounts]
    for name in {*theme.account_colours(accounts)}:
        assert contrast(palette[name], palette["paper"]) >= 3, name
    for i in range(theme.SERIES):
        assert contrast(palette[theme.colour(i)], palette["paper"]) >= 3, theme.colour(i)


def test_series_are_distinguishable_without_colour() -> None:
    looks = {(theme.colour(i), theme.shape(i)) for i in range(theme.SERIES * len(theme.SHAPES))}
    assert len(looks) == 56
    assert len({theme.shape(i) for i in range(len(theme.SHAPES))}) == 7
    assert len({tuple(theme.dash(engine)) for engine in theme.DASHES}) == len(theme.DASHES)
