"""Advice: larger socket buffers or NIC memory, if one of them limits the sender or drops packets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal

from engpass.advice.base import Candidate, Cost, Proposal, doubling, patient
from engpass.explain.point_facts import Situation
from engpass.settings import Amount, join

_LEAST = 0.005


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose to double the receive buffer of TCP or UDP, the send buffer, or the NIC's memory."""
    start, end = at.ends
    if at.tcp and at.idle("receive window") + at.idle("silly window avoidance") >= _LEAST:
        yield from _larger(at, end, "receive_buffer", f"raise the TCP receive buffer of `{end}` to {{}}")
    if at.tcp and at.idle("send buffer") >= _LEAST:
        yield from _larger(at, start, "send_buffer", f"raise the TCP send buffer of `{start}` to {{}}")
    if at.lost_at("receive buffer"):
        words = f"raise the receive buffer of `{end}` to {{}}"
        larger = doubling(at, "sockets", Cost.SETTING, ("host", end, "receive_buffer"), words)
        yield from patient(at, larger)
    if at.idle("NIC buffer") >= _LEAST:
        words = f"raise the NIC memory of `{start}` to {{}}"
        yield from doubling(at, "nic", Cost.HARDWARE, ("host", start, "nic_buffer"), words)


def tcp_path(at: Situation, host: str, key: str) -> tuple[str, ...] | None:
    """The path of a TCP setting, at the host or else at the traffic; `None` if neither may have it."""
    for family, name in (("host", host), ("traffic", at.flow)):
        path = (family, name, "tcp", key)
        if at.settings.find(*path) is not None:
            return path
    return None


def _larger(at: Situation, host: str, key: str, words: str) -> Iterator[Proposal]:
    path = tcp_path(at, host, key)
    if path is None:
        return
    # Without a value in the file start from the bytes in flight, which are about the window in use.
    flying = math.ceil(at.goodput * (at.round_trip or 0.0) / 8)
    start = Amount(Decimal(flying), "B") if flying else None
    for proposal in doubling(at, "sockets", Cost.SETTING, path, words, start=start):
        # A window above 64 KiB needs window scaling, which both ends must support.
        yield Proposal(
            proposal.kind, proposal.cost, tuple(_scaled(at, step, path) for step in proposal.steps)
        )


def _scaled(at: Situation, step: Candidate, path: tuple[str, ...]) -> Candidate:
    if path[-1] != "receive_buffer":
        return step
    ends = {tcp_path(at, host, "window_scaling") for host in at.ends}
    more = tuple((join(one), "true") for one in sorted(one for one in ends if one is not None))
    off = [one for one in ends if one is not None and at.settings.get(*one) is False]
    return Candidate(f"{step.say}, with window scaling", (*step.set, *more)) if off else step
