"""Advice: another congestion control, if the congestion window limits the sender or packets are lost."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal, others
from engpass.advice.sockets import tcp_path
from engpass.explain.point_facts import Situation

_MARKED = frozenset({"dctcp"})
"""Congestion controls that rely on ECN marks. On a path without marks they only react to loss, as `reno`."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose every other congestion control of the catalogue that suits the path."""
    path = tcp_path(at, at.ends[0], "congestion") if at.tcp else None
    waits = at.idle("congestion window") + at.idle("retransmission timer")
    if path is None or (waits < 0.005 and not at.own_drops):
        return
    known = at.settings.choices(*path)
    words = f"use `{{}}` as congestion control of `{at.flow}`"
    if not at.marked:
        known = [control for control in known if control not in _MARKED]
    yield from others("congestion", Cost.SETTING, path, known, at.settings.kind(*path), words)
