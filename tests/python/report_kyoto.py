"""An invented run in the shape of the Kyoto UDP study, for tests of the report.

It has 4 variants x 64 message sizes x 5 repeats, computed in closed form: no engine ran. See `kyoto()`.
"""

import math
import random
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from engpass.campaign import Axis, AxisValue
from engpass.environment import Environment
from engpass.types.outcome import (
    VERSION,
    Bottleneck,
    Datagrams,
    Drop,
    Engine,
    FlowLimit,
    FlowOutcome,
    Outcome,
    Path,
    Place,
    Stage,
    Step,
    SweptValue,
)
from engpass.types.plan import Drawing, DrawnCircuit, DrawnFlow, DrawnLink, DrawnNode

TEXT = """\
name = "IP over ATM on a congested OC-3c link"

[host.ss2]
cost = { per_fragment = "0.93 ms", per_byte = "135 ns" }
[host.ss20]
[host.generator]

[switch.atomis5]
kind = "atm"
output_buffer = "384 cells"

[sweep]
"traffic.stream.message" = { from = "1 kB", to = "64 kB", step = "1 kB" }
"""

TOPOLOGY = Drawing(
    nodes=[
        DrawnNode(name="ss2", kind="host"),
        DrawnNode(name="ss20", kind="host"),
        DrawnNode(name="generator", kind="host"),
        DrawnNode(name="atomis5", kind="atm switch"),
    ],
    links=[
        DrawnLink(name=name, ends=ends, medium="oc-3c", rates_bit_per_s=[155_520_000, 155_520_000])
        for name, ends in (
            ("sender", ["ss2", "atomis5"]),
            ("receiver", ["atomis5", "ss20"]),
            ("load", ["generator", "atomis5"]),
        )
    ],
    circuits=[
        DrawnCircuit(name=name, from_=start, to="ss20", route=[start, "atomis5", "ss20"])
        for name, start in (("data", "ss2"), ("interference", "generator"))
    ],
    flows=[
        DrawnFlow(name=name, kind=kind, from_=start, to="ss20", route=[start, "atomis5", "ss20"])
        for name, kind, start in (("stream", "udp-stream", "ss2"), ("interference", "cbr", "generator"))
    ],
)

ENVIRONMENT: Environment = {
    "version": "0.1.0",
    "python": "3.11.7",
    "kernel": "Linux 6.1.0",
    "machine": "x86_64",
    "cpu": "Example CPU at 2.4 GHz",
    "cores": 2,
    "started": "1997-11-05T10:00:00Z",
    "hostname": "laboratory",
}


class Record(msgspec.Struct, frozen=True):
    """A run's record as the store returns it."""

    id: str = "3f9c2a71"
    name: str = "IP over ATM on a congested OC-3c link"
    description: str | None = (
        "What cell loss on a congested link does to UDP, and what shaping does against it."
    )
    source: str = "kyoto-1997.toml"
    text: str = TEXT
    overrides: list[tuple[str, str]] = msgspec.field(default_factory=list)
    engines: list[str] = msgspec.field(default_factory=lambda: ["limit", "simulate"])
    variants: list[str] = msgspec.field(
        default_factory=lambda: ["free", "congested", "shaped-16", "shaped-18"]
    )
    axes: tuple[Axis, ...] = ()
    repeats: int = 5
    topology: Drawing = TOPOLOGY
    environment: Environment = msgspec.field(default_factory=lambda: ENVIRONMENT)
    created: str = "1997-11-05T10:00:00Z"
    points_total: int = 0
    points_done: int = 0
    status: str = "done"


def axis(path: str, values: list[tuple[str, float | None]], unit: str | None) -> Axis:
    return Axis(path, tuple(AxisValue(text, number, unit) for text, number in values))


MESSAGES = axis("traffic.stream.message", [(f"{kilo} kB", kilo * 1000.0) for kilo in range(1, 65)], "B")


def host(length: int) -> float:
    """The rate that the CPU of the sending host reaches, in bit/s."""
    fragments = math.ceil((length + 8) / 9160)
    return length * 8 / (0.93e-3 * fragments + 135e-9 * length)


def wire(length: int, cells_per_s: float) -> float:
    """The payload rate of `cells_per_s`, in bit/s."""
    left, cells = length + 8, 0
    while left > 0:
        cells += math.ceil((min(left, 9160) + 20 + 16) / 48)
        left -= 9160
    return length * 8 * cells_per_s / cells


CELLS = {"free": 353_207.5, "congested": 57_959.0, "shaped-16": 56_513.0, "shaped-18": 57_959.0}


NARROW = {
    "host": Bottleneck(kind="sending-host", name="ss2", title="host `ss2`"),
    "line": Bottleneck(kind="link", name="receiver", title="link `receiver`"),
    "shaper": Bottleneck(kind="shaper", name="data", title="the shaper of circuit `data`"),
}


