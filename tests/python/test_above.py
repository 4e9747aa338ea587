"""Fair shares and bounds in tables, explanations and reports, and goodputs above a bound."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

import engpass
from engpass.cli.summary import summary
from engpass.explain.select_point import choose_in
from engpass.explanation import explain
from engpass.report.page import render
from engpass.results import above_limit
from engpass.results.above_limit import Got
from engpass.store import Store
from engpass.store.arrow import table
from engpass.types.outcome import Bottleneck, Bound, FlowLimit, FlowOutcome


def got(
    flow: str,
    goodput: float,
    bound: float = 10.0,
    kind: str = "tcp-stream",
    engine: str = "simulate",
    place: int = 0,
) -> Got:
    return Got(place, engine, flow, kind, goodput, bound)


def test_an_engine_above_a_bound_has_one_note_with_its_reason() -> None:
    backlog = (
        "data that was queued at the end of the warm-up also counts; a longer `duration` reduces this effect"
    )
    (note,) = above_limit.notes([got("a", 12), got("b", 8)])
    assert note == f"`a` is above its bound by 20.0 % (simulate): {backlog}"
    real, _ = above_limit.notes([got("a", 12, engine="measure"), got("a", 11)])
    assert real.startswith("`a` is above its bound by 20.0 % (measure): ")
    assert "the real ones allow more" in real
    (chosen,) = above_limit.notes(
        [msgspec.structs.replace(got("a", 12, engine="measure"), chose_otherwise=True)]
    )
    assert "a real router may choose another path" in chosen


def test_note_summarises_many_flows_above_their_bounds() -> None:
    some = [got(f"f{i}", 10 + i - 3) for i in range(8)]
    other = [got(one.flow, 10, place=1) for one in some]
    (note,) = above_limit.notes([*some, *other])
    who = "`f4`, `f5`, `f6` and 1 more are above their bounds by up to 40.0 %"
    assert note.startswith(f"{who} (simulate at 1 of 2 points): data that was queued")


def test_a_goodput_at_its_bound_has_no_note() -> None:
    assert above_limit.notes([got("a", 10.04), got("b", 9)]) == []
    assert above_limit.notes([got("a", 99, kind="cbr"), got("b", 9)]) == []
    (note,) = above_limit.notes([got("a", 5, bound=0.0), got("b", 9)])
    assert note.startswith("`a` is above its bound (simulate): data that was queued")


def test_a_run_without_bounds_compares_with_the_fair_share() -> None:
    link = Bottleneck(kind="link", name="up", title="link `up`")
    limit = FlowLimit(stages=[], candidates=[])
    flow = FlowOutcome(kind="tcp-stream", goodput_bit_per_s=3.0, offered_bit_per_s=3.0, limit=limit)
    assert above_limit.bound(flow) == 3.0
    bound = Bound(bit_per_s=4.0, bottleneck=link, summary="")
    assert above_limit.bound(replace(flow, limit=replace(limit, bound=bound))) == 4.0


BOTH_WAYS = """
name = "Both ways"
# Segments that arrive at `busy` need all of its CPU, and its own writes come last.
[host.busy]
memory = { bandwidth = "90 MB/s" }
[host.peer]
[link.line]
ends = ["busy", "peer"]
medium = "ethernet-10g"
[traffic.out]
kind = "tcp-stream"
from = "busy"
to = "peer"
message = "64 kB"
[traffic.in]
kind = "tcp-stream"
from = "peer"
to = "busy"
message = "64 kB"
[run]
duration = "300 ms"
warmup = "100 ms"
repeats = 1
"""


@pytest.fixture(scope="module")
def both_ways(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("above") / "both.toml"
    file.write_text(BOTH_WAYS)
    return file


def test_flow_above_its_fair_share_is_not_reported_above_bound(both_ways: Path, tmp_path: Path) -> None:
    testbed = engpass.load(both_ways)
    with Store.open(tmp_path / "s.db") as store:
        testbed.run(["limit", "simulate"], store=store)
        record = store.run()
        written = io.StringIO()
        summary(store, record, Console(file=written, width=200))
        said = written.getvalue()
        assert "Fair share" in said
        assert "Bound" in said
        assert "above" not in said
        page = render(record, store.outcomes(record.id))
        assert "Fair share <span" in page
        assert "more than its fair share of" in page
        assert "above its bound" not in page
        rows = table(record, store.read_outcomes(record)).to_pylist()
    flows = {row["flow"]: row for row in rows if row["engine"] == "limit"}
    assert flows["in"]["bound_bit_per_s"] > flows["in"]["goodput_bit_per_s"]
    finding = explain(choose_in(testbed, None, [], "in"), advice=False).finding
    assert finding.key == "limit"
    limits = r"more than its fair share of [\d.]+ Mbit/s; its bound is [\d.]+ Mbit/s"
    assert re.search(limits, finding.evidence)


def test_table_has_one_limit_column_if_share_and_bound_agree(both_ways: Path, tmp_path: Path) -> None:
    text = both_ways.read_text().replace('kind = "tcp-stream"', 'kind = "udp-stream"', 1)
    alone = tmp_path / "alone.toml"
    alone.write_text(text[: text.index("[traffic.in]")] + text[text.index("[run]") :])
    with Store.open(tmp_path / "s.db") as store:
        engpass.load(alone).run(["limit", "simulate"], store=store)
        record = store.run()
        written = io.StringIO()
        summary(store, record, Console(file=written, width=200))
        assert " Limit " in written.getvalue()
        assert "Bound" not in written.getvalue()
        assert "Limit <span" in render(record, store.outcomes(record.id))


def test_explain_names_the_flow_that_starves_another(both_ways: Path) -> None:
    starved = explain(choose_in(engpass.load(both_ways), None, [], "out"), advice=False).finding
    assert (starved.key, starved.bottleneck) == ("idle: CPU", "memory of host `busy`")
    assert starved.evidence.endswith("while host `busy` is busy, also with `in`")
    # Received data fill the memory only because they are copied: 20 MB/s take 60 of its 90 MB/s.
    ends = 'from = "peer", to = "busy"'
    paced = f'{{ kind = "udp-stream", {ends}, message = "8 kB", rate = "160 Mbit/s" }}'
    slow = engpass.load(both_ways, set={"traffic.in": paced})
    made = explain(choose_in(slow, None, [], "out")).advice
    assert made is not None
    gains = {tuple(dict(change.set)): change for change in made.changes}
    assert gains[("traffic.in.receive_path",)].say == "receive `in` without a copy, with `AF_XDP`"
