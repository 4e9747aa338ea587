"""Advice: no process switching, and line cards that forward in place of the route processor."""

from __future__ import annotations

import json
from collections.abc import Iterator

from engpass.advice import engines
from engpass.advice.base import Candidate, Cost, Proposal
from engpass.explain.point_facts import INPUT_FULL, Situation
from engpass.settings import join, keys

_LEAST = 0.005
"""Share of the time that a line must wait for a router, if the router loses nothing."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Let no process, and all cards, of a router that loses or delays packets switch all kinds of packets."""
    every = keys("router")["router"]["cards.NAME.distributed"].default
    if not isinstance(every, list):
        return
    for router in at.settings.names("router"):
        full = any(drop.place.node == router for drop in at.lost_at(INPUT_FULL))
        late = at.idle("upstream") >= _LEAST and any(hop.start == router for hop in at.hops)
        if not (full or late):
            continue
        path = ("router", router, "process_switched")
        if at.settings.get(*path):
            words = f"let router `{router}` switch no packets in a process"
            yield Proposal.one("switching", Cost.SETTING, words, (path, "[]"))
        cards = [engine.card for engine in engines.all_of(at, router) if engine.card is not None]
        given = [(("router", router, "cards", card, "distributed"), card) for card in cards]
        lacking = [(path, card) for path, card in given if _lacks(at, path, every)]
        if lacking:
            named = ", ".join(f"`{card}`" for _, card in lacking)
            one = "card" if len(lacking) == 1 else "cards"
            words = f"let {one} {named} of router `{router}` switch {_listed(every)}"
            sets = tuple((join(path), json.dumps(every)) for path, _ in lacking)
            yield Proposal("switching", Cost.SETTING, (Candidate(words, sets),))


def _lacks(at: Situation, path: tuple[str, ...], every: list[int | str]) -> bool:
    now = at.settings.get(*path)
    return isinstance(now, list) and any(kind not in now for kind in every)


def _listed(kinds: list[int | str]) -> str:
    *most, last = map(str, kinds)
    return f"{', '.join(most)} and {last}"
