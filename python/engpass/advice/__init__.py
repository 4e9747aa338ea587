"""Advice: what to change at a point, each change simulated before it is named.

Adding a kind: write `advice/NAME.py` with a function `propose`, and add it to `KINDS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from engpass import _engpass, say
from engpass.advice import (
    buffer,
    congestion,
    cpu,
    discard,
    line,
    memory,
    nagle,
    recovery,
    shaping,
    sockets,
)
from engpass.advice.base import Candidate, Cost, Kind, Proposal
from engpass.environment import cores
from engpass.explain.bench import Bench
from engpass.explain.situation import Situation

__all__ = ["KINDS", "Advice", "Change", "advise"]

KINDS: tuple[Kind, ...] = (
    buffer.propose,
    shaping.propose,
    discard.propose,
    sockets.propose,
    recovery.propose,
    congestion.propose,
    nagle.propose,
    cpu.propose,
    memory.propose,
    line.propose,
)
"""All kinds; among equal gains of equal cost the earlier one comes first."""

LEAST = 0.01
"""A gain below this share of what there was is none."""

PATIENCE = 2
"""Steps of a search that may bring nothing before it ends: a burst fits whole or not at all."""

_NAMED = 8


@dataclass(frozen=True)
class Change:
    """A change that gains, as simulated with the seeds of what it is compared with."""

    kind: str
    cost: Cost
    say: str
    set: tuple[tuple[str, str], ...]
    before: float
    after: float
    """Mean goodput in bit/s."""
    others: tuple[tuple[str, float], ...] = ()
    """Other flows that lose by it, and how many bit/s."""

    @property
    def text(self) -> str:
        """The change and what it gains: `raise the buffer ...: 6.10 → 21.80 Mbit/s`."""
        # Who loses most comes first where not all are named.
        named = self.others
        if len(named) > _NAMED:
            named = tuple(sorted(named, key=lambda other: -other[1])[:_NAMED])
        lost = [f"`{name}` loses {say.rate(amount)}" for name, amount in named]
        more = len(self.others) - len(named)
        note = f" ({', '.join(lost)}{f' and {more:,} flows lose less' if more else ''})" if lost else ""
        return f"{self.say}: {say.change(self.before, self.after)}{note}"

    def to_json(self) -> dict[str, Any]:
        """The change as JSON data."""
        return {
            "kind": self.kind,
            "cost": self.cost.name.lower(),
            "change": self.say,
            "set": dict(self.set),
            "before_bit_per_s": self.before,
            "after_bit_per_s": self.after,
            "others_lose_bit_per_s": dict(self.others),
        }


@dataclass(frozen=True)
class Advice:
    """What gains, the best first, and all that was tried."""

    changes: tuple[Change, ...]
    tried: tuple[str, ...]
    """Every change that was simulated, in words."""
    runs: int
    """Simulated runs that it took."""


def advise(
    at: Situation, bench: Bench, *, jobs: int | None = None, watch: Callable[[int], None] | None = None
) -> Advice:
    """Simulate what the kinds propose and keep what gains; `watch` hears of every change that was simulated.

    Raises `KeyboardInterrupt` on Ctrl-C.
    """
    proposals = list(_all(at))
    before = bench.baseline()
    done = 0
    results: list[_Result] = []
    threads = ThreadPoolExecutor(jobs or cores(), thread_name_prefix="engpass-advice")
    try:
        futures = [threads.submit(_climb, proposal, at, bench, before) for proposal in proposals]
        for future in futures:
            result = future.result()
            results.append(result)
            done += len(result.tried)
            if watch is not None:
                watch(done)
    except _engpass.Interrupted:
        raise KeyboardInterrupt from None
    finally:
        # However we leave, no thread goes on.
        bench.interrupt.set()
        threads.shutdown(wait=True, cancel_futures=True)
    tried = tuple(dict.fromkeys(candidate.say for result in results for candidate in result.tried))
    found = [result.change for result in results if result.change is not None]
    return Advice(tuple(ranked(found, at.limit - at.goodput)), tried, done * len(bench.repeats))


def _all(at: Situation) -> Iterator[Proposal]:
    seen: set[tuple[tuple[str, str], ...]] = set()
    for propose in KINDS:
        for proposal in propose(at):
            first = proposal.steps[0].set
            if first not in seen:
                seen.add(first)
                yield proposal


@dataclass(frozen=True)
class _Result:
    tried: tuple[Candidate, ...]
    change: Change | None


_Flows = Sequence[Mapping[str, float]]
"""Goodput of every flow, per repeat."""


def _climb(proposal: Proposal, at: Situation, bench: Bench, before: _Flows) -> _Result:
    """Try the steps of a proposal until they no longer help; the first of those that gain about the most."""
    tried: list[Candidate] = []
    best: tuple[Candidate, _Flows] | None = None
    reached, idle = _mean(before, at.flow), 0
    for step in proposal.steps:
        after = bench.goodputs(step.set)
        if after is None:
            continue
        tried.append(step)
        goodput = _mean(after, at.flow)
        # From nothing, anything would be a gain: a share of the limit is asked for, too.
        if goodput > reached + LEAST * max(reached, at.limit / 10) and _gains(before, after, at.flow):
            best, reached, idle = (step, after), goodput, 0
        else:
            idle += 1
            if idle >= PATIENCE:
                break
    if best is None:
        return _Result(tuple(tried), None)
    step, flows = best
    names = [name for name in before[0] if name != at.flow]
    losses = [(name, _mean(before, name) - _mean(flows, name)) for name in names]
    harmed = tuple((name, lost) for name, lost in losses if lost > LEAST * _mean(before, name) and lost > 0)
    change = Change(proposal.kind, proposal.cost, step.say, step.set, _mean(before, at.flow), reached, harmed)
    return _Result(tuple(tried), change)


def _mean(flows: _Flows, name: str) -> float:
    return math.fsum(one.get(name, 0.0) for one in flows) / len(flows)


def _gains(before: _Flows, after: _Flows, flow: str) -> bool:
    """More with every seed, not only on average: else it is the seeds' doing."""
    return all(b.get(flow, 0.0) < a.get(flow, 0.0) for b, a in zip(before, after, strict=True))


def ranked(changes: Sequence[Change], missing: float) -> list[Change]:
    """The best first, and among about equal gains the cheaper.

    Other hardware stands behind what can be set, if the best of that makes up for half of the `missing`
    bit/s to the limit of what is there.
    """
    hardware = _ordered([change for change in changes if change.cost is Cost.HARDWARE])
    settings = _ordered([change for change in changes if change.cost is not Cost.HARDWARE])
    if settings and settings[0].after - settings[0].before >= missing / 2:
        return settings + hardware
    return _ordered(changes)


def _ordered(changes: Sequence[Change]) -> list[Change]:
    rest = sorted(changes, key=lambda change: -change.after)
    made: list[Change] = []
    while rest:
        least = rest[0].after * (1 - 2 * LEAST)
        equal = [change for change in rest if change.after >= least]
        made += sorted(equal, key=lambda change: (change.cost, bool(change.others)))
        rest = rest[len(equal) :]
    return made
