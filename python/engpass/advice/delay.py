"""Advice: shorter queues on the path, by another discipline, a smaller buffer or NIC memory, or priority."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice import ports
from engpass.advice.base import Cost, Proposal, doubling
from engpass.advice.shaping import crossed
from engpass.explain.point_facts import Hop, Situation

_VOICE = "5"
"""The IEEE 802.1Q priority that the standard assigns to voice (annex I)."""

_OTHERS = 3
"""Maximum number of other TCP flows for which another congestion control is proposed."""


def propose(at: Situation) -> Iterator[Proposal]:
    """If the flow waits too long in queues, change those of full lines and of lines that drop its packets."""
    if not at.needs.waits(at.served) or at.repaired:
        return
    yield from _nic(at)
    for hop in at.queues:
        yield from _atm(at, hop) if ports.is_atm(at, hop.start) else _packets(at, hop)
    for other in at.sharing[:_OTHERS]:
        yield from _modest(at, other)


def _nic(at: Situation) -> Iterator[Proposal]:
    """Halve the NIC memory of the sender, if its NIC always has packets to send."""
    if at.nic_is_full:
        host = at.hops[0].start
        path = ("host", host, "nic_buffer")
        words = f"lower the NIC memory of `{host}` to {{}}"
        yield from doubling(at, "delay", Cost.SETTING, path, words, factor=ports.HALF)


def _packets(at: Situation, hop: Hop) -> Iterator[Proposal]:
    port = ports.Port.of(hop)
    queue = ports.queue(at, port)
    for step in ports.others(at, port):
        yield Proposal("delay", Cost.SETTING, (step,))
    yield from ports.limits("delay", at, port, "lower", ports.halved(queue.limit))
    first = (("traffic", at.flow, "priority"), _VOICE)
    if at.needs.paced and str(at.settings.get("traffic", at.flow, "priority") or "0") < _VOICE:
        words = f"give `{at.flow}` priority at {port.name(at)}: `priority`, class {_VOICE}"
        kind = ports.with_limit("priority", queue)
        yield Proposal.one("delay", Cost.SETTING, words, (queue.path, kind), first)


def _atm(at: Situation, hop: Hop) -> Iterator[Proposal]:
    node = hop.start
    path = ("switch", node, "output_buffer")
    words = f"lower the buffer of `{node}` to {{}}"
    yield from doubling(at, "delay", Cost.SETTING, path, words, factor=ports.HALF)
    circuit = crossed(at)
    if circuit is not None and at.needs.paced and at.settings.get("circuit", circuit, "category") != "cbr":
        words = f"give `{circuit}` priority at `{node}`: `priority`, category `cbr`"
        sets = (("switch", node, "schedule"), "priority"), (("circuit", circuit, "category"), "cbr")
        yield Proposal.one("delay", Cost.SETTING, words, *sets)


def _modest(at: Situation, other: str) -> Iterator[Proposal]:
    """Propose BBR as congestion control of another TCP flow, since BBR does not fill the queue."""
    path = ("traffic", other, "tcp", "congestion")
    if at.settings.kind("traffic", other) == "tcp-stream" and at.settings.get(*path) != "bbr":
        words = f"use `bbr` as congestion control of `{other}`"
        yield Proposal.one("delay", Cost.SETTING, words, (path, "bbr"))
