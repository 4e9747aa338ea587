"""Advice: a faster line, token bucket or router in place of one that holds back data or acknowledgements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from engpass.advice import engines, ports
from engpass.advice.base import Candidate, Cost, Proposal, doubling
from engpass.explain.losses import DAMAGED
from engpass.explain.point_facts import INPUT_FULL, Hop, Situation
from engpass.limiter import is_limited_by
from engpass.settings import Path, join

NEARLY_FULL = 0.02
"""A faster line is proposed if a line is idle for less than this share of the time.

Greater than `FULL` of `explain.point_facts`, below which a line is called the bottleneck: a proposal needs
less evidence, because it is simulated.
"""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose faster media of the same family, higher rates, lines without bit errors, or faster routers."""
    for hop in (*at.hops, *at.back):
        if _holds_back(at, hop):
            yield from _faster(at, hop)
        if at.is_switch(hop.start) and is_limited_by(at.limited, "token-bucket", hop.link):
            yield from _more_tokens(at, hop)
        if any(drop.cause == DAMAGED and hop.is_at(drop.place) for drop in at.own_drops):
            words, path = f"make link `{hop.link}` free of errors", ("link", hop.link, "loss")
            yield Proposal.one("line", Cost.HARDWARE, words, (path, "0 %"))
    for node in at.settings.names("router"):
        full = {drop.place.card for drop in at.lost_at(INPUT_FULL) if drop.place.node == node}
        late = engines.holds_back(at, node)
        for engine in engines.all_of(at, node):
            if late or engine.card in full:
                yield from _faster_engine(at, engine)


def _faster_engine(at: Situation, engine: engines.Engine) -> Iterator[Proposal]:
    """Propose half the time, and less, for each kind of work of an engine of a router."""
    for key, work in engines.WORK.items():
        path = (*engine.path, key)
        words = f"let {engine.name} {work} in {{}}"
        yield from doubling(at, "line", Cost.HARDWARE, path, words, factor=ports.HALF, steps=4)


def _holds_back(at: Situation, hop: Hop) -> bool:
    forward = hop in at.hops
    if hop.idle < NEARLY_FULL and (forward or at.tcp):
        return True
    if not forward:
        return is_limited_by(at.limited, "acknowledgements", hop.link)
    if at.idle("upstream") >= engines.LEAST and at.hops.index(hop) < at.hops.index(at.tight or hop):
        return True
    return is_limited_by(at.limited, "link", hop.link)


def _more_tokens(at: Situation, hop: Hop) -> Iterator[Proposal]:
    """Propose a higher rate of a token bucket: like a faster line, an agreed rate is bought."""
    port = ports.Port.of(hop)
    path = ports.queue(at, port).path
    words = f"let the token bucket of {port.name(at)} pass {{}}"
    yield from doubling(at, "line", Cost.HARDWARE, (*path, "token-bucket", "rate"), words, steps=3)


def _faster(at: Situation, hop: Hop) -> Iterator[Proposal]:
    path = ("link", hop.link)
    which: Path = (*path, "rate")
    words = f"raise the rate of link `{hop.link}` to {{}}"
    if isinstance(at.settings.get(*which), Mapping):
        ends = at.settings.get(*path, "ends")
        forward = isinstance(ends, list) and ends[0] == hop.start
        which = (*which, "forward" if forward else "backward")
        words = f"raise the rate of link `{hop.link}` from `{hop.start}` to `{hop.end}` to {{}}"
    if at.settings.amount(*which) is not None:
        yield from doubling(at, "line", Cost.HARDWARE, which, words, steps=3)
        return
    medium = at.settings.get(*path, "medium")
    media = at.settings.choices(*path, "medium")
    if not isinstance(medium, str) or medium not in media:
        return
    faster = [m for m in media[media.index(medium) + 1 :] if _stem(m) == _stem(medium)][:3]
    steps = tuple(
        Candidate(f"use medium `{m}` for link `{hop.link}`", ((join((*path, "medium")), m),)) for m in faster
    )
    if steps:
        yield Proposal("line", Cost.HARDWARE, steps)


def _stem(medium: str) -> str:
    """The family of a medium: `oc` of `oc-3c`, `ethernet` of `ethernet-10g`."""
    return re.split(r"-\d", medium, maxsplit=1)[0]
