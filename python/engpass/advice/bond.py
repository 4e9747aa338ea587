"""Advice on bonds: another mode if one member is full while another is idle, and faster monitoring."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal
from engpass.explain.point_facts import DOWN, FULL, Bond, Situation

INTERVAL = "10 ms"
"""Monitoring interval to propose: a tenth of the default."""

_BY_PORTS = '{ hash = { layers = "layer-3+4" } }'


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose a hash of ports, round-robin in place of a hash, the reverse, and a shorter interval."""
    crowded = any(hop.idle < FULL for hop in at.hops)
    for bond in _crossed(at):
        members = [hop for hop in at.hops if hop.start == bond.node and hop.link in bond.links]
        if crowded and any(at.spared(hop) for hop in members):
            if not _hashes_ports(at, bond):
                yield _mode(bond, _BY_PORTS, "choose members by a hash of IP addresses and ports")
            if bond.mode == "hash":
                yield _mode(bond, "round-robin", "send packets round-robin over its members")
        if bond.mode == "round-robin" and at.tcp and at.arrives_twice:
            yield _mode(bond, _BY_PORTS, "keep each connection on one member by a hash")
        down = [drop for drop in at.lost_at(DOWN) if drop.place.link in bond.links]
        if down and at.settings.get("bond", bond.name, "monitor", "interval") != INTERVAL:
            words = f"let bond `{bond.name}` check its links every {INTERVAL}"
            path = ("bond", bond.name, "monitor", "interval")
            yield Proposal.one("bond", Cost.SETTING, words, (path, INTERVAL))


def _crossed(at: Situation) -> list[Bond]:
    """The bonds at either end of the links on the flow's path."""
    links = {hop.link for hop in at.hops}
    return [bond for bond in at.bonds if links.intersection(bond.links)]


def _hashes_ports(at: Situation, bond: Bond) -> bool:
    return at.settings.get("bond", bond.name, "mode", "hash", "layers") == "layer-3+4"


def _mode(bond: Bond, mode: str, words: str) -> Proposal:
    words = f"let bond `{bond.name}` {words}"
    return Proposal.one("bond", Cost.SETTING, words, (("bond", bond.name, "mode"), mode))
