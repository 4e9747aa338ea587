"""Advice: changes of the testbed that help at a point; each is simulated before it is named.

CONTRIBUTING.md, "Add advice", says how to add a kind.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
from msgspec.structs import replace

from engpass import _engpass, formatting
from engpass.advice import (
    arp,
    bond,
    buffer,
    cell_priority,
    congestion,
    cpu,
    delay,
    discard,
    ecmp,
    expiry,
    line,
    memory,
    nagle,
    path_mtu,
    phase,
    ports,
    recovery,
    shaping,
    sockets,
    switching,
    tunnel,
)
from engpass.advice.base import Candidate, Cost, Kind, Proposal
from engpass.environment import cores
from engpass.explain.point_facts import Situation
from engpass.explain.resimulate import Bench
from engpass.explain.service import LEAST, MUCH, Needs, Served
from engpass.jsondata import Json
from engpass.results.samples import DELAY_P50, DELAY_P99, GOODPUT, LOSS
from engpass.types.outcome import FlowOutcome
from engpass.types.signals import FLOW, Signal

__all__ = ["KINDS", "Advice", "Change", "Effect", "advise", "shown", "told"]

KINDS: tuple[Kind, ...] = (
    buffer.propose,
    shaping.propose,
    discard.propose,
    phase.propose,
    delay.propose,
    ecmp.propose,
    bond.propose,
    path_mtu.propose,
    tunnel.propose,
    expiry.propose,
    cell_priority.propose,
    arp.propose,
    sockets.propose,
    recovery.propose,
    congestion.propose,
    nagle.propose,
    cpu.propose,
    memory.propose,
    switching.propose,
    line.propose,
)
"""All functions that propose changes.

Order matters twice. A proposal whose first step sets the same values as that of an earlier one is left out.
Changes that are equal in everything by which they are ranked stay in this order.
"""

NAMED = 8
"""Maximum number of flows, besides the explained one, that the text of a change names."""


BASIC = (GOODPUT, DELAY_P99, LOSS)
"""Signals that tables of changes always have."""


class Effect(msgspec.Struct, frozen=True):
    """The service of one flow before and after a change, each over all seeds."""

    flow: str
    needs: Needs
    before: Served
    after: Served

    @property
    def declines(self) -> bool:
        """True if the change makes a figure of the flow (`Needs.figures`) notably worse."""
        return bool(self.needs.worse(self.before, self.after))

    @property
    def harmed(self) -> bool:
        """True if a figure gets notably worse and does not meet the needs of the flow."""
        return self.needs.harmed(self.before, self.after)

    @property
    def given(self) -> float:
        """Goodput that the flow gives up, in bit/s; negative if it gains."""
        return self.before.goodput - self.after.goodput

    @property
    def cost(self) -> float:
        """How far the flow's score (`Needs.score`) falls by the change; negative if it rises."""
        return self.needs.score(self.before) - self.needs.score(self.after)

    @property
    def text(self) -> str:
        """The goodput, and other figures if they change: `1.49 → 1.50 Mbit/s, delay p99 747 → 14 ms`."""
        named = [signal for signal in self.notable if signal is not GOODPUT]
        parts = [self.pair(GOODPUT), *(f"{signal.title.lower()} {self.pair(signal)}" for signal in named)]
        return ", ".join(parts)

    @property
    def notable(self) -> list[Signal]:
        """The signals of the figures that the change makes notably worse or better."""
        sides = self.before, self.after
        found = [*self.needs.worse(*sides), *self.needs.worse(*reversed(sides))]
        return [one.signal for one in self.needs.figures(*sides) if one in found]

    def pair(self, signal: Signal) -> str:
        """The value of a signal before and after, as text; empty if it has none."""
        before, after = (side.values.get(signal) for side in (self.before, self.after))
        return formatting.change(before, after, signal.unit)

    def to_json(self) -> dict[str, list[float | None]]:
        """By name of the signal its value before and after, for all signals that can be better or worse.

        Signals without a value are left out, except those of summaries.
        """
        sides = (self.before.values, self.after.values)
        return {
            signal.name: [side.get(signal) for side in sides]
            for signal in FLOW
            if signal.better is not None
            and (signal in (*BASIC, DELAY_P50) or any(signal in side for side in sides))
        }


