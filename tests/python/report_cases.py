"""Invented runs of other shapes than the Kyoto study.

They have no sweep, several axes, axes of words, several flows, hostile names, or 100,000 points.
"""

import dataclasses
import itertools
import random
from collections.abc import Mapping

import altair as alt
import msgspec
from msgspec.structs import replace

from engpass.campaign import Axis
from engpass.report.figures import Drawing as Figure
from engpass.types.outcome import (
    Bottleneck,
    Datagrams,
    Engine,
    EngineOutcome,
    FlowOutcome,
    NodeOutcome,
    Outcome,
    Place,
)
from engpass.types.plan import Drawing
from report_kyoto import MESSAGES, Record, axis, host, kyoto, limit, outcome, simulate

HOSTILE = "</script><script>document.title='broken'</script>'\"`${1}<!--\u2028&amp;\\\"-"
"""A name that tries to break out of HTML, attributes, JSON, JavaScript and Vega expressions."""

BUFFERS = axis(
    "switch.atomis5.output_buffer", [(f"{n} cells", float(n)) for n in (64, 128, 256, 512, 1024)], "cells"
)
SHARES = axis("circuit.data.shaping", [("14 %", 0.14), ("16 %", 0.16), ("18 %", 0.18)], "")
WORDS = axis("circuit.data.encapsulation", [("llc-snap", None), ("vc-mux", None), ("lane", None)], None)


def swept(
    variants: list[str],
    axes: list[Axis],
    *,
    engines: tuple[Engine, ...] = ("limit", "simulate"),
    repeats: int = 3,
) -> tuple[Record, list[Outcome]]:
    """Every combination of the axes, with outcomes that differ from value to value."""
    chance = random.Random(7)
    outcomes = []
    lists = [each.values for each in axes]
    for variant in variants:
        for place in itertools.product(*lists):
            sweep = {
                each.path: value.text if value.number is None else value.number
                for each, value in zip(axes, place, strict=True)
            }
            length = int(sweep.get("traffic.stream.message", 9000))
            factor = 1.0
            for each, value in zip(axes, place, strict=True):
                if each.path != MESSAGES.path:
                    factor *= 1 - 0.1 * each.values.index(value)
            kind = variant if variant in ("free", "congested", "shaped-16", "shaped-18") else "free"
            if "limit" in engines:
                outcomes.append(outcome(variant, "limit", 0, sweep, _scaled(limit(kind, length), factor)))
            for engine in engines:
                for repeat in range(repeats if engine != "limit" else 0):
                    flows = _scaled(simulate(kind, length, chance), factor)
                    outcomes.append(outcome(variant, engine, repeat, sweep, flows))
    record = Record(
        variants=variants,
        axes=tuple(axes),
        engines=list(engines),
        repeats=repeats,
        points_total=len(outcomes),
        points_done=len(outcomes),
    )
    return record, outcomes


def valid(charts: dict[str, Figure]) -> dict[str, Figure]:
    """Check charts, but not their rows, against the schema of Vega-Lite: the report itself does not."""
    for chart in charts.values():
        chart.datasets = alt.Undefined
        chart.to_dict(validate=True)
    return charts


def _scaled(flows: Mapping[str, FlowOutcome], factor: float) -> dict[str, FlowOutcome]:
    return {
        name: replace(flow, goodput_bit_per_s=flow.goodput_bit_per_s * factor) for name, flow in flows.items()
    }


def several_flows() -> tuple[Record, list[Outcome]]:
    """Three streams that share a link, without a sweep."""
    record, outcomes = swept(["free", "congested"], [])
    return record, [_shared(each) for each in outcomes]


def with_engines(made: tuple[Record, list[Outcome]]) -> tuple[Record, list[Outcome]]:
    """A run with a router: 1 % load for each Mbit/s of `stream`, a card with a tenth, and an idle engine."""
    record, outcomes = made
    return record, [replace(each, nodes={"edge": NodeOutcome(engines=_loads(each))}) for each in outcomes]


