"""Another discard policy or queue discipline where the flow loses."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice import ports
from engpass.advice.base import Candidate, Cost, Proposal, others
from engpass.explain.situation import Situation
from engpass.settings import join


def propose(at: Situation) -> Iterator[Proposal]:
    """Every other one of the catalogue; the core refuses those that need settings of their own."""
    for drop in ports.losing(at):
        node, _, end = drop.place.partition(" -> ")
        if ports.is_atm(at, node):
            now = at.settings.get("switch", node, "discard")
            known = at.settings.choices("switch", node, "discard")
            current = next(iter(now), None) if isinstance(now, dict) else now
            words = f"let `{node}` discard by `{{}}` instead of `{current}`"
            yield from others("discard", Cost.SETTING, ("switch", node, "discard"), known, now, words)
            continue
        queue = ports.queue(at, drop.place)
        if queue.kind == "token-bucket":
            # A rate that was agreed on, not a choice of discipline.
            continue
        limit = queue.settings.get("limit")
        for kind in ports.kinds():
            if kind != queue.kind and ports.complete(kind):
                words = f"queue by `{kind}` instead of `{queue.kind}` at `{node}` towards `{end}`"
                step = Candidate(words, ((join(queue.path), ports.with_limit(kind, limit)),))
                yield Proposal("discard", Cost.SETTING, (step,))