class Change(msgspec.Struct, frozen=True):
    """A change of the testbed that helps the explained flow, and its effects on all flows."""

    kind: str
    cost: Cost
    say: str
    set: tuple[tuple[str, str], ...]
    own: Effect
    others: tuple[Effect, ...] = ()
    """The effects on all other flows, in the order of the file."""

    @property
    def before(self) -> float:
        """Mean goodput of the explained flow in bit/s without the change."""
        return self.own.before.goodput

    @property
    def after(self) -> float:
        """Mean goodput of the explained flow in bit/s with the change."""
        return self.own.after.goodput

    @property
    def score(self) -> float:
        """Score of the explained flow with the change (`Needs.score`): 1 if its needs are just met."""
        return self.own.needs.score(self.own.after)

    @property
    def gain(self) -> float:
        """How far the score of the explained flow rises by the change."""
        return -self.own.cost

    @property
    def price(self) -> float:
        """How far the scores of all other flows fall together; negative if they rise."""
        return round(math.fsum(other.cost for other in self.others), 2)

    @property
    def harms(self) -> list[str]:
        """The flows that the change harms, the explained one included.

        Besides those that miss their needs, these are flows that lose much more goodput than all flows gain:
        a flow above its fair share gives back without harm what others then get, but not what nobody gets.
        """
        effects = (self.own, *self.others)
        gained = math.fsum(max(0.0, -effect.given) for effect in effects)
        return [one.flow for one in effects if one.harmed or one.given - gained > MUCH * one.before.goodput]

    @property
    def trades(self) -> bool:
        """True if the change harms any flow, the explained one included."""
        return bool(self.harms)

    @property
    def text(self) -> str:
        """Text: the change, its gain and its costs: `raise the buffer ...: 6.10 → 21.80 Mbit/s`."""
        declining = [other for other in self.others if other.declines]
        # If more flows lose than the text can name, it names those that lose most.
        if len(declining) > NAMED:
            declining.sort(key=lambda other: -other.cost)
        costs = [f"`{other.flow}`: {other.text}" for other in declining[:NAMED]]
        more = len(declining) - len(costs)
        note = f" ({'; '.join(costs)}{f'; and {more:,} more flows lose' if more else ''})" if costs else ""
        return f"{self.say}: {self.own.text}{note}"

    def to_json(self) -> dict[str, Json]:
        """The change as JSON data; each figure of a flow is a pair: before and after."""
        return {
            "kind": self.kind,
            "cost": self.cost.name.lower(),
            "change": self.say,
            "set": dict(self.set),
            "before_bit_per_s": self.before,
            "after_bit_per_s": self.after,
            "flows": {effect.flow: effect.to_json() for effect in (self.own, *self.others)},
            "harms": self.harms,
        }


def told(change: Change) -> list[Effect]:
    """The effects to show: on the explained flow, and on the `NAMED` others that gain or lose most."""
    if len(change.others) <= NAMED:
        return [change.own, *change.others]
    most = sorted(change.others, key=lambda other: -abs(other.cost))[:NAMED]
    return [change.own, *(other for other in change.others if other in most)]


def shown(changes: Sequence[Change]) -> list[Signal]:
    """The signals that a table of changes has: goodput, delay and loss, and others that change notably."""
    effects = (effect for change in changes for effect in told(change))
    return list(dict.fromkeys((*BASIC, *(signal for effect in effects for signal in effect.notable))))


class Advice(msgspec.Struct, frozen=True):
    """Changes that help, the best first, and a list of all changes tried."""

    changes: tuple[Change, ...]
    """Changes that help the flow and harm none, the best first."""
    trades: tuple[Change, ...]
    """Changes that help the flow but harm another one, or the flow itself in another figure."""
    tried: tuple[str, ...]
    """Descriptions of all changes that were simulated."""
    runs: int
    """Number of simulated runs in which a change was tried."""
    seeds: int
    """Number of seeds that changes are judged with; a change that does not help is given up after fewer."""
    compared: bool
    """True if outcomes with different seeds were compared, to see whether the seed matters."""

    @property
    def basis(self) -> str:
        """The seeds that the advice rests on, as text; empty if the outcome does not depend on the seed."""
        if self.seeds > 1:
            return f" with {self.seeds} seeds"
        why = "because a run takes long: if there is chance in it, gains may come from the seed"
        return "" if self.compared else f" with one seed, {why}"


def advise(
    at: Situation, bench: Bench, *, jobs: int | None = None, watch: Callable[[int], None] | None = None
) -> Advice:
    """Simulate all proposals and keep the changes that help; `watch` gets the number of changes so far.

    Raises `KeyboardInterrupt` on Ctrl-C.
    """
    proposals = list(propose_all(at))
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
        # End the runs of all threads, also after an error or Ctrl-C.
        bench.interrupt.set()
        threads.shutdown(wait=True, cancel_futures=True)
    tried = tuple(dict.fromkeys(candidate.say for result in results for candidate in result.tried))
    found = [change for result in results for change in result.changes]
    missing = 1.0 - at.needs.score(Served.of(one[at.flow] for one in before))
    gains, trades = (
        tuple(ranked([change for change in found if change.trades is trades], missing))
        for trades in (False, True)
    )
    runs = sum(result.runs for result in results)
    return Advice(gains, trades, tried, runs, len(before), bench.compared)


