"""Advice: a longer time to live, if it ends before packets arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engpass.advice.base import Cost, Proposal
from engpass.explain.point_facts import EXPIRED, Situation

TTL = 64
"""Time to live to propose: the one that RFC 1700 recommends."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose a longer TTL of the flow's packets, and of the outer packets of tunnels."""
    if not at.lost_at(EXPIRED):
        return
    if _short(at, path := ("traffic", at.flow, "ttl")):
        yield Proposal.one("ttl", Cost.APPLICATION, f"send `{at.flow}` with a TTL of {TTL}", (path, str(TTL)))
    for tunnel in at.topology.tunnels:
        if _short(at, path := ("tunnel", tunnel.name, "ttl")):
            words = f"give outer packets of tunnel `{tunnel.name}` a TTL of {TTL}"
            yield Proposal.one("ttl", Cost.SETTING, words, (path, str(TTL)))


def _short(at: Situation, path: Sequence[str]) -> bool:
    ttl = at.settings.get(*path)
    return isinstance(ttl, int) and ttl < TTL
