"""The queues that drop packets of a flow: the paths of their settings, and other values for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from engpass.advice.base import DOUBLINGS, Candidate, Cost, Proposal
from engpass.explain.point_facts import Hop, Situation
from engpass.settings import Amount, join, kinds, split
from engpass.source import Toml

ROOM = ("buffer full", "discard policy", "CLP threshold")
QUEUED = (*ROOM, "early drop", "codel", "exceeds token bucket burst")
"""Causes of drops in a queue. `ROOM` has those that a larger queue may prevent, `QUEUED` all of them."""

HALF = Decimal("0.5")

_FAMILY = "queue discipline"
_DEFAULT = "drop-tail"

_AGREED = "token-bucket"
"""The queue discipline that enforces an agreed rate; no proposal replaces it by another discipline."""


class Port(NamedTuple):
    """The port of a switch or router that sends on `link`; others may lead to the same neighbour."""

    node: str
    end: str
    link: str

    @staticmethod
    def of(hop: Hop) -> Port:
        """The port that sends on a line."""
        return Port(hop.start, hop.end, hop.link)

    def name(self, at: Situation) -> str:
        """The port in words: its node and the neighbour, with the link if that has its own queue."""
        own = self.link in at.parallel and _has_queue(at, self.link)
        return f"`{self.node}` towards `{self.end}`{f' over `{self.link}`' if own else ''}"


class Queue(msgspec.Struct, frozen=True):
    """The queue discipline of a port that sends packets, not cells: its path in the file, kind, settings."""

    path: tuple[str, ...]
    kind: str
    settings: Mapping[str, Toml]

    @property
    def limit(self) -> str:
        """The limit of the queue as text: the given one, or the default of its kind."""
        given = self.settings.get("limit")
        key = kinds(_FAMILY)[self.kind].get("limit")
        return str(given or (key and key.default) or "")

    def with_limit(self, limit: str) -> str:
        """The value for `path` that changes only the limit, as an inline table."""
        inner = {**self.settings, "limit": limit}
        pairs = ", ".join(f"{key} = {_toml(value)}" for key, value in inner.items())
        return f"{{ {self.kind} = {{ {pairs} }} }}"


def with_limit(kind: str, queue: Queue) -> str:
    """The value for another discipline with the limit of a queue, also a default: only the kind changes."""
    key = kinds(_FAMILY)[kind].get("limit")
    if key is None or (key.default == queue.limit and "limit" not in queue.settings):
        return kind
    return f"{{ {kind} = {{ limit = {_toml(queue.limit)} }} }}"


def complete(kind: str) -> bool:
    """True if a queue discipline has no required settings."""
    return not any(key.required for key in kinds(_FAMILY)[kind].values())


def losing(at: Situation, causes: Sequence[str] = QUEUED) -> list[Port]:
    """The ports whose queues drop datagrams of the flow, the one with most drops first."""
    places = (drop.place for drop in at.own_drops if drop.cause in causes)
    ports = (Port(place.node, place.to, place.link) for place in places if place.to and place.link)
    return list(dict.fromkeys(port for port in ports if at.is_switch(port.node)))


def is_atm(at: Situation, node: str) -> bool:
    """True if a node is an ATM switch, whose queues hold cells."""
    return node in at.settings.names("switch") and at.settings.kind("switch", node) == "atm"


def queue(at: Situation, port: Port) -> Queue:
    """The queue discipline of a port: that of its link, or else that of its switch or router."""
    family = "switch" if port.node in at.settings.names("switch") else "router"
    own = ("link", port.link, "queue")
    path = own if _has_queue(at, port.link) else (family, port.node, "queue")
    kind = at.settings.kind(*path) or _DEFAULT
    inner = at.settings.get(*path, kind)
    return Queue(path, kind, inner if isinstance(inner, dict) else {})


def _has_queue(at: Situation, link: str) -> bool:
    own = at.settings.find("link", link, "queue")
    return own is not None and own.given


def keeps_rates(at: Situation, step: Candidate) -> bool:
    """True if the change `step` leaves every token bucket in place."""
    return all(
        value.startswith(f"{{ {_AGREED} =") or at.settings.kind(*split(path)) != _AGREED
        for path, value in step.set
    )


def others(at: Situation, port: Port) -> Iterator[Candidate]:
    """Propose every other queue discipline without required settings for a port."""
    current = queue(at, port)
    for kind in kinds(_FAMILY):
        if kind != current.kind and complete(kind):
            words = f"use queue `{kind}` instead of `{current.kind}` at {port.name(at)}"
            yield Candidate(words, ((join(current.path), with_limit(kind, current)),))


def limits(kind: str, at: Situation, port: Port, verb: str, values: Iterator[str]) -> Iterator[Proposal]:
    """Propose other limits for the queue of a port, one after the other; `verb` is what this does to it."""
    current = queue(at, port)
    words = f"{verb} the buffer of {port.name(at)} to {{}}"
    steps = tuple(
        Candidate(words.format(limit), ((join(current.path), current.with_limit(limit)),))
        for limit in itertools.islice(values, DOUBLINGS)
    )
    if steps:
        yield Proposal(kind, Cost.SETTING, steps)


def halved(limit: str) -> Iterator[str]:
    """Halve a limit repeatedly; its packets and bytes stay whole numbers of at least 1."""
    amounts = [Amount.read(part) for part in limit.split(",")]
    while amounts:
        halves = [Amount(amount.number * HALF // 1, amount.unit) for amount in amounts if amount is not None]
        if len(halves) < len(amounts) or any(half.number < 1 for half in halves):
            return
        amounts = [*halves]
        yield ", ".join(str(amount) for amount in halves)


def doubled(limit: str) -> Iterator[str]:
    """Double a limit repeatedly; of `1000 packets, 256 KiB` both parts."""
    amounts = [Amount.read(part) for part in limit.split(",")]
    while all(amount is not None for amount in amounts):
        amounts = [amount.times(2) if amount else None for amount in amounts]
        yield ", ".join(str(amount) for amount in amounts)


def _toml(value: Toml) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else f'"{value}"'
