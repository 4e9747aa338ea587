"""Invented ledgers and timelines for tests: balanced to the bit, in the shape of the Kyoto testbed.

No engine ran; `books` posts the rest of the capacity to one account, so that the sums are exact.
"""

import math
import random
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from engpass.explain.select_point import Chosen
from engpass.results.outcomes import swept
from engpass.types.outcome import (
    CellCounts,
    DirectionOutcome,
    FlowLine,
    Ledger,
    LinkOutcome,
    Outcome,
    QueueLine,
    TcpLine,
    Timeline,
)
from report_kyoto import MESSAGES, Record, kyoto

UNITS_PER_BIT = 13
CAPACITY = 155_520_000 * UNITS_PER_BIT * 10
"""Ten seconds of an OC-3c, in thirteenths of a bit."""


def books(shares: Mapping[str, float], rest: str, capacity: int = CAPACITY) -> Ledger:
    """A balanced ledger: shares of the capacity, and the remainder in the account `rest`."""
    accounts = {name: math.floor(share * capacity) for name, share in shares.items() if share > 0}
    left = capacity - sum(accounts.values())
    assert left >= 0
    accounts[rest] = accounts.get(rest, 0) + left
    return Ledger(units_per_bit=UNITS_PER_BIT, capacity=capacity, accounts=accounts)


def direction(start: str, end: str, kept: Ledger) -> DirectionOutcome:
    """A direction of an OC-3c link with only its capacity and its ledger."""
    cells = CellCounts(capacity=3_532_075, sent=0, clp1=0, efci=0, lost=0)
    return DirectionOutcome(from_=start, to=end, cells=cells, ledger=kept)


def link(start: str, end: str, forward: Ledger, back: Ledger) -> LinkOutcome:
    """A link of an outcome with its two directions."""
    return LinkOutcome(directions=[direction(start, end, forward), direction(end, start, back)])


def nobody() -> Ledger:
    """The ledger of a direction without senders."""
    return books({}, "idle: no sender")


def overheads(share: float) -> dict[str, float]:
    """The accounts of headers and padding in cells that take this share of the line."""
    return {
        "physical framing": share * 1 / 27,
        "cell headers": share * 26 / 27 * 5 / 53,
        "padding": share * 0.002,
        "AAL5 trailers": share * 0.0008,
        "encapsulation": share * 0.0009,
        "IP headers": share * 0.002,
        "transport headers": share * 0.0008,
    }


def links(sent: float, good: float, other: float, why: str = "idle: CPU") -> dict[str, LinkOutcome]:
    """The links of an outcome; as shares of a line, `sent` is offered, `good` arrives, `other` is CBR."""
    head = overheads(good)
    forward = {**head, "delivered": good - sum(head.values())}
    lost = max(0.0, min(sent, 1 - other) - good)
    narrow = books({**forward, "lost datagrams": lost, "generator: interference": other}, why)
    first = books({**forward, "lost datagrams": max(0.0, sent - good)}, why)
    load = books({"generator: interference": other}, "idle: no sender")
    return {
        "sender": link("ss2", "atomis5", first, nobody()),
        "receiver": link("atomis5", "ss20", narrow, nobody()),
        "load": link("generator", "atomis5", load, nobody()),
    }


def with_ledgers(repeats: int = 2) -> tuple[Record, list[Outcome]]:
    """The study of `report_kyoto` with a ledger in every simulated outcome."""
    run, outcomes = kyoto(repeats)
    return run, [_with_ledger(outcome) if outcome.engine == "simulate" else outcome for outcome in outcomes]


def _with_ledger(outcome: Outcome) -> Outcome:
    stream = outcome.flows["stream"]
    other = 0.8359 if "interference" in outcome.flows else 0.0
    payload = 155.52e6 * 384 / 424 * 26 / 27
    sent = stream.offered_bit_per_s / payload
    good = stream.goodput_bit_per_s / payload
    return replace(outcome, links=links(sent, min(good, 1 - other - 0.001), other))


def timeline(seconds: float = 10.0, samples: int = 1000) -> Timeline:
    """A timeline of a TCP flow with a sawtooth, losses and two timeouts."""
    chance = random.Random(3)
    window, total = 1.0, 0.0
    times: list[float] = []
    windows: list[int] = []
    flights: list[int] = []
    delivered: list[int] = []
    lengths: list[int] = []
    again: list[float] = []
    drops: list[float] = []
    late: list[float] = []
    for index in range(samples):
        time = seconds * index / samples
        window += 0.12
        if window > 24 + 6 * chance.random():
            drops.append(time)
            again.append(time + 0.01)
            if chance.random() < 0.2:
                late.append(time + 0.2)
                window = 1.0
            else:
                window /= 2
        total += window * 9140 * seconds / samples / 0.02
        times.append(time)
        windows.append(round(window * 9140))
        flights.append(round(max(0.0, window - chance.random()) * 9140))
        delivered.append(round(total))
        lengths.append(max(0, int((window - 12) * 20)))
    tcp = TcpLine(
        congestion_window_bytes=windows,
        receive_window_bytes=[262_144] * samples,
        flight_bytes=flights,
        retransmissions=again,
        timeouts=late,
    )
    contended = QueueLine(time_s=times, length=lengths, unit="cells", capacity=384, drops=drops)
    idle = QueueLine(time_s=times, length=[0] * samples, unit="cells", drops=[])
    return Timeline(
        duration_s=seconds,
        flows={
            "stream": FlowLine(time_s=times, tcp=tcp, delivered_bytes=delivered),
            "interference": FlowLine(time_s=times, delivered_bytes=delivered),
        },
        queues={"atomis5 -> ss20": contended, "ss2 -> atomis5": idle},
    )


def chosen(variant: str = "congested", message: str = "9 kB", **more: Any) -> Chosen:
    """A point of the gallery's study with invented outcomes that have ledgers."""
    from engpass import gallery, load

    study = load(gallery.study("kyoto-1997").testbed)
    _, outcomes = with_ledgers()
    number = next(v.number for v in MESSAGES.values if v.text == message)
    mine = [
        o for o in outcomes if (o.engine, o.variant, swept(o, MESSAGES.path)) == ("simulate", variant, number)
    ]
    values: dict[str, Any] = {
        "run_id": "3f9c2a71",
        "name": study.name,
        "text": study.text,
        "source": study.source,
        "overrides": (),
        "topology": study.topology,
        "variant": variant,
        "sweep": ((MESSAGES.path, message),),
        "flow": "stream",
        "repeats": len(mine),
        "has_variants": True,
        "outcomes": tuple(_renamed(outcome) for outcome in mine),
        "current": True,
        "selected_as_worst": False,
        "receiver": "",
    }
    return Chosen(**{**values, **more})


def _renamed(outcome: Outcome) -> Outcome:
    """Rename the generator's link as in the study."""
    names = {"load": "generator"}
    return replace(outcome, links={names.get(name, name): use for name, use in outcome.links.items()})


__all__ = ["MESSAGES", "books", "chosen", "link", "links", "nobody", "overheads", "timeline", "with_ledgers"]
