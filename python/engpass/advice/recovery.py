"""Advice: a loss recovery that does not wait for the retransmission timer, or a shorter timer."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from engpass.advice.base import Cost, Proposal, doubling
from engpass.advice.ports import HALF
from engpass.advice.sockets import tcp_path
from engpass.explain.point_facts import Situation
from engpass.settings import Amount


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose other loss recoveries at both ends, and a shorter or longer minimum retransmission timeout."""
    if not at.tcp or not (at.own_drops or at.timeouts > 0):
        return
    start, end = at.ends
    path = tcp_path(at, start, "recovery")
    if path is None:
        return
    now = at.settings.get(*path)
    for value in at.settings.choices(*path):
        if value == now:
            continue
        # The receiver must also support the recovery of the sender.
        ends = dict.fromkeys(filter(None, (path, tcp_path(at, end, "recovery"))), value)
        yield Proposal.one("recovery", Cost.SETTING, f"use loss recovery `{value}`", *ends.items())
    yield from _timeout(at, start)


def _timeout(at: Situation, host: str) -> Iterator[Proposal]:
    path = tcp_path(at, host, "rto_minimum")
    trip = at.round_trip
    if path is None or not at.timeouts:
        return
    given = at.settings.amount(*path)
    if given is not None:
        words = f"lower the minimum retransmission timeout of `{host}` to {{}}"
        yield from doubling(at, "recovery", Cost.SETTING, path, words, factor=HALF, steps=4)
    elif trip:
        value = Amount(Decimal(max(1, round(2000 * trip))), "ms")
        words = f"lower the minimum retransmission timeout of `{host}` to {value}, twice the round-trip time"
        yield Proposal.one("recovery", Cost.SETTING, words, (path, str(value)))
    if at.share("duplicate") > 0.001 and given is not None:
        words = f"raise the minimum retransmission timeout of `{host}` to {{}}"
        yield from doubling(at, "recovery", Cost.SETTING, path, words, steps=4)
