"""Advice on tunnels: fragmentation instead of drops, and ends that reassemble more and check less."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from engpass.advice.base import Cost, Proposal
from engpass.explain.point_facts import NO_MEMORY, OUT_OF_SEQUENCE, OUT_OF_TIME, TOO_BIG, Situation
from engpass.settings import Amount

MEMORY = "64 MiB"
"""Memory for reassembly to propose: it holds the fragments of one second at about 500 Mbit/s."""

TIMEOUT = Amount(Decimal(30), "s")
"""Time for reassembly to propose: the default of Linux (`ipfrag_time`)."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose that tunnels fragment packets that they drop, and ends that drop no others.

    They get more memory or time for reassembly if they run out of it, and accept packets in any order.
    """
    refusing, full, late, overtaken = (
        {drop.place.node for drop in at.lost_at(cause)}
        for cause in (TOO_BIG, NO_MEMORY, OUT_OF_TIME, OUT_OF_SEQUENCE)
    )
    for tunnel in at.topology.tunnels:
        name = tunnel.name
        if refusing.intersection(tunnel.ends) and at.settings.get("tunnel", name, "fragment") == "none":
            words = f"let tunnel `{name}` fragment packets that are too long"
            yield Proposal.one("tunnel", Cost.SETTING, words, (("tunnel", name, "fragment"), '"inner"'))
        if full.intersection(tunnel.ends):
            words = f"give the ends of tunnel `{name}` {MEMORY} of reassembly memory"
            path = ("tunnel", name, "reassembly", "memory")
            yield Proposal.one("tunnel", Cost.SETTING, words, (path, MEMORY))
        time = at.settings.amount("tunnel", name, "reassembly", "timeout")
        if late.intersection(tunnel.ends) and time is not None and time.in_base() < TIMEOUT.in_base():
            words = f"let the ends of tunnel `{name}` wait {TIMEOUT} for fragments"
            path = ("tunnel", name, "reassembly", "timeout")
            yield Proposal.one("tunnel", Cost.SETTING, words, (path, str(TIMEOUT)))
        sequence = ("tunnel", name, "header", "gre", "sequence")
        if overtaken.intersection(tunnel.ends) and at.settings.get(*sequence) is True:
            words = f"let the ends of tunnel `{name}` accept packets in any order"
            yield Proposal.one("tunnel", Cost.SETTING, words, (sequence, "false"))
