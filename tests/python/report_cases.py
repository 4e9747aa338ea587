"""Runs of other shapes than the Kyoto study.

No sweep, several axes, axes of words, several flows, hostile names, 100,000 points.
"""

import itertools
import random
from dataclasses import replace
from typing import Any

from report_kyoto import MESSAGES, Record, axis, host, kyoto, limit, outcome, simulate

HOSTILE = "</script><script>document.title='broken'</script>'\"`${1}<!--\u2028&amp;\\\"-"
"""A name that tries to leave HTML, attributes, JSON, JavaScript and Vega expressions."""

BUFFERS = axis(
    "switch.atomis5.output_buffer", [(f"{n} cells", float(n)) for n in (64, 128, 256, 512, 1024)], "cells"
)
SHARES = axis("circuit.data.shaping", [("14 %", 0.14), ("16 %", 0.16), ("18 %", 0.18)], "")
WORDS = axis("circuit.data.encapsulation", [("llc-snap", None), ("vc-mux", None), ("lane", None)], None)


def swept(
    variants: list[str],
    axes: list[dict[str, Any]],
    *,
    engines: tuple[str, ...] = ("limit", "simulate"),
    repeats: int = 3,
) -> tuple[Record, list[dict[str, Any]]]:
    """Every combination of the axes, with outcomes that differ from value to value."""
    chance = random.Random(7)
    outcomes = []
    lists = [each["values"] for each in axes]
    for variant in variants:
        for place in itertools.product(*lists):
            sweep = {
                each["path"]: value["text"] if value["number"] is None else value["number"]
                for each, value in zip(axes, place, strict=True)
            }
            length = int(sweep.get("traffic.stream.message", 9000))
            factor = 1.0
            for each, value in zip(axes, place, strict=True):
                if each["path"] != MESSAGES["path"]:
                    factor *= 1 - 0.1 * each["values"].index(value)
            kind = variant if variant in ("free", "congested", "shaped-16", "shaped-18") else "free"
            if "limit" in engines:
                outcomes.append(outcome(variant, "limit", 0, sweep, _scaled(limit(kind, length), factor)))
            for engine in engines:
                for repeat in range(repeats if engine != "limit" else 0):
                    flows = _scaled(simulate(kind, length, chance), factor)
                    outcomes.append(outcome(variant, engine, repeat, sweep, flows))
    record = Record(
        variants=variants,
        axes=axes,
        engines=list(engines),
        repeats=repeats,
        points_total=len(outcomes),
        points_done=len(outcomes),
    )
    return record, outcomes


def _scaled(flows: dict[str, Any], factor: float) -> dict[str, Any]:
    for flow in flows.values():
        flow["goodput_bit_per_s"] *= factor
    return flows


def several_flows() -> tuple[Record, list[dict[str, Any]]]:
    """Three streams that share a link, and nothing swept."""
    record, outcomes = swept(["free", "congested"], [])
    for each in outcomes:
        stream = each["flows"]["stream"]
        for number in (2, 3):
            rates = {key: stream[key] / number for key in ("goodput_bit_per_s", "offered_bit_per_s")}
            each["flows"][f"stream {number}"] = {**stream, **rates}
    return record, outcomes


def hostile(repeats: int = 2) -> tuple[Record, list[dict[str, Any]]]:
    """The study with names, texts and values that are attacks."""
    record, outcomes = kyoto(repeats)
    path = f'traffic."{HOSTILE}".message'
    flows = [{**flow, "name": HOSTILE + flow["name"]} for flow in record.topology["flows"]]
    nodes = [{**node, "name": HOSTILE + node["name"], "kind": HOSTILE} for node in record.topology["nodes"]]
    links = [
        {**link, "name": HOSTILE, "medium": HOSTILE, "ends": [HOSTILE + end for end in link["ends"]]}
        for link in record.topology["links"]
    ]
    for each in outcomes:
        each["variant"] = HOSTILE + each["variant"]
        each["sweep"] = {path: each["sweep"]["traffic.stream.message"]}
        each["flows"] = {HOSTILE + name: result for name, result in each["flows"].items()}
        for result in each["flows"].values():
            result["kind"] = result["kind"] if result["kind"] == "cbr" else HOSTILE
            if "sentence" in result:
                result.update(sentence=HOSTILE, bottleneck=HOSTILE, next=HOSTILE)
                result["stages"] = [{**stage, "name": HOSTILE + stage["name"]} for stage in result["stages"]]
        for drop in each["drops"]:
            drop.update(place=HOSTILE, cause=HOSTILE, flow=HOSTILE)
    attacked = replace(
        record,
        id=HOSTILE,
        name=HOSTILE,
        description=HOSTILE,
        source=HOSTILE,
        text=HOSTILE * 3 + "\x00",
        overrides=[(HOSTILE, HOSTILE)],
        variants=[HOSTILE + name for name in record.variants],
        axes=[{**MESSAGES, "path": path}],
        topology={"nodes": nodes, "links": links, "circuits": [], "flows": flows},
        environment={HOSTILE: HOSTILE, "version": HOSTILE},
        created=HOSTILE,
        status=HOSTILE,
    )
    return attacked, outcomes


def many_points(count: int) -> tuple[Record, list[dict[str, Any]]]:
    """One variant, that many values, 5 repeats."""
    chance = random.Random(3)
    values: list[tuple[str, float | None]] = [(f"{n} B", float(n)) for n in range(100, 100 + count)]
    swept_axis = axis("traffic.stream.message", values, "B")
    outcomes = []
    for number in range(100, 100 + count):
        rate = host(number)
        for repeat in range(5):
            got = rate * (1 - 0.02 * chance.random())
            flow = {
                "kind": "udp-stream",
                "goodput_bit_per_s": got,
                "offered_bit_per_s": rate,
                "sent_datagrams": 10_000,
                "received_datagrams": 9_990,
                "lost_datagrams": 10,
                "in_flight_datagrams": 0,
            }
            sweep = {"traffic.stream.message": float(number)}
            outcomes.append(outcome("base", "simulate", repeat, sweep, {"stream": flow}))
    record = Record(
        variants=["base"],
        axes=[swept_axis],
        engines=["simulate"],
        points_total=len(outcomes),
        points_done=len(outcomes),
    )
    return record, outcomes
