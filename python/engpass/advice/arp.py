"""Advice on ARP: routers that hold more packets, keep addresses longer, or ask again at other intervals."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from engpass.advice.base import Candidate, Cost, Proposal
from engpass.explain.point_facts import HOLD_FULL, NO_REPLY, Situation
from engpass.settings import Amount, join

HOLDS = (3, 101, 1000)
"""Packets held per unresolved neighbour, to try: as Linux before 3.3, as Linux today, and more."""

LIFETIME = Amount(Decimal(4), "h")
"""Lifetime of an ARP entry to propose: the default of Cisco routers."""

RETRY = Amount(Decimal(100), "ms")
"""Interval between ARP requests to propose: a tenth of the shortest one that RFC 1122 recommends, 1 s."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose longer queues and lifetimes if packets are lost, another interval if no reply comes."""
    full = [drop.place.node for drop in at.lost_at(HOLD_FULL)]
    unanswered = [drop.place.node for drop in at.lost_at(NO_REPLY)]
    for router in dict.fromkeys((*full, *unanswered)):
        hold = at.settings.get("router", router, "arp", "hold")
        more = [size for size in HOLDS if not isinstance(hold, int) or size > hold]
        if router in full and more:
            words = "let router `{}` hold {} packets for each address while it waits for an ARP reply"
            path = join(("router", router, "arp", "hold"))
            steps = tuple(Candidate(words.format(router, size), ((path, str(size)),)) for size in more)
            yield Proposal("arp", Cost.SETTING, steps)
        if _is_less(at, router, "lifetime", LIFETIME):
            yield _set(router, "lifetime", LIFETIME, f"let router `{router}` keep ARP entries for {LIFETIME}")
        if router in unanswered:
            # The interval may be too long for a station that comes back, or too short for a reply on its way.
            retry = at.settings.amount("router", router, "arp", "retry")
            if _is_less(at, router, "retry", RETRY) and retry is not None:
                retry = retry.times(10)
            elif retry != RETRY:
                retry = RETRY
            if retry is not None:
                words = f"let router `{router}` repeat ARP requests after {retry}"
                yield _set(router, "retry", retry, words)


def _is_less(at: Situation, router: str, key: str, than: Amount) -> bool:
    """True if the ARP time `key` of a router is shorter than `than`, or not set."""
    now = at.settings.amount("router", router, "arp", key)
    return now is None or now.in_base()[0] < than.in_base()[0]


def _set(router: str, key: str, value: Amount, words: str) -> Proposal:
    return Proposal.one("arp", Cost.SETTING, words, (("router", router, "arp", key), str(value)))
