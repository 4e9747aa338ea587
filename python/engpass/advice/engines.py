"""Engines of routers in the file: the route processor and the line cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from engpass.explain.point_facts import Situation
from engpass.limiter import is_limited_by
from engpass.settings import Path

WORK = {
    "per_packet": "forward a packet",
    "process": "switch a packet in a process",
    "per_copy": "make a copy",
    "per_fragment": "make a fragment",
    "encapsulate": "encapsulate a packet",
    "decapsulate": "decapsulate a packet",
    "punt": "hand a packet to the route processor",
}
"""Kinds of work of an engine: the key of its time, and a verb."""


LEAST = 0.005
"""Share of the time that a line waits before advice changes what is in front of it: our choice."""


def holds_back(at: Situation, router: str) -> bool:
    """Whether the router limits the flow, or a line of the flow behind it waits for packets from it.

    A line behind a router that limits TCP waits for the windows of the sender, not for the router.
    """
    waits = at.idle("upstream") >= LEAST and any(hop.start == router for hop in at.hops)
    return waits or is_limited_by(at.limited, "router", router)


class Engine(msgspec.Struct, frozen=True):
    """An engine of a router."""

    path: Path
    """Path of its table in the file."""
    name: str
    """Its name in sentences."""
    card: str | None
    """Name of the line card; `None` for the route processor."""


def of(at: Situation, router: str, card: str | None) -> Engine:
    """The engine of a router with this card, or its route processor."""
    path = ("router", router)
    if card is not None:
        return Engine((*path, "cards", card, "engine"), f"card `{card}` of router `{router}`", card)
    long_form = at.settings.get(*path, "processor") is not None
    return Engine((*path, "processor") if long_form else path, f"router `{router}`", None)


def all_of(at: Situation, router: str) -> Iterator[Engine]:
    """The engines of a router: the route processor, then the line cards."""
    yield of(at, router, None)
    cards = at.settings.get("router", router, "cards")
    for card in cards if isinstance(cards, Mapping) else ():
        yield of(at, router, card)
