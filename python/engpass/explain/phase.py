"""Flows whose packets always meet a full queue in the same phase, because nothing in the testbed is random.

A queue without chance then drops packets of the same flow again and again. Real hosts and lines vary enough
to break the lock, so the shares of such a run are an artefact of the testbed (Floyd and Jacobson, "Traffic
Phase Effects in Packet-Switched Gateways", CCR 21(2), 1991). The losses show it for streams with constant
intervals. TCP slows down after a loss, so only another run shows it: one with a small jitter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

import msgspec

from engpass import formatting
from engpass.explain.point_facts import Hop, Situation
from engpass.explain.resimulate import Bench, Flows
from engpass.explain.shaken import Shaken
from engpass.results import ledger, samples
from engpass.results.equal_repeats import FULL
from engpass.results.samples import GOODPUT, TRANSFER_TIME
from engpass.settings import Amount, join
from engpass.types.signals import Signal

_PERIODIC = frozenset({"udp-stream", "multicast"})
"""Kinds of traffic that send at constant intervals."""

_FAR = 2.0
"""A loss share is disproportionate if it is this many times the share of all flows together: our choice."""

_CHANGED = 1.25
"""The phase matters if a jitter changes greatest over least value by more than this factor: our choice."""


class Lock(msgspec.Struct, frozen=True):
    """The flow that loses the smallest share of its datagrams at a full queue, and this share."""

    best: str
    loss: float

    @property
    def text(self) -> str:
        """A sentence on the unequal losses and the cures."""
        return (
            f"`{self.best}` loses {formatting.percent(self.loss)} there: both send at constant intervals and"
            " nothing is random, so their packets meet the full queue in the same phase"
            " (a `jitter` of a link, `poisson` traffic or another `start` ends this)"
        )


def locked(at: Situation) -> Lock | None:
    """The best served flow at the full queue where the flow loses far more than its part, or `None`."""
    hop = next((hop for drop in at.lost_at(FULL) for hop in at.hops if hop.is_at(drop.place)), None)
    if hop is None or any(_varies(at, name) for name in (at.flow, *at.others_on(hop))):
        return None
    lost = {drop.flow: drop.datagrams for drop in at.drops if drop.cause == FULL and hop.is_at(drop.place)}
    sent = {name: at.sent_by(name) for name in (at.flow, *at.others_on(hop))}
    shares = {name: lost.get(name, 0.0) / count for name, count in sent.items() if count}
    whole = sum(lost.values()) / sum(sent.values()) if sum(sent.values()) else 0.0
    if len(shares) < 2 or not whole:
        return None
    best = min(shares, key=lambda name: shares[name])
    apart = shares.get(at.flow, 0.0) >= min(_FAR * whole, (1 + whole) / 2) and shares[best] <= whole / _FAR
    return Lock(best, shares[best]) if apart else None


def _varies(at: Situation, flow: str) -> bool:
    """True if a flow has no constant intervals, or a line on its path delays or loses packets by chance."""
    kinds = {one.name: one.kind for one in at.topology.flows}
    links = {link for link, _, _ in ledger.route(at.outcomes[0], flow)}
    chance = any(_given(at, link, key) for link in links for key in ("jitter", "loss", "reorder"))
    return kinds.get(flow) not in _PERIODIC or chance


def _given(at: Situation, link: str, key: str) -> bool:
    amount = at.settings.amount("link", link, key)
    return at.settings.get("link", link, key) is not None if amount is None else bool(amount.number)


def shaken(at: Situation, bench: Bench) -> Shaken | None:
    """What TCP flows that fill a queue together get with a jitter; `None` if that is about the same.

    Simulates one run if a flow is one of several, and outcomes do not depend on the seed.
    """
    hop = _contested(at) if bench.alike else None
    if hop is None:
        return None
    names = [at.flow, *_rivals(at, hop)]
    first = {name: ledger.route(at.outcomes[0], name)[0] for name in names}
    links = tuple(dict.fromkeys(link for link, _, _ in first.values()))
    jitter = _packet_time(hop, bench)
    changes = [(join(("link", link, "jitter")), jitter) for link in links]
    made = bench.served(changes, lambda _place, _made: False)
    if made is None:
        return None
    (before, *_), (after,) = bench.baseline(), made
    for signal in (TRANSFER_TIME, GOODPUT):
        old, new = (_values(flows, names, signal) for flows in (before, after))
        if len(old) == len(new) == len(names):
            spreads = _spread(old), _spread(new)
            apart = max(spreads) > _CHANGED * min(spreads)
            ends = signal is TRANSFER_TIME
            one = Shaken(flow=at.flow, links=links, jitter=jitter, ends=ends, before=old, after=new)
            return one if apart else None
    return None


def _contested(at: Situation) -> Hop | None:
    """The line of the path at whose full queue TCP flows lose most, if the flow is one of several there."""
    most, contested = 0.0, None
    for hop in at.hops if at.tcp else ():
        tcp = {at.flow, *_rivals(at, hop)}
        drops = [one for one in at.drops if one.cause == FULL and one.flow in tcp and hop.is_at(one.place)]
        lost = math.fsum(drop.datagrams for drop in drops)
        if tcp != {at.flow} and lost > most:
            most, contested = lost, hop
    return contested


def _rivals(at: Situation, hop: Hop) -> list[str]:
    tcp = {flow.name for flow in at.topology.flows if flow.kind == "tcp-stream"}
    return [name for name in at.others_on(hop) if name in tcp]


def _packet_time(hop: Hop, bench: Bench) -> str:
    """The time of the largest packet on a line, rounded up to 1, 2 or 5 in the first digit."""
    link = next(link for link in bench.numbers.links if link.name == hop.link)
    least = 8e9 * (link.mtu_bytes + link.overhead_bytes) / min(link.rates_bit_per_s)
    steps = (digit * 10**power for power in range(10) for digit in (1, 2, 5))
    nanoseconds = next(step for step in steps if step >= least)
    unit, factor = next(pair for pair in (("ms", 10**6), ("us", 10**3), ("ns", 1)) if nanoseconds >= pair[1])
    return str(Amount(Decimal(nanoseconds // factor), unit))


def _values(flows: Flows, names: list[str], signal: Signal) -> dict[str, float]:
    found = {name: samples.value(flows[name], signal) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _spread(values: Mapping[str, float]) -> float:
    """The greatest value over the least, at most a million: a flow may get nothing."""
    most = max(values.values())
    return most / max(min(values.values()), 1e-6 * most) if most else 1.0
