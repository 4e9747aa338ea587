"""Advice: limit the sender to the free rate of the tightest line, by a shaper or by the application."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from engpass import formatting
from engpass.advice import ports
from engpass.advice.base import Candidate, Cost, Proposal
from engpass.explain.point_facts import INPUT_FULL, LOW_PRIORITY, Hop, Situation, direction
from engpass.settings import Amount, join

_BELOW = Decimal("0.98")
"""Factor for a rate a little below the free one, which leaves room for bursts: our choice."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose to shape the circuit to the free cell rate, or to pace a UDP application to the limit."""
    losses = any(drop.cause in (*ports.QUEUED, "policer") for drop in at.own_drops)
    # A policer may also tag cells, which queues then drop first.
    if at.lost_at("policer") or at.lost_at(LOW_PRIORITY):
        yield from _conforming(at)
    if losses or at.idle("shaper") > 0:
        yield from _shaped(at)
    suffers = losses or bool(at.lost_at(INPUT_FULL)) or at.needs.waits(at.served)
    if suffers and at.overload and at.fair >= 1:
        value = f"{math.floor(at.fair)} bit/s"
        words = f"send `{at.flow}` at {formatting.rate(at.fair)}"
        yield Proposal.one("pacing", Cost.APPLICATION, words, (("traffic", at.flow, "rate"), value))


def _conforming(at: Situation) -> Iterator[Proposal]:
    """Propose to shape the circuit to the rate of its policer, and as a second step a little below it."""
    circuit = crossed(at)
    rate = at.settings.amount("circuit", circuit, "policing", "rate") if circuit is not None else None
    if circuit is None or rate is None:
        return
    path = join(("circuit", circuit, "shaping"))
    lower = rate.times(_BELOW)
    steps = (
        Candidate(f"shape `{circuit}` to {rate}, the rate of its policer", ((path, str(rate)),)),
        Candidate(f"shape `{circuit}` to {lower}, just below its policer", ((path, str(lower)),)),
    )
    yield Proposal("shaping", Cost.SETTING, steps)


def _shaped(at: Situation) -> Iterator[Proposal]:
    circuit = crossed(at)
    left = free(at)
    if circuit is None or left is None:
        return
    hop, share = left
    seconds = _measured(at)
    rate = math.floor(share * hop.cells / seconds) if seconds else 0
    if rate < 1:
        return
    path = join(("circuit", circuit, "shaping"))
    free_part = "the rate" if share > 0.9995 else f"the free {formatting.percent(share)}"
    words = f"shape `{circuit}` to {rate:,} cells/s, {free_part} of link `{hop.link}`"
    # The second step is slightly lower: a line that is full to the last cell has no room for bursts.
    lower = math.floor(rate * _BELOW)
    steps = (
        Candidate(words, ((path, f"{rate} cells/s"),)),
        Candidate(f"shape `{circuit}` to {lower:,} cells/s", ((path, f"{lower} cells/s"),)),
    )
    yield Proposal("shaping", Cost.SETTING, steps)


def crossed(at: Situation) -> str | None:
    """The circuit on the flow's path that leads in the flow's direction: only that way it can be shaped."""
    nodes = [hop.start for hop in at.hops[:1]] + [hop.end for hop in at.hops]
    for circuit in at.topology.circuits:
        route = circuit.route
        # Circuits between two hosts are left to `circuit_of`: here they may carry other traffic.
        between = at.is_switch(circuit.from_) or at.is_switch(circuit.to)
        if between and any(nodes[begin : begin + len(route)] == route for begin in range(len(nodes))):
            return circuit.name
    return circuit_of(at)


def circuit_of(at: Situation) -> str | None:
    """The circuit between the hosts of the flow; `None` if there is none in the flow's direction."""
    named = at.settings.get("traffic", at.flow, "circuit")
    for circuit in at.topology.circuits:
        wanted = circuit.name == named if named else (circuit.from_, circuit.to) == at.ends
        if wanted:
            return circuit.name if circuit.from_ == at.ends[0] else None
    return None


def free(at: Situation) -> tuple[Hop, float] | None:
    """The hop with the fewest free cells, and the share of its line that other flows leave free."""
    found = []
    for hop in at.hops:
        side = direction(at.limits, hop.link, hop.start)
        if side is not None and hop.rate and hop.cells:
            taken = math.fsum(one.share for one in side.shares if one.flow != at.flow)
            found.append((hop, max(0.0, 1.0 - taken)))
    return min(found, key=lambda one: one[0].cells * one[1], default=None)


def _measured(at: Situation) -> float:
    """Length of a run's measurement window in seconds."""

    def seconds(key: str) -> float:
        amount = Amount.read(at.settings.get("run", key))
        return float(amount.in_base()[0]) if amount else 0.0

    return seconds("duration") - seconds("warmup")
