"""Address resolution: routers that hold more packets, know addresses for longer, or ask more often."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Candidate, Cost, Proposal
from engpass.explain.situation import HOLD_FULL, NO_REPLY, Situation
from engpass.settings import join

HOLDS = (3, 101, 1000)
"""Packets that a router holds for a neighbour: as Linux did before 3.3, as it does today, and more."""

LIFETIME = "240 min"
"""For how long routers of Cisco know an address."""

RETRY = "100 ms"
"""Ten times as often as RFC 1122 wants: at most one request in a second."""


def propose(at: Situation) -> Iterator[Proposal]:
    """A larger hold and a longer lifetime where it is full; requests in shorter turns where they are lost."""
    full = [drop.place.node for drop in at.lost_at(HOLD_FULL)]
    unanswered = [drop.place.node for drop in at.lost_at(NO_REPLY)]
    for router in dict.fromkeys((*full, *unanswered)):
        hold = at.settings.get("router", router, "arp", "hold")
        more = [size for size in HOLDS if not isinstance(hold, int) or size > hold]
        if router in full and more:
            words = "let router `{}` hold {} packets for each address that it asks for"
            path = join(("router", router, "arp", "hold"))
            steps = tuple(Candidate(words.format(router, size), ((path, str(size)),)) for size in more)
            yield Proposal("arp", Cost.SETTING, steps)
        words = f"let router `{router}` know addresses for {LIFETIME}"
        yield _set(router, "lifetime", LIFETIME, words)
        if router in unanswered:
            words = f"let router `{router}` repeat its requests after {RETRY}"
            yield _set(router, "retry", RETRY, words)


def _set(router: str, key: str, value: str, words: str) -> Proposal:
    sets = ((join(("router", router, "arp", key)), value),)
    return Proposal("arp", Cost.SETTING, (Candidate(words, sets),))
