"""Advice: a loss recovery that does not wait for the retransmission timer, or a shorter timer."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from engpass import formatting
from engpass.advice.base import Cost, Proposal, doubling, scaled
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
    paths = list(dict.fromkeys((path, *_rivals(at))))
    whose = f"of `{host}`" + (f" and {formatting.count(len(paths) - 1, 'other sender')}" if paths[1:] else "")
    if given is not None:
        amounts = [(one, at.settings.amount(*one) or given) for one in paths]
        words = f"lower the minimum retransmission timeout {whose} to {{}}"
        yield from scaled("recovery", Cost.SETTING, amounts, words, factor=HALF, named=given)
    elif trip:
        milliseconds = round(2000 * trip)
        # A kernel with 1000 ticks per second has no shorter timer.
        value = Amount(Decimal(max(1, milliseconds)), "ms")
        why = ", twice the round-trip time" if milliseconds >= 1 else ""
        words = f"lower the minimum retransmission timeout {whose} to {value}{why}"
        yield Proposal.one("recovery", Cost.SETTING, words, *((path, str(value)) for path in paths))
    if at.share("duplicate") > 0.001 and given is not None:
        words = f"raise the minimum retransmission timeout of `{host}` to {{}}"
        yield from doubling(at, "recovery", Cost.SETTING, path, words, steps=4)


def _rivals(at: Situation) -> Iterator[tuple[str, ...]]:
    """The paths of the minimum timeout of other TCP senders on the line: one host's alone changes little."""
    for flow in at.topology.flows:
        path = ("host", flow.from_, "tcp", "rto_minimum")
        if flow.kind == at.kind and flow.name in at.sharing and at.settings.find(*path) is not None:
            yield path
