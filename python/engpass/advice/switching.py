"""Advice: no process switching, and line cards that forward in place of the route processor."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from engpass.advice import engines
from engpass.advice.base import Candidate, Cost, Proposal
from engpass.explain.point_facts import INPUT_FULL, Situation
from engpass.settings import Path, join
from engpass.source import Toml


def propose(at: Situation) -> Iterator[Proposal]:
    """Let no process, and all cards, of a router that loses or delays packets switch all kinds of packets."""
    for router in at.settings.names("router"):
        full = any(drop.place.node == router for drop in at.lost_at(INPUT_FULL))
        if not (full or engines.holds_back(at, router)):
            continue
        path = ("router", router, "process_switched")
        if at.settings.get(*path):
            words = f"let router `{router}` switch no packets in a process"
            yield Proposal.one("switching", Cost.SETTING, words, (path, "[]"))
        cards = [engine.card for engine in engines.all_of(at, router) if engine.card is not None]
        every = at.settings.choices(*path)
        lacking = [card for card in cards if not {*every} <= {*_kinds(at, router, card)}]
        if lacking:
            named = ("cards " if len(lacking) > 1 else "card ") + ", ".join(f"`{card}`" for card in lacking)
            words = f"let {named} of router `{router}` switch {', '.join(every[:-1])} and {every[-1]}"
            sets = tuple((join(_path(router, card)), json.dumps(every)) for card in lacking)
            yield Proposal("switching", Cost.SETTING, (Candidate(words, sets),))


def _path(router: str, card: str) -> Path:
    return "router", router, "cards", card, "distributed"


def _kinds(at: Situation, router: str, card: str) -> Sequence[Toml]:
    """The kinds of packets that a card switches."""
    found = at.settings.get(*_path(router, card))
    return found if isinstance(found, list) else ()
