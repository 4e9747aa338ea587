"""Advice: another ECMP policy, if a line is full while a parallel one is idle, or if a line has failed."""

from __future__ import annotations

from collections.abc import Iterator

from engpass.advice.base import Candidate, Cost, Proposal
from engpass.explain.point_facts import DOWN, FULL, Situation
from engpass.settings import join
from engpass.source import Toml
from engpass.types.outcome import Place

SEEDS = 64
"""Number of hash seeds to judge by `limit`, from 0 on: with four flows on four lines, one in 11 fits."""

SIMULATED = 4
"""Number of these seeds to simulate."""


def propose(at: Situation) -> Iterator[Proposal]:
    """Propose a hash, round-robin in place of a hash, a hash in place of round-robin, and other seeds."""
    routers = dict.fromkeys(hop.start for hop in at.hops if at.policy(hop.start))
    crowded = any(hop.idle < FULL for hop in at.hops)
    for router in routers:
        spare = crowded and any(at.spared(hop) for hop in at.hops if hop.start == router)
        policy = at.policy(router)
        if policy == "first" and spare:
            yield _one(at, router, "hash", f"let router `{router}` choose among equal-cost paths by a hash")
        if policy == "hash" and spare:
            words = f"let router `{router}` send packets round-robin over equal-cost paths"
            yield _one(at, router, "round-robin", words)
            yield _seeds(at, router)
        if policy == "round-robin" and at.tcp and at.arrives_twice:
            yield _one(
                at, router, "hash", f"let router `{router}` keep each connection on one path by a hash"
            )
    yield from _failover(at)


def _one(at: Situation, router: str, kind: str, words: str) -> Proposal:
    return Proposal("ecmp", Cost.SETTING, (Candidate(words, (_policy(at, router, kind),)),))


def _policy(at: Situation, router: str, kind: str, **keys: Toml) -> tuple[str, str]:
    """Path and value that give a router another ECMP policy with the present weights."""
    now = at.policy(router)
    inner = at.settings.get("router", router, "ecmp", now)
    given = inner if isinstance(inner, dict) else {}
    made = {**(given if kind == now else {key: given[key] for key in ("weights",) if key in given}), **keys}
    return join(("router", router, "ecmp")), f"{{ {kind} = {_toml(made)} }}" if made else kind


def _seeds(at: Situation, router: str) -> Proposal:
    """Propose other seeds of the hash: chance decides which ones help, and `limit` sees the collisions."""
    now = at.settings.get("router", router, "ecmp", "hash", "seed")
    words = f"set the hash seed of router `{router}` to {{}}"
    steps = tuple(
        Candidate(words.format(seed), (_policy(at, router, "hash", seed=seed),))
        for seed in range(SEEDS)
        if seed != now
    )
    return Proposal("ecmp", Cost.SETTING, steps, patience=SIMULATED, shortlist=SIMULATED)


def _failover(at: Situation) -> Iterator[Proposal]:
    """Propose a hash at the router before a failed line; for TCP also behind it, for acknowledgments."""
    for drop in at.lost_at(DOWN):
        ends = [drop.place.node, *([drop.place.to] if at.tcp and drop.place.to else [])]
        routers = [node for node in ends if at.policy(node) == "first"]
        if routers and _has_another(at, drop.place):
            names = " and ".join(f"`{router}`" for router in routers)
            what = "router" if len(routers) == 1 else "routers"
            words = f"let {what} {names} choose among equal-cost paths by a hash"
            sets = tuple(_policy(at, router, "hash") for router in routers)
            yield Proposal("ecmp", Cost.SETTING, (Candidate(words, sets),))


def _has_another(at: Situation, place: Place) -> bool:
    """True if the node before a line has another one that does not lead back.

    It leads to the same node, or to a switch or router from which the packets of the flow do not come.
    """
    before = {hop.start for hop in (*at.hops, *at.back) if hop.end == place.node}
    lines = [side for side in at.books.values() if side.start == place.node and side.link != place.link]
    return any(side.end == place.to or (at.is_switch(side.end) and side.end not in before) for side in lines)


def _toml(value: Toml) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{join((key,))} = {_toml(one)}' for key, one in value.items())} }}"
    return str(value) if isinstance(value, int | float) else f'"{value}"'
