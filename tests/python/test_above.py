"""Goodputs above their limit have a reason, in tables, explanations and reports."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import engpass
from engpass import above
from engpass.above import Got
from engpass.cli.tables import summary
from engpass.explain import explain
from engpass.explain.choose import choose_in
from engpass.report.page import render
from engpass.store import Store

PASSED = {
    "a": frozenset({"host x", "link l"}),
    "b": frozenset({"host y", "link l"}),
    "far": frozenset({"host z"}),
}
PART_TIME = frozenset({"late"})


def got(
    flow: str, goodput: float, limit: float = 10.0, kind: str = "tcp-stream", engine: str = "simulate"
) -> Got:
    return Got((), engine, flow, kind, goodput, limit, PASSED.get(flow, frozenset()))


def test_who_leaves_its_share_to_another_is_named() -> None:
    all_ = [got("a", 12), got("b", 8), got("far", 1), got("late", 9)]
    assert above.notes(all_, PART_TIME)[0] == (
        "`a` is above its limit by 20.0 % (simulate): `b` gets less than its own limit there, and what flows "
        "share the limit divides fairly"
    )
    # What shares nothing with it leaves it nothing; a flow whose path is not known may.
    assert "`b`" not in above.reason(got("far", 12), all_[:3], PART_TIME)
    assert above.reason(got("far", 12), all_, PART_TIME).startswith("`late` does not send all the time")


def test_many_flows_share_a_sentence() -> None:
    some = [got(f"f{i}", 10 + i - 3) for i in range(8)]
    other = [Got(1, "simulate", one.flow, one.kind, 10, 10) for one in some]
    (note,) = above.notes([*some, *other], ())
    who = "`f4`, `f5`, `f6` and 1 more are above their limits by up to 40.0 %"
    assert note.startswith(f"{who} (simulate at 1 of 2 points): `f0` gets less than its own limit")


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (got("a", 12, kind="poisson"), "drawn at random"),
        (got("a", 12, engine="measure"), "the real ones give more"),
        (got("a", 12), "a longer `duration`"),
    ],
)
def test_a_flow_alone_has_other_reasons(one: Got, why: str) -> None:
    assert why in above.reason(one, [one, got("b", 10)], PART_TIME)


def test_what_is_at_its_limit_is_not_above_it() -> None:
    assert above.notes([got("a", 10.04), got("b", 9)], PART_TIME) == []
    assert above.notes([got("a", 99, kind="cbr"), got("b", 9)], PART_TIME) == []
    (note,) = above.notes([got("a", 5, limit=0.0), got("b", 9)], PART_TIME)
    assert note.startswith("`a` is above its limit (simulate): `b` gets less")


BOTH_WAYS = """
name = "Both ways"
# What arrives at `busy` needs all of its CPU, and its own writes come last.
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


def test_a_sender_that_starves_is_the_reason_everywhere(both_ways: Path, tmp_path: Path) -> None:
    testbed = engpass.load(both_ways)
    why = "`out` gets less than its own limit there"
    with Store.open(tmp_path / "s.db") as store:
        testbed.run(["limit", "simulate"], store=store)
        record = store.run()
        written = io.StringIO()
        summary(store, record, Console(file=written, width=200))
        assert "`in` is above its limit by" in written.getvalue()
        assert why in written.getvalue()
        page = render(record, store.outcomes(record.id))
        assert "<code>out</code> gets less than its own limit there" in page
    finding = explain(choose_in(testbed, None, [], "in"), advice=False).finding
    assert finding.key == "limit"
    assert why in finding.evidence


def test_who_starves_is_told_of_whom_and_may_gain_by_the_others_way(both_ways: Path) -> None:
    starved = explain(choose_in(engpass.load(both_ways), None, [], "out"), advice=False).finding
    assert (starved.key, starved.bottleneck) == ("idle: CPU", "memory of host `busy`")
    assert starved.evidence.endswith("while it is busy, also with `in`")
    # What arrives does not fill the memory if it is not copied: 60 of 90 MB/s go to the copies of 20.
    ends = 'from = "peer", to = "busy"'
    paced = f'{{ kind = "udp-stream", {ends}, message = "8 kB", rate = "160 Mbit/s" }}'
    slow = engpass.load(both_ways, set={"traffic.in": paced})
    made = explain(choose_in(slow, None, [], "out")).advice
    assert made is not None
    gains = {tuple(dict(change.set)): change for change in made.changes}
    assert gains[("traffic.in.receive_path",)].say == "receive `in` without a copy, as by `AF_XDP`"
