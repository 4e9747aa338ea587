"""Advice: another discard policy or queue discipline for queues that drop packets of the flow."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice import ports
from engpass.advice.base import Cost, Proposal, others
from engpass.explain.point_facts import Situation


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose every other policy of the catalogue; if one lacks a required setting, the core refuses it."""
    for port in ports.losing(at):
        if ports.is_atm(at, port.node):
            path = ("switch", port.node, "discard")
            now = at.settings.kind(*path)
            words = f"let `{port.node}` discard by `{{}}` instead of `{now}`"
            yield from others("discard", Cost.SETTING, path, at.settings.choices(*path), now, words)
            continue
        for step in ports.others(at, port):
            yield Proposal("discard", Cost.SETTING, (step,))