def limit(variant: str, length: int) -> dict[str, FlowOutcome]:
    line, own = wire(length, CELLS[variant]), host(length)
    goodput = min(line, own)
    narrow = NARROW["host" if own < line else "shaper" if variant == "shaped-16" else "line"]
    other, left = (NARROW["line"], line) if own < line else (NARROW["host"], own)
    reason = (
        f"sending a message of {length} B takes {length * 8e3 / own:.2f} ms"
        if own < line
        else "83.6 % of the line are taken"
    )
    stages = [
        ("line rate", 155_520_000.0),
        ("SDH framing", 149_760_000.0),
        ("left by interference", CELLS[variant] * 424),
        ("cell headers", CELLS[variant] * 384),
        ("AAL5, LLC/SNAP, IP, UDP", line),
        ("host ss2", goodput),
    ]
    return {
        "stream": FlowOutcome(
            kind="udp-stream",
            goodput_bit_per_s=goodput,
            offered_bit_per_s=goodput,
            bottleneck=narrow,
            next_bottleneck=other,
            summary=(
                f"{narrow.title} limits `stream` to {goodput / 1e6:.2f} Mbit/s: {reason}; "
                f"next is {other.title} at {left / 1e6:.2f} Mbit/s"
            ),
            limit=FlowLimit(
                stages=[Stage(name=name, rate_bit_per_s=rate) for name, rate in stages], candidates=[]
            ),
        )
    }


def datagrams(sent: int, received: int) -> Datagrams:
    """Counts of datagrams; all that are not received count as lost."""
    return Datagrams(sent=sent, received=received, lost=sent - received, in_flight=0)


def simulate(variant: str, length: int, chance: random.Random) -> dict[str, FlowOutcome]:
    offered = host(length) * (1 - 0.004 * chance.random())
    share = min(1.0, wire(length, 56_513.0) / offered) if variant == "shaped-16" else 1.0
    offered *= share
    goodput = offered
    if variant in ("congested", "shaped-18") and offered > wire(length, 57_959.0):
        goodput = offered * 0.03 * chance.random()
    flows = {
        "stream": FlowOutcome(
            kind="udp-stream",
            goodput_bit_per_s=goodput,
            offered_bit_per_s=offered,
            datagrams=datagrams(round(offered * 10 / 8 / length), round(goodput * 10 / 8 / length)),
        )
    }
    if variant != "free":
        flows["interference"] = FlowOutcome(
            kind="cbr",
            goodput_bit_per_s=113_375_232.0,
            offered_bit_per_s=113_375_232.0,
            datagrams=datagrams(2_952_480, 2_952_480),
        )
    return flows


FIRST = {"stream": ("sender", "ss2"), "interference": ("load", "generator")}
"""The first link of each flow, and its sender."""


def path(flow: str) -> Path:
    """The path of a flow: its first link, then the link of the receiver."""
    link, start = FIRST[flow]
    return Path(
        share=1.0,
        steps=[
            Step(link=link, from_=start, to="atomis5"),
            Step(link="receiver", from_="atomis5", to="ss20"),
        ],
    )


def outcome(
    variant: str,
    engine: Engine,
    repeat: int,
    sweep: Mapping[str, float | str],
    flows: Mapping[str, FlowOutcome],
) -> Outcome:
    """An outcome of these flows with their paths; the queue of the switch drops the losses of `stream`."""
    counted = flows["stream"].datagrams
    lost = counted.lost if counted else 0
    drop = Drop(
        place=Place(node="atomis5", link="receiver", to="ss20"),
        cause="buffer full",
        flow="stream",
        cells=64 * lost,
        datagrams=lost,
    )
    return Outcome(
        version=VERSION,
        variant=variant,
        engine=engine,
        repeat=repeat,
        seed=repeat + 1 if engine == "simulate" else 0,
        sweep={
            key: SweptValue(text=value) if isinstance(value, str) else SweptValue(number=value)
            for key, value in sweep.items()
        },
        flows={name: replace(flow, paths=[path(name)]) for name, flow in flows.items()},
        links={},
        drops=[drop] if lost else [],
    )


def kyoto(repeats: int = 5) -> tuple[Record, list[Outcome]]:
    """The study: its record and its outcomes."""
    chance = random.Random(1997)
    outcomes = []
    for variant in CELLS:
        for kilo in range(1, 65):
            length = kilo * 1000
            sweep = {"traffic.stream.message": float(length)}
            outcomes.append(outcome(variant, "limit", 0, sweep, limit(variant, length)))
            outcomes += [
                outcome(variant, "simulate", repeat, sweep, simulate(variant, length, chance))
                for repeat in range(repeats)
            ]
    return Record(
        axes=(MESSAGES,), repeats=repeats, points_total=len(outcomes), points_done=len(outcomes)
    ), outcomes
