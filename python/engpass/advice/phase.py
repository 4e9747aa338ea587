"""Advice for a constant stream that meets a full queue in the same phase for a whole run: random delays."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from engpass.advice.base import Cost, Proposal
from engpass.explain.phase import locked
from engpass.explain.point_facts import Situation

_US = Decimal("1e-6")


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose a jitter of the first line, as long as the interval between packets: it covers all phases."""
    lock = locked(at)
    rate = at.settings.amount("traffic", at.flow, "rate")
    message = at.settings.amount("traffic", at.flow, "message")
    if lock is None or rate is None or message is None or not rate.number:
        return
    interval = message.in_base()[0] * 8 / rate.in_base()[0]
    link = at.hops[0].link
    jitter = f"{max(1, round(interval / _US))} us"
    words = f"give link `{link}` a jitter of {jitter}, so that `{at.flow}` meets the full queue in any phase"
    yield Proposal.one("phase", Cost.SETTING, words, (("link", link, "jitter"), jitter))
