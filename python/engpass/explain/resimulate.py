"""Simulates one point again with changes, for the same variant, swept values and seeds."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from engpass import _engpass
from engpass.error import EngpassError
from engpass.plan import point_plan
from engpass.results import outcomes, receivers
from engpass.settings import split
from engpass.types.outcome import Engine, FlowOutcome, Outcome
from engpass.types.plan import PointPlan

T = TypeVar("T")

Pairs = Sequence[tuple[str, str]]

SEEDS = 5
"""Number of seeds with which to judge changes if the outcome of the point depends on the seed: our choice."""

EVENTS = 10_000_000
"""If a run has more events than this, which take some seconds, no further seeds are simulated."""

Flows = dict[str, FlowOutcome]
"""The outcomes of all flows with one seed; if a flow has several receivers, that of each receiver."""

Goes = Callable[[int, Flows], bool]
"""Decides whether to go on with the next seed, from this seed's position and its outcomes."""


def _always(_place: int, _made: Flows) -> bool:
    return True


def interruptibly(interrupt: _engpass.Interrupt, work: Callable[[], T]) -> T:
    """Run `work` in a thread, so that Ctrl-C also stops runs that hold `interrupt`; returns the result.

    Raises what `work` raises, and `EngpassError` if the engine does not support the testbed.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="engpass") as thread:
        future = thread.submit(work)
        try:
            return future.result()
        except _engpass.Unsupported as error:
            raise EngpassError(str(error)) from None
        finally:
            if not future.done():
                interrupt.set()


class Bench:
    """A point of a testbed that can be simulated with changes, also by several threads at once.

    If the flow has several receivers, outcomes are seen from the given one.
    """

    def __init__(
        self,
        text: str,
        source: str,
        overrides: Pairs,
        variant: str,
        sweep: Pairs,
        repeats: Sequence[int],
        flow: str = "",
        receiver: str = "",
    ) -> None:
        self._text, self._source, self._overrides = text, source, tuple(overrides)
        self._variant, self._sweep = variant, tuple(sweep)
        self.repeats = tuple(repeats)
        self.seeds = self.repeats
        """The repeats whose seeds are used to judge changes."""
        self.compared = len(self.repeats) > 1
        """True if outcomes with different seeds were compared."""
        self.alike = False
        """True if the outcomes with different seeds were compared and are equal."""
        self._flow, self._receiver = flow, receiver
        self.interrupt = _engpass.Interrupt()
        self.campaign = _engpass.load(text.encode(), source, list(self._overrides), None)
        self._lock = threading.Lock()
        self._before: dict[int, Flows] = {}

    def outcomes(self, changes: Pairs = ()) -> list[Outcome]:
        """Simulate all repeats with some changes; raises what `Campaign.run` raises."""
        campaign, sweep = self._changed(changes)
        return [self._run("simulate", campaign, sweep, repeat) for repeat in self.repeats]

    def limit(self, changes: Pairs = ()) -> Outcome:
        """The limit engine's outcome with some changes."""
        return self._run("limit", *self._changed(changes), 0)

    def shares_down(self) -> dict[str, float]:
        """The share of the measured time in which each failing link is down: the mean of the repeats."""
        shares: dict[str, float] = {}
        for repeat in self.repeats:
            told = self.campaign.shares_down(self._variant, self._sweep, repeat)
            for link, share in msgspec.json.decode(told, type=dict[str, float]).items():
                shares[link] = shares.get(link, 0.0) + share / len(self.repeats)
        return shares

    def total_limit(self, changes: Pairs = ()) -> float:
        """The goodput of all flows together in `limit` with some changes; 0 if the core refuses them."""
        try:
            return sum(flow.goodput_bit_per_s or 0.0 for flow in self.limit(changes).flows.values())
        except (_engpass.InvalidTestbed, _engpass.Unsupported):
            return 0.0

    def served(self, changes: Pairs, goes_on: Goes = _always) -> list[Flows] | None:
        """Simulate changes, seed by seed until `goes_on` is false; returns the outcomes of the flows.

        Returns `None` if the core refuses the change.
        """
        made: list[Flows] = []
        try:
            campaign, sweep = self._changed(changes)
            for place, repeat in enumerate(self._seeds(campaign, sweep)):
                made.append(_flows(self._run("simulate", campaign, sweep, repeat)))
                if not goes_on(place, made[-1]):
                    break
        except (_engpass.InvalidTestbed, _engpass.Unsupported):
            return None
        return made

    def baseline(self) -> list[Flows]:
        """The outcomes of all flows without a change, per seed; each seed is simulated only once."""
        with self._lock:
            for repeat in self.seeds:
                if repeat not in self._before:
                    made = self._run("simulate", self.campaign, self._sweep, repeat)
                    self._before[repeat] = _flows(made)
            return [self._before[repeat] for repeat in self.seeds]

    def remember(self, stored: Sequence[Outcome]) -> None:
        """Use stored outcomes as the baseline: of this build, one per repeat, as `seen` returns them."""
        self._before |= {outcome.repeat: _flows(outcome) for outcome in stored}

    def draw(self, known: Sequence[Outcome]) -> None:
        """Choose the seeds to judge changes with: one if two seeds give equal outcomes, else `SEEDS` or more.

        `known` are the outcomes of the repeats. If there is one, a second seed is simulated for the
        comparison. If a run takes long, only the seeds of the repeats are used.
        """
        first, *others = known
        long = (first.events or 0) > EVENTS
        if not others and not long:
            others = [self._run("simulate", self.campaign, self._sweep, first.repeat + 1)]
            self.remember(others)
        self.compared = bool(others)
        self.alike = self.compared and all(one.flows == first.flows for one in others)
        if self.alike:
            self.seeds = self.repeats[:1]
        elif not long:
            self.seeds = tuple(range(max(SEEDS, len(self.repeats))))
        self.baseline()

    def seen(self, outcome: Outcome) -> Outcome:
        """An outcome of this point as seen from the flow's chosen receiver."""
        return receivers.seen_by(outcome, self._flow, self._receiver)

    def _run(self, engine: Engine, campaign: _engpass.Campaign, sweep: Pairs, repeat: int) -> Outcome:
        text = campaign.run(engine, self._variant, list(sweep), repeat, self.interrupt)
        return self.seen(outcomes.read(text))

    def _seeds(self, campaign: _engpass.Campaign, sweep: Pairs) -> Sequence[int]:
        """The seeds to judge a change with: `SEEDS` if randomness comes only with the change."""
        if not self.alike:
            return self.seeds
        brings = drawing(point_plan(campaign, self._variant, sweep)) - self._drawing
        return range(SEEDS) if brings else self.seeds

    @functools.cached_property
    def numbers(self) -> PointPlan:
        """The numbers of the point without a change."""
        return point_plan(self.campaign, self._variant, self._sweep)

    @functools.cached_property
    def _drawing(self) -> frozenset[tuple[str, ...]]:
        return drawing(self.numbers)

    def _changed(self, changes: Pairs) -> tuple[_engpass.Campaign, Pairs]:
        """The campaign and the swept values with changes, which replace swept values of the same path.

        Values of `--set` have precedence over swept ones. A change below such a value is therefore set too.
        """
        paths = {split(path) for path, _ in changes}
        kept = [pair for pair in self._sweep if split(pair[0]) not in paths]
        under = [pair for pair in self._overrides if not _covers(split(pair[0]), paths)]
        if len(under) == len(self._overrides):
            return self.campaign, [*kept, *changes]
        # The change is set after the user's values, so that it has effect.
        pairs = [*self._overrides, *changes]
        return _engpass.load(self._text.encode(), self._source, pairs, None), kept


def drawing(numbers: PointPlan) -> frozenset[tuple[str, ...]]:
    """The policies, queues and lines of a point that draw random numbers, each by kind and place."""
    queues = (
        (queue.kind, link.name, node)
        for link in numbers.links
        for node, queue in zip(link.ends, link.queues, strict=True)
        if queue is not None and queue.draws
    )
    lines = (("line", link.name) for link in numbers.links if link.jitter_ns or link.loses or link.reorders)
    return frozenset([*queues, *lines, *((name,) for name, node in numbers.between.items() if node.draws)])


def _covers(path: tuple[str, ...], changed: set[tuple[str, ...]]) -> bool:
    return any(one[: len(path)] == path for one in changed)


def _flows(outcome: Outcome) -> Flows:
    # The outcome has one flow for each of several receivers; leave out the flow that stands for all.
    return {name: flow for name, flow in outcome.flows.items() if not receivers.several(flow)}