def propose_all(at: Situation) -> Iterator[Proposal]:
    """All proposals of all kinds, each once, without steps that remove a token bucket of the testbed."""
    seen: set[frozenset[tuple[str, str]]] = set()
    for propose in KINDS:
        for proposal in propose(at):
            steps = tuple(step for step in proposal.steps if ports.keeps_rates(at, step))
            if steps and frozenset(steps[0].set) not in seen:
                seen.add(frozenset(steps[0].set))
                yield replace(proposal, steps=steps)


class _Result(msgspec.Struct, frozen=True):
    tried: tuple[Candidate, ...]
    changes: tuple[Change, ...]
    runs: int


_Flows = Sequence[Mapping[str, FlowOutcome]]
"""The outcome of every flow, one mapping per seed."""


def _climb(proposal: Proposal, at: Situation, bench: Bench, before: _Flows) -> _Result:
    """Simulate the steps of a proposal in order until further ones no longer help.

    The result has the first step that helps about as much as the best one, and the same among the steps that
    harm no flow.
    """
    tried: list[Candidate] = []
    best: Change | None = None
    harmless: Change | None = None
    start = reached = at.needs.score(Served.of(one[at.flow] for one in before))
    scores = [at.needs.score(Served.of([one[at.flow]])) for one in before]
    idle = runs = 0

    def rises(place: int, made: Mapping[str, FlowOutcome]) -> bool:
        # With a change there are more seeds than before it only if all outcomes before it are equal.
        return scores[place % len(scores)] < at.needs.score(Served.of([made[at.flow]]))

    steps: Sequence[Candidate] = proposal.steps
    if proposal.shortlist is not None:
        totals = {step: bench.total_limit(step.set) for step in steps}
        now = bench.total_limit()
        more = (step for step in steps if totals[step] > now)
        steps = heapq.nlargest(proposal.shortlist, more, key=lambda step: totals[step])
    for step in steps:
        # A higher mean alone may be chance of the seeds: the score must be higher with every seed.
        after = bench.served(step.set, rises)
        if after is None:
            continue
        tried.append(step)
        runs += len(after)
        sides = [before[place % len(before)] for place in range(len(after))]
        idle += 1
        change = _change(proposal, step, at, sides, after) if rises(len(after) - 1, after[-1]) else None
        if change is not None:
            if not change.trades and _beats(change.score, harmless.score if harmless else start):
                harmless = change
            if _beats(change.score, reached):
                best, reached, idle = change, change.score, 0
        if idle >= proposal.patience:
            break
    found = tuple(one for one in (harmless, best) if one is not None)
    return _Result(tuple(tried), found[:1] if harmless is best else found, runs)


def _beats(score: float, other: float) -> bool:
    # Without this floor any gain would beat a score of 0.
    return score > other + LEAST * max(other, 0.1)


def _change(
    proposal: Proposal, step: Candidate, at: Situation, before: _Flows, after: _Flows
) -> Change | None:
    """The change with its effects on all flows; `None` if it does not help the explained one."""

    def effect(name: str) -> Effect:
        sides = (Served.of(one[name] for one in flows if name in one) for flows in (before, after))
        return Effect(at.title if name == at.flow else name, Needs.of(at.limits.flows.get(name)), *sides)

    own = effect(at.flow)
    if not _helps(own):
        return None
    others = tuple(effect(name) for name in before[0] if name != at.flow)
    return Change(proposal.kind, proposal.cost, step.say, step.set, own, others)


def _helps(own: Effect) -> bool:
    """True if a figure gets notably better, and neither goodput nor loss much worse."""
    return bool(own.needs.worse(own.after, own.before)) and not own.needs.spoils(own.before, own.after)


def ranked(changes: Sequence[Change], missing: float) -> list[Change]:
    """Sort changes by score; among about equal ones by cost, then by price for other flows, then by delay.

    Changes of hardware come last if the best other change gains at least half of the `missing` score. If next
    to nothing is missing, no change can gain half of it.
    """
    hardware = _ordered([change for change in changes if change.cost is Cost.HARDWARE])
    settings = _ordered([change for change in changes if change.cost is not Cost.HARDWARE])
    if settings and missing >= LEAST and settings[0].gain >= missing / 2:
        return settings + hardware
    return _ordered(changes)


def _preference(change: Change) -> tuple[Cost, bool, float, float]:
    own = change.own
    return change.cost, own.declines, change.price, own.needs.delay(own.after) or 0.0


def _ordered(changes: Sequence[Change]) -> list[Change]:
    rest = sorted(changes, key=lambda change: -change.score)
    made: list[Change] = []
    while rest:
        least = rest[0].score * (1 - 2 * LEAST)
        equal = [change for change in rest if change.score >= least]
        made += sorted(equal, key=_preference)
        rest = rest[len(equal) :]
    return made
