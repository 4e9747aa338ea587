"""Advice: larger queues, if queues drop packets that arrive in bursts."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice import engines, ports
from engpass.advice.base import Cost, Proposal, doubling, patient
from engpass.explain.point_facts import INPUT_FULL, Situation


def propose(at: Situation) -> Iterator[Proposal]:
    """Double the buffer of each port or router that drops packets, but not in a steady overload."""
    if not at.overload:
        yield from patient(at, _larger(at))


def _larger(at: Situation) -> Iterator[Proposal]:
    full = {drop.place: None for drop in at.lost_at(INPUT_FULL)}
    for engine in dict.fromkeys(engines.of(at, place.node, place.card) for place in full):
        path = (*engine.path, "input_queue")
        words = f"raise the input queue of {engine.name} to {{}}"
        yield from doubling(at, "buffer", Cost.SETTING, path, words)
    for port in ports.losing(at, ports.ROOM):
        if ports.is_atm(at, port.node):
            words = f"raise the buffer of `{port.node}` to {{}}"
            path = ("switch", port.node, "output_buffer")
            yield from doubling(at, "buffer", Cost.SETTING, path, words)
            continue
        larger = ports.doubled(ports.queue(at, port).limit)
        yield from ports.limits("buffer", at, port, "raise", larger)
