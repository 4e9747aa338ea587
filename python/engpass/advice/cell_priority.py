"""Advice: equal rights for cells of low priority (CLP = 1), if queues drop them before others."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal
from engpass.advice.shaping import crossed
from engpass.explain.point_facts import LOW_PRIORITY, Situation
from engpass.settings import Amount


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose high priority for the cells of the circuit, and the whole queue for those of low priority."""
    nodes = dict.fromkeys(drop.place.node for drop in at.lost_at(LOW_PRIORITY))
    circuit = crossed(at)
    if nodes and circuit is not None and at.settings.get("circuit", circuit, "clp") == 1:
        words, path = f"send cells of `{circuit}` with CLP = 0", ("circuit", circuit, "clp")
        yield Proposal.one("cell-priority", Cost.SETTING, words, (path, "0"))
    for node in nodes:
        room = at.settings.amount("switch", node, "output_buffer")
        if room is not None:
            # A cell is dropped if it finds more cells than the threshold, which must be less than the queue.
            most = Amount(room.number - 1, room.unit)
            words = f"let cells with CLP = 1 fill the queue of `{node}`: a threshold of {most}"
            path = ("switch", node, "clp_threshold")
            yield Proposal.one("cell-priority", Cost.SETTING, words, (path, str(most)))
