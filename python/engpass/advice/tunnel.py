"""Tunnels: one that fragments what it would drop, and memory for fragments at its ends."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Candidate, Cost, Proposal
from engpass.explain.situation import NO_MEMORY, TOO_BIG, Situation
from engpass.settings import join

MEMORY = "64 MiB"
"""Memory for fragments: those of a second at 500 Mbit/s."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Fragments for tunnels that drop packets; memory for those whose ends have no more."""
    refusing = {drop.place.node for drop in at.lost_at(TOO_BIG)}
    full = {drop.place.node for drop in at.lost_at(NO_MEMORY)}
    for tunnel in at.topology.tunnels:
        name = tunnel.name
        if refusing.intersection(tunnel.ends) and at.settings.get("tunnel", name, "fragment") == "none":
            words = f"let tunnel `{name}` fragment packets that are too long"
            sets = ((join(("tunnel", name, "fragment")), '"inner"'),)
            yield Proposal("tunnel", Cost.SETTING, (Candidate(words, sets),))
        if full.intersection(tunnel.ends):
            words = f"give the ends of tunnel `{name}` {MEMORY} of memory for fragments"
            sets = ((join(("tunnel", name, "reassembly", "memory")), MEMORY),)
            yield Proposal("tunnel", Cost.SETTING, (Candidate(words, sets),))
