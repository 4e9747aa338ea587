"""Advice if small segments wait for acknowledgments: no Nagle algorithm, or no delayed acknowledgments."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal
from engpass.advice.sockets import tcp_path
from engpass.explain.point_facts import Situation


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose to switch Nagle's algorithm off, or to acknowledge every segment."""
    if not at.tcp or at.idle("Nagle") + at.idle("silly window avoidance") + at.idle("send buffer") < 0.005:
        return
    start, end = at.ends
    if (path := tcp_path(at, start, "nagle")) is not None and at.idle("Nagle") >= 0.005:
        words = f"disable Nagle's algorithm on host `{start}`"
        yield Proposal.one("nagle", Cost.APPLICATION, words, (path, "off"))
    if (path := tcp_path(at, end, "ack_every")) is not None:
        yield Proposal.one("nagle", Cost.SETTING, f"let `{end}` acknowledge every segment", (path, "1"))
