"""Advice on tunnels: fragmentation instead of drops, and more memory for reassembly at the ends."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal
from engpass.explain.point_facts import NO_MEMORY, TOO_BIG, Situation

MEMORY = "64 MiB"
"""Memory for reassembly to propose: it holds the fragments of one second at about 500 Mbit/s."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose that tunnels fragment packets that they drop, and more memory for ends that run out of it."""
    refusing = {drop.place.node for drop in at.lost_at(TOO_BIG)}
    full = {drop.place.node for drop in at.lost_at(NO_MEMORY)}
    for tunnel in at.topology.tunnels:
        name = tunnel.name
        if refusing.intersection(tunnel.ends) and at.settings.get("tunnel", name, "fragment") == "none":
            words = f"let tunnel `{name}` fragment packets that are too long"
            yield Proposal.one("tunnel", Cost.SETTING, words, (("tunnel", name, "fragment"), '"inner"'))
        if full.intersection(tunnel.ends):
            words = f"give the ends of tunnel `{name}` {MEMORY} of reassembly memory"
            path = ("tunnel", name, "reassembly", "memory")
            yield Proposal.one("tunnel", Cost.SETTING, words, (path, MEMORY))
