"""Advice for a bottleneck in a CPU: fewer and larger packets, larger writes, or a faster CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from engpass.advice.base import Cost, Proposal, doubling, scaled
from engpass.advice.shaping import circuit_of
from engpass.explain.point_facts import Situation
from engpass.limiter import CPUS, limiting_kind
from engpass.settings import Amount

# MTU of a link (IEEE 802.3) or circuit (RFC 2225 section 5) if neither file nor catalogue gives one.
_MTU = {"link": Amount(Decimal(1500), "B"), "circuit": Amount(Decimal(9180), "B")}

_JUMBO = Amount(Decimal(9000), "B")
"""MTU of jumbo frames, the one of common use between 1500 B and 65,535 B."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Double the message or the MTU, or halve the CPU time that the host needs."""
    if at.idle("CPU") < 0.005 and not _limited_by_host(at):
        return
    words = f"send messages of {{}} with `{at.flow}`"
    yield from doubling(at, "message", Cost.APPLICATION, ("traffic", at.flow, "message"), words)
    yield from _larger_packets(at)
    start, end = at.ends
    for host, key in ((start, "cost"), (end, "receive_cost")):
        yield from _faster(at, host, key)


def _limited_by_host(at: Situation) -> bool:
    return limiting_kind(at.limited) in CPUS


def _larger_packets(at: Situation) -> Iterator[Proposal]:
    circuit = circuit_of(at)
    places = [("circuit", circuit)] if circuit is not None else [("link", hop.link) for hop in at.hops]
    amounts = [at.settings.amount(*place, "mtu") or _MTU[place[0]] for place in places]
    if not amounts:
        return
    # Raise all links of the path together, since the smallest MTU limits the packets.
    smallest = min(amounts, key=lambda amount: amount.number)
    where = f"of `{circuit}`" if circuit is not None else "on the path"
    media = [at.settings.get("link", hop.link, "medium") for hop in at.hops]
    if any(isinstance(medium, str) and medium.startswith("ethernet") for medium in media):
        # Frames between the standard size and this one are rare, and longer ones not in common use.
        if smallest.in_base()[0] < _JUMBO.number:
            words = f"raise the MTU {where} to {_JUMBO}"
            both = zip(places, amounts, strict=True)
            smaller = [place for place, amount in both if amount.in_base()[0] < _JUMBO.number]
            sets = [((*place, "mtu"), str(_JUMBO)) for place in smaller]
            yield Proposal.one("mtu", Cost.SETTING, words, *sets)
        return
    together = {(*place, "mtu"): smallest for place in places}
    yield from scaled("mtu", Cost.SETTING, together.items(), f"raise the MTU {where} to {{}}", named=smallest)


def _faster(at: Situation, host: str, key: str) -> Iterator[Proposal]:
    costs = at.settings.get("host", host, key)
    if not isinstance(costs, Mapping):
        return
    amounts = {("host", host, key, part): Amount.read(value) for part, value in costs.items()}
    words = f"give `{host}` a CPU {{}} times as fast"
    yield from scaled("cpu", Cost.HARDWARE, amounts.items(), words, factor=Decimal("0.5"))
