"""Another discard policy where the flow loses: what is thrown away decides what else is carried in vain."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Cost, Proposal, others
from engpass.advice.buffer import losing
from engpass.explain.situation import Situation


def propose(at: Situation) -> Iterator[Proposal]:
    """Every other policy of the catalogue that needs no settings of its own."""
    for node in losing(at):
        now = at.settings.get("switch", node, "discard")
        known = at.settings.choices("switch", node, "discard")
        words = f"let `{node}` discard by `{{}}`"
        if isinstance(now, str):
            words += f" instead of `{now}`"
        yield from others("discard", Cost.SETTING, ("switch", node, "discard"), known, now, words)
