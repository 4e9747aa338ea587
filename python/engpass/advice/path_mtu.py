"""Advice for a path MTU problem: routers that report too long packets by ICMP, or segments that fit."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal
from engpass.advice.sockets import tcp_path
from engpass.explain.point_facts import TOO_BIG, Situation

HEADERS_BYTES = 40
"""Length of the IP and TCP headers without options."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose to switch on ICMP at routers that drop too long segments, or to lower the MSS of the sender."""
    routers = list(dict.fromkeys(drop.place.node for drop in at.lost_at(TOO_BIG)))
    if not at.tcp or not routers:
        return
    silent = [router for router in routers if at.settings.get("router", router, "icmp") is False]
    if silent:
        names = " and ".join(f"`{router}`" for router in silent)
        routed = "router" if len(silent) == 1 else "routers"
        words = f"let {routed} {names} send ICMP messages about packets that are too long"
        sets = ((("router", router, "icmp"), "true") for router in silent)
        yield Proposal.one("path-mtu", Cost.SETTING, words, *sets)
    mtus = [at.settings.amount("link", hop.link, "mtu") for hop in at.hops]
    sizes = [int(amount.number) for amount in mtus if amount is not None and amount.unit == "B"]
    crossed = {end for hop in at.hops for end in (hop.start, hop.end)}
    sizes += [tunnel.mtu_bytes for tunnel in at.topology.tunnels if crossed.issuperset(tunnel.ends)]
    path = tcp_path(at, at.ends[0], "mss")
    if path is not None and sizes and min(sizes) > HEADERS_BYTES:
        size = f"{min(sizes) - HEADERS_BYTES} B"
        words = f"let `{at.ends[0]}` send segments that fit, at most {size}"
        yield Proposal.one("path-mtu", Cost.SETTING, words, (path, size))
