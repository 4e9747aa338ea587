"""Outcomes of earlier versions are converted to the current format, without guessing missing values."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import engpass
from engpass.error import EngpassError
from engpass.results import ledger, outcomes
from engpass.results.upgrade import OldDrawing, drawing
from engpass.store import Store
from engpass.types.outcome import Delays, Outcome
from engpass.types.plan import Drawing

DATA = Path(__file__).parents[1] / "data"

STORED: list[dict[str, Any]] = json.loads((DATA / "outcomes-v1.json").read_text(encoding="utf-8"))
"""Testbeds with outcomes that the first version stored for them."""

REWORDED = ("frames that are longer than its burst are lost", "frames longer than its burst are dropped")
"""A sentence of `limit` in the first version, and now."""

TWO_LINKS = """
host = { a = {}, b = {} }
router.r = {}
link.near = { ends = ["a", "r"], medium = "ethernet-1g" }
link.far = { ends = ["r", "b"], medium = "ethernet-100" }
traffic.stream = { kind = "udp-stream", from = "a", to = "b", message = "1 kB", rate = "1 Mbit/s" }
run = { duration = "10 ms" }
"""
PARALLEL = TWO_LINKS + 'link.spare = { ends = ["r", "b"], medium = "ethernet-100" }\n'

PLAIN: dict[str, Any] = {
    "variant": "base",
    "engine": "simulate",
    "repeat": 0,
    "seed": 1,
    "sweep": {},
    "flows": {"stream": {"kind": "udp-stream", "goodput_bit_per_s": 1e6, "offered_bit_per_s": 1e6}},
    "links": {},
    "drops": [],
}


def old(**more: object) -> Outcome:
    """Read an outcome of the first version with additional keys of its flow."""
    flow = {**PLAIN["flows"]["stream"], **more}
    return outcomes.read(json.dumps({**PLAIN, "flows": {"stream": flow}}))


def as_then(outcome: Outcome) -> Outcome:
    """An outcome without what stored outcomes do not have: later delays, means, queues and loads."""
    flows = {
        name: replace(flow, delay_s=Delays(network=replace(flow.delay_s.network, mean=None)))
        if flow.delay_s
        else flow
        for name, flow in outcome.flows.items()
    }
    links = {
        name: replace(link, directions=[replace(side, queue=None) for side in link.directions])
        for name, link in outcome.links.items()
    }
    return replace(outcome, flows=flows, links=links, nodes={})


@pytest.mark.parametrize("stored", STORED, ids=[entry["testbed"].splitlines()[0] for entry in STORED])
def test_old_outcome_equals_the_new_one_of_its_point(stored: dict[str, Any]) -> None:
    # Stored sentences keep their words, and some are worded differently now.
    stored = json.loads(json.dumps(stored).replace(*REWORDED))
    now = engpass.loads(stored["testbed"]).run(["limit", "simulate"]).outcomes
    topology = msgspec.convert(stored["topology"], Drawing)
    then = [outcomes.read(json.dumps(outcome), topology) for outcome in stored["outcomes"]]
    assert [outcomes.write(outcome) for outcome in then] == [outcomes.write(as_then(one)) for one in now]


def test_old_outcome_gets_the_paths_of_its_topology() -> None:
    topology = engpass.loads(TWO_LINKS).topology
    assert ledger.route(outcomes.read(json.dumps(PLAIN)), "stream") == []
    found = outcomes.read(json.dumps(PLAIN), topology)
    assert ledger.route(found, "stream") == [("near", "a", "r"), ("far", "r", "b")]


@pytest.mark.parametrize("route", [None, ["a", "b"]], ids=["two-links-to-choose-from", "no-such-link"])
def test_ambiguous_path_of_an_old_outcome_is_not_guessed(route: list[str] | None) -> None:
    topology = engpass.loads(PARALLEL).topology
    if route is not None:
        topology = replace(topology, flows=[replace(topology.flows[0], route=route)])
    assert ledger.route(outcomes.read(json.dumps(PLAIN), topology), "stream") == []


def test_an_outcome_with_paths_keeps_them() -> None:
    first = {"router.r.ecmp": "first"}
    for found in engpass.loads(PARALLEL, set=first).run(["simulate"]).outcomes:
        steps = [("near", "a", "r"), ("far", "r", "b")]
        again = outcomes.read(outcomes.write(found), engpass.loads(TWO_LINKS).topology)
        assert ledger.route(again, "stream") == steps


def test_link_of_an_old_loss_is_set_only_if_unambiguous() -> None:
    drop = {"place": "r -> b", "cause": "longer than the burst", "flow": "stream", "cells": 0, "datagrams": 2}
    text = json.dumps({**PLAIN, "drops": [drop]})
    for testbed, link in ((TWO_LINKS, "far"), (PARALLEL, None)):
        (lost,) = outcomes.read(text, engpass.loads(testbed).topology).drops
        assert (lost.place.node, lost.place.to, lost.place.link) == ("r", "b", link)
        assert lost.cause == "exceeds token bucket burst"
    (lost,) = outcomes.read(text).drops
    assert (lost.place.node, lost.place.to) == ("r -> b", None)


@pytest.mark.parametrize(
    ("title", "kind", "name"),
    [
        ("link `up`", "link", "up"),
        ("acknowledgements on link `down`", "acknowledgements", "down"),
        ("the receive window", "receive-window", None),
        ("the CPU of host `link`", "sending-host", "link"),
        ("something else", "unknown", None),
    ],
)
def test_old_bottleneck_gets_its_kind_from_its_title(title: str, kind: str, name: str | None) -> None:
    bottleneck = old(bottleneck=title).flows["stream"].bottleneck
    assert bottleneck is not None
    assert (bottleneck.kind, bottleneck.name, bottleneck.title) == (kind, name, title)


def test_old_candidate_keeps_its_own_kind() -> None:
    candidate = {"name": "host `a`", "kind": "receiving-host", "goodput_bit_per_s": 1e6}
    bottleneck = old(bottleneck="host `a`", candidates=[candidate]).flows["stream"].bottleneck
    assert bottleneck is not None
    assert bottleneck.kind == "receiving-host"


def test_old_measured_outcome_keeps_all_its_figures() -> None:
    requests = {"transactions_per_s": 10.0, "unanswered": 1, "latency_p999_s": 0.5, "latency_mean_s": 0.1}
    gaps = {"gap_sd_s": 1e-6, "gap_p999_s": 2e-6, "worst_ms_datagrams": 7}
    findings = [{"name": "loss on the way", "weight": 0.9, "evidence": "seen"}]
    flow = old(**requests, **gaps, minimum_rtt_s=0.01, findings=findings).flows["stream"]
    assert flow.real is not None
    assert flow.real.requests is not None
    assert flow.real.requests.latency_s is not None
    assert (flow.real.requests.per_s, flow.real.requests.latency_s.p99_9) == (10.0, 0.5)
    assert flow.real.gap_s is not None
    assert (flow.real.gap_s.p99_9, flow.real.max_datagrams_per_ms) == (2e-6, 7)
    assert [finding.bottleneck.kind for finding in flow.real.findings] == ["loss-on-the-way"]
    assert flow.tcp is not None
    assert flow.tcp.min_rtt_s == 0.01


def test_receivers_of_version_2_are_moved_to_the_flow() -> None:
    now = msgspec.json.decode(outcomes.write(old()))
    got = {
        "goodput_bit_per_s": 1e6,
        "offered_bit_per_s": 2e6,
        "datagrams": {"sent": 2, "received": 1, "lost": 1},
    }
    now["version"] = 2
    now["flows"]["stream"]["real"] = {"receivers": {"b": got}}
    read = outcomes.read(json.dumps(now))
    assert read.version == 3
    assert read.flows["stream"].receivers["b"].goodput_bit_per_s == 1e6


def test_an_old_store_opens(tmp_path: Path) -> None:
    path = shutil.copy(DATA / "store-v1.sqlite", tmp_path)
    with Store.open(path, create=False) as store:
        for run in store.runs():
            for outcome in store.outcomes(run.id):
                bottleneck = outcome.flows["stream"].bottleneck
                assert bottleneck is None or bottleneck.name == "wire"


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"version":2,"flows":{}}', json.dumps({**PLAIN, "flows": {"stream": {}}}), "null", '"x"'],
)
def test_outcome_of_no_known_version_is_rejected(text: str) -> None:
    with pytest.raises(EngpassError, match="a stored outcome cannot be read") as caught:
        outcomes.read(text)
    assert "--fresh" in (caught.value.help or "")


def test_an_old_drawing_has_one_rate_for_both_directions() -> None:
    link = {"name": "wire", "ends": ["a", "b"], "medium": "ethernet-10", "rate_bit_per_s": 10_000_000}
    old = msgspec.convert({"nodes": [], "links": [link]}, OldDrawing)
    assert drawing(old).links[0].rates_bit_per_s == [10_000_000, 10_000_000]
