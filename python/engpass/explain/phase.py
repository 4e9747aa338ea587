"""Streams with constant intervals whose packets always meet a full queue in the same phase.

A queue without chance then drops packets of the same stream again and again. Real hosts and lines vary enough
to break the lock, so the shares of such a run are an artefact of the testbed (Floyd and Jacobson, "Traffic
Phase Effects in Packet-Switched Gateways", CCR 21(2), 1991).
"""

from __future__ import annotations

import msgspec

from engpass import formatting
from engpass.explain.point_facts import Situation
from engpass.results import ledger

_PERIODIC = frozenset({"udp-stream", "multicast"})
"""Kinds of traffic that send at constant intervals."""

_FULL = "buffer full"
"""The cause of drops in a queue that does not draw random numbers."""

_FAR = 2.0
"""A loss share is disproportionate if it is this many times the share of all flows together: our choice."""


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
    hop = next((hop for drop in at.lost_at(_FULL) for hop in at.hops if hop.is_at(drop.place)), None)
    if hop is None or any(_varies(at, name) for name in (at.flow, *at.others_on(hop))):
        return None
    lost = {drop.flow: drop.datagrams for drop in at.drops if drop.cause == _FULL and hop.is_at(drop.place)}
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
