"""Small segments that wait for acknowledgments: no Nagle algorithm, or no delayed acknowledgments."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Candidate, Cost, Proposal
from engpass.advice.sockets import tcp_path
from engpass.explain.point_facts import Situation
from engpass.settings import join


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose to switch Nagle's algorithm off, or to acknowledge every segment."""
    if not at.tcp or at.idle("Nagle") + at.idle("silly window avoidance") + at.idle("send buffer") < 0.005:
        return
    start, end = at.ends
    if (path := tcp_path(at, start, "nagle")) is not None and at.idle("Nagle") >= 0.005:
        step = Candidate(f"disable Nagle's algorithm on host `{start}`", ((join(path), "off"),))
        yield Proposal("nagle", Cost.APPLICATION, (step,))
    if (path := tcp_path(at, end, "ack_every")) is not None:
        step = Candidate(f"let `{end}` acknowledge every segment", ((join(path), "1"),))
        yield Proposal("nagle", Cost.SETTING, (step,))
