"""Advice for a path MTU problem: routers that report too long packets by ICMP, or segments that fit."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal
from engpass.advice.sockets import tcp_path
from engpass.explain.point_facts import TOO_BIG, Situation
from engpass.types.plan import DrawnTunnel

HEADERS_BYTES = 40
"""Length of the IP and TCP headers without options."""

_MTU_BYTES = 1500
"""MTU of a link if the file gives none (IEEE 802.3)."""

_LONGEST_BYTES = 65_535
"""Length of the longest IP packet; a tunnel that fragments outer packets takes all that fit with headers."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose to switch on ICMP at routers that drop too long segments, or to lower the MSS of the sender.

    The lower MSS is proposed also if a tunnel on the path sends each full segment in two outer packets.
    """
    if not at.tcp:
        return
    routers = list(dict.fromkeys(drop.place.node for drop in at.lost_at(TOO_BIG)))
    silent = [router for router in routers if at.settings.get("router", router, "icmp") is False]
    if silent:
        names = " and ".join(f"`{router}`" for router in silent)
        routed = "router" if len(silent) == 1 else "routers"
        words = f"let {routed} {names} send ICMP messages about packets that are too long"
        sets = ((("router", router, "icmp"), "true") for router in silent)
        yield Proposal.one("path-mtu", Cost.SETTING, words, *sets)
    crossed = {end for hop in at.hops for end in (hop.start, hop.end)}
    tunnels = [tunnel for tunnel in at.topology.tunnels if crossed.issuperset(tunnel.ends)]
    if not routers and not any(_cuts(at, tunnel) for tunnel in tunnels):
        return
    given = (_mtu(at, hop.link) for hop in at.hops)
    sizes = [*(size for size in given if size is not None), *(_fitting(at, tunnel) for tunnel in tunnels)]
    path = tcp_path(at, at.ends[0], "mss")
    if path is None or not sizes or min(sizes) <= HEADERS_BYTES:
        return
    least, now = min(sizes) - HEADERS_BYTES, at.settings.amount(*path)
    if now is None or now.in_base()[0] > least:
        words = f"let `{at.ends[0]}` send segments that fit, at most {least} B"
        yield Proposal.one("path-mtu", Cost.SETTING, words, (path, f"{least} B"))


def _mtu(at: Situation, link: str) -> int | None:
    amount = at.settings.amount("link", link, "mtu")
    return int(amount.number) if amount is not None and amount.unit == "B" else None


def _cuts(at: Situation, tunnel: DrawnTunnel) -> bool:
    """True if a tunnel takes packets that fit no link on its path, and fragments the outer ones."""
    outer = at.settings.get("tunnel", tunnel.name, "fragment") == "outer"
    return outer and at.settings.amount("tunnel", tunnel.name, "mtu") is None


def _fitting(at: Situation, tunnel: DrawnTunnel) -> int:
    """The longest packet in bytes that enters a tunnel and fits the links on its path with the headers."""
    if at.settings.amount("tunnel", tunnel.name, "mtu") is not None:
        return tunnel.mtu_bytes
    under = [hop.link for hop in at.hops if {hop.start, hop.end} <= set(tunnel.route)]
    links = min((_mtu(at, link) or _MTU_BYTES for link in under), default=_MTU_BYTES)
    # The drawn tunnel may be that of another variant, which does not fragment outer packets.
    return tunnel.mtu_bytes if tunnel.mtu_bytes < links else links - (_LONGEST_BYTES - tunnel.mtu_bytes)
