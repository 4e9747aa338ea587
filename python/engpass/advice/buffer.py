"""Larger queues where the flow loses what arrives in bursts."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal, doubling
from engpass.explain.situation import Situation

CAUSES = ("buffer full", "queue full")
_KEYS = ("output_buffer", "buffer", "queue.limit", "queue.buffer")


def propose(at: Situation) -> Iterator[Proposal]:
    """Double the buffer of each switch that loses; in a steady overload a larger one only fills later."""
    if at.overload:
        return
    for node in losing(at):
        for key in _KEYS:
            amount = at.settings.amount("switch", node, *key.split("."))
            words = f"raise the buffer of `{node}` to {{}}"
            yield from doubling("buffer", Cost.SETTING, ("switch", node, *key.split(".")), amount, words)


def losing(at: Situation) -> list[str]:
    """The switches in whose queues the flow loses, the worst first."""
    nodes = [drop.place.partition(" -> ")[0] for drop in at.own_drops if drop.cause in CAUSES]
    return [node for node in dict.fromkeys(nodes) if at.is_switch(node)]