def _loads(each: Outcome) -> dict[str, EngineOutcome]:
    rate = each.flows["stream"].goodput_bit_per_s / 1e6
    return {
        "forwarding": EngineOutcome(load=min(1.0, rate / 100)),
        "card": EngineOutcome(load=min(1.0, rate / 100) / 10),
        "idle": EngineOutcome(load=0.0),
    }


def _shared(each: Outcome) -> Outcome:
    stream = each.flows["stream"]
    others = {
        f"stream {number}": replace(
            stream,
            goodput_bit_per_s=stream.goodput_bit_per_s / number,
            offered_bit_per_s=stream.offered_bit_per_s / number,
        )
        for number in (2, 3)
    }
    return replace(each, flows={**each.flows, **others})


def hostile(repeats: int = 2) -> tuple[Record, list[Outcome]]:
    """The study with hostile names, texts and values."""
    record, outcomes = kyoto(repeats)
    path = f'traffic."{HOSTILE}".message'
    flows = [replace(flow, name=HOSTILE + flow.name) for flow in record.topology.flows]
    nodes = [replace(node, name=HOSTILE + node.name, kind=HOSTILE) for node in record.topology.nodes]
    links = [
        replace(link, name=HOSTILE, medium=HOSTILE, ends=[HOSTILE + end for end in link.ends])
        for link in record.topology.links
    ]
    place = Place(node=HOSTILE)
    made = [
        replace(
            each,
            variant=HOSTILE + each.variant,
            sweep={path: each.sweep["traffic.stream.message"]},
            flows={HOSTILE + name: _hostile(flow) for name, flow in each.flows.items()},
            nodes={HOSTILE: NodeOutcome(engines={HOSTILE: EngineOutcome(load=number % 2)})},
            drops=[replace(drop, place=place, cause=HOSTILE, flow=HOSTILE) for drop in each.drops],
        )
        for number, each in enumerate(outcomes)
    ]
    attacked = msgspec.structs.replace(
        record,
        id=HOSTILE,
        name=HOSTILE,
        description=HOSTILE,
        source=HOSTILE,
        text=HOSTILE * 3 + "\x00",
        overrides=[(HOSTILE, HOSTILE)],
        variants=[HOSTILE + name for name in record.variants],
        axes=(dataclasses.replace(MESSAGES, path=path),),
        topology=Drawing(nodes=nodes, links=links, flows=flows),
        environment={HOSTILE: HOSTILE, "version": HOSTILE},
        created=HOSTILE,
        status=HOSTILE,
    )
    return attacked, made


def _hostile(flow: FlowOutcome) -> FlowOutcome:
    kind = flow.kind if flow.kind == "cbr" else HOSTILE
    if flow.limit is None:
        return replace(flow, kind=kind)
    thing = Bottleneck(kind="link", name=HOSTILE, title=HOSTILE)
    stages = [replace(stage, name=HOSTILE + stage.name) for stage in flow.limit.stages]
    return replace(
        flow,
        kind=kind,
        bottleneck=thing,
        next_bottleneck=thing,
        summary=HOSTILE,
        limit=replace(flow.limit, stages=stages),
    )


def many_points(count: int) -> tuple[Record, list[Outcome]]:
    """A run with one variant, `count` swept values and 5 repeats."""
    chance = random.Random(3)
    values: list[tuple[str, float | None]] = [(f"{n} B", float(n)) for n in range(100, 100 + count)]
    swept_axis = axis("traffic.stream.message", values, "B")
    outcomes = []
    for number in range(100, 100 + count):
        rate = host(number)
        for repeat in range(5):
            got = rate * (1 - 0.02 * chance.random())
            flow = FlowOutcome(
                kind="udp-stream",
                goodput_bit_per_s=got,
                offered_bit_per_s=rate,
                datagrams=Datagrams(sent=10_000, received=9_990, lost=10, in_flight=0),
            )
            sweep = {"traffic.stream.message": float(number)}
            outcomes.append(outcome("base", "simulate", repeat, sweep, {"stream": flow}))
    record = Record(
        variants=["base"],
        axes=(swept_axis,),
        engines=["simulate"],
        points_total=len(outcomes),
        points_done=len(outcomes),
    )
    return record, outcomes
