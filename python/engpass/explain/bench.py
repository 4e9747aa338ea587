"""Runs one point again with changes, and with the same variant, swept values and seeds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from engpass import _engpass, outcomes, receivers
from engpass.error import EngpassError
from engpass.explain.service import Served
from engpass.settings import split
from engpass.types.outcome import Engine, Outcome

T = TypeVar("T")

Pairs = Sequence[tuple[str, str]]


def interruptibly(interrupt: _engpass.Interrupt, work: Callable[[], T]) -> T:
    """Run `work` in a thread, so that Ctrl-C ends the runs that hold this interrupt; returns its result.

    Raises what `work` raises, and `EngpassError` if the engine does not carry the testbed.
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
    """A point of a testbed that can be simulated with changes; its calls may come from several threads.

    If the flow has several receivers, the outcomes are as the given one sees them.
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
        self._flow, self._receiver = flow, receiver
        self.interrupt = _engpass.Interrupt()
        self.campaign = _engpass.load(text.encode(), source, list(self._overrides), None)
        self._lock = threading.Lock()
        self._before: list[dict[str, Served]] | None = None

    def outcomes(self, changes: Pairs = ()) -> list[Outcome]:
        """Outcomes of the repeats; raises what `Campaign.run` raises."""
        campaign, sweep = self._changed(changes)
        return [self._run("simulate", campaign, sweep, repeat) for repeat in self.repeats]

    def limit(self, changes: Pairs = ()) -> Outcome:
        """Outcome of the limit engine."""
        return self._run("limit", *self._changed(changes), 0)

    def served(self, changes: Pairs) -> list[dict[str, Served]] | None:
        """Service of all flows by repeat; `None` if the core refuses the change."""
        try:
            made = self.outcomes(changes)
        except (_engpass.InvalidTestbed, _engpass.Unsupported):
            return None
        return [_served(outcome) for outcome in made]

    def baseline(self) -> list[dict[str, Served]]:
        """Service of all flows by repeat without a change; simulated once."""
        with self._lock:
            if self._before is None:
                self._before = [_served(outcome) for outcome in self.outcomes()]
            return self._before

    def remember(self, stored: Sequence[Outcome]) -> None:
        """Take stored outcomes as the baseline: of this build, one per repeat, as `seen` returns them."""
        by_repeat = {outcome.repeat: outcome for outcome in stored}
        self._before = [_served(by_repeat[repeat]) for repeat in self.repeats]

    def seen(self, outcome: Outcome) -> Outcome:
        """An outcome of this point as the receiver sees it."""
        return receivers.seen_by(outcome, self._flow, self._receiver)

    def _run(self, engine: Engine, campaign: _engpass.Campaign, sweep: Pairs, repeat: int) -> Outcome:
        text = campaign.run(engine, self._variant, list(sweep), repeat, self.interrupt)
        return self.seen(outcomes.read(text))

    def _changed(self, changes: Pairs) -> tuple[_engpass.Campaign, Pairs]:
        """The campaign and the swept values with changes; they replace swept values of the same path.

        Values of `--set` have precedence over swept ones. If one covers a change, the change is set as well.
        """
        paths = {split(path) for path, _ in changes}
        kept = [pair for pair in self._sweep if split(pair[0]) not in paths]
        under = [pair for pair in self._overrides if not _covers(split(pair[0]), paths)]
        if len(under) == len(self._overrides):
            return self.campaign, [*kept, *changes]
        # The change comes after the values that were set, so that it takes effect.
        pairs = [*self._overrides, *changes]
        return _engpass.load(self._text.encode(), self._source, pairs, None), kept


def _covers(path: tuple[str, ...], changed: set[tuple[str, ...]]) -> bool:
    return any(one[: len(path)] == path for one in changed)


def _served(outcome: Outcome) -> dict[str, Served]:
    # A flow with several receivers is left out here: the outcome has a flow for each receiver.
    flows = outcome.flows.items()
    return {name: Served.of(flow) for name, flow in flows if not receivers.several(flow)}
