"""Runs a search from its settings to its result, and stores its trials one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from engpass.campaign import ENGINES, MODEL, Plan, choose
from engpass.formatting import rate
from engpass.memory import MOST, need
from engpass.search.found import Found
from engpass.search.goal import Goal
from engpass.search.loss import frame_loss
from engpass.search.mlrsearch import search
from engpass.search.notes import above, learning
from engpass.search.rfc2544 import (
    LEARNING_SECONDS,
    RESIDUE_SECONDS,
    SETTLE_SECONDS,
    TRIAL_SECONDS,
    throughput,
)
from engpass.search.trial import Budget, SearchError, Trial
from engpass.search.trial_runner import TrialRunner, check_slow
from engpass.store import Finished, RunRecord, Store, new_record
from engpass.testbed_file import TestbedFile

if TYPE_CHECKING:
    from engpass.jsondata import Json

METHODS = ("mlrsearch", "rfc2544", "frame-loss")
"""The methods of search that a user can choose."""

ENGINES_OF_SEARCHES = tuple(engine for engine in ENGINES if engine != "limit")


_TRIES = 3
"""Maximum number of attempts at a trial in which an emulated network was too late."""


class Settings(msgspec.Struct, frozen=True):
    """Settings of a search, in seconds, shares and bit/s of payload; `None` selects the method's default."""

    method: str = "mlrsearch"
    goals: tuple[Goal, ...] = (Goal(), Goal(loss=0.005))
    trial: float = TRIAL_SECONDS
    """Of `rfc2544` and `frame-loss`: seconds of a trial."""
    width: float = 0.01
    """Of `rfc2544`: width of the bounds that ends bisection, as a share of the upper one."""
    step: float = 0.1
    """Of `frame-loss`: step from one load to the next, as a share of the largest."""
    whole: bool = False
    """Of `frame-loss`: go down to the smallest load in any case."""
    settle: float | None = None
    """Seconds between trials on real networks."""
    least: int | None = None
    most: int | None = None
    slow: int = 1
    """Of `emulate`: factor of time dilation."""
    longest: float = 24 * 3600.0
    """Seconds of trials after which the search ends with the bounds found so far."""

    def pause(self, engine: str) -> float:
        """The pause between trials in seconds; 0 if the engine runs in virtual time."""
        if engine in MODEL:
            return 0.0
        if self.settle is not None:
            return self.settle
        return 0.0 if self.method == "mlrsearch" else RESIDUE_SECONDS + SETTLE_SECONDS

    def to_json(self) -> dict[str, list[dict[str, float]] | float | None]:
        """The settings that the method uses, as a report must show them."""
        common: dict[str, list[dict[str, float]] | float | None] = {
            "residue_s": RESIDUE_SECONDS,
            "longest_s": self.longest,
            "least_bit_per_s": self.least,
            "most_bit_per_s": self.most,
        }
        if self.slow != 1:
            common["slow"] = self.slow
        if self.method == "mlrsearch":
            return {"goals": [goal.to_json() for goal in self.goals], "settle_s": self.settle, **common}
        own: dict[str, float | None] = {"trial_s": self.trial, "settle_s": self.settle}
        if self.method == "rfc2544":
            return {**own, "width": self.width, **common}
        return {**own, "step": self.step, "whole": self.whole, **common}

    def departures(self, engine: str) -> list[str]:
        """A sentence for each departure of the settings from the RFC of the method."""
        if self.method == "mlrsearch":
            return []
        found = []
        if self.trial < TRIAL_SECONDS:
            found.append(f"trials last {self.trial:g} s instead of {TRIAL_SECONDS:g} s (RFC 2544 section 24)")
        if engine not in MODEL and self.pause(engine) < RESIDUE_SECONDS + SETTLE_SECONDS:
            rest = f"{RESIDUE_SECONDS:g} s for remaining packets and {SETTLE_SECONDS:g} s to settle"
            found.append(
                f"the pause between trials is {self.pause(engine):g} s instead of {rest} (section 23)"
            )
        if self.method == "frame-loss" and self.step > 0.1:
            found.append("steps are larger than a tenth of the largest load (section 26.3)")
        return found


Watch = Callable[[RunRecord, Trial, int], None]
"""Called with every trial and its number, from 1."""


def run_search(
    testbed: TestbedFile,
    store: Store,
    settings: Settings,
    *,
    traffic: str,
    engine: str = "measure",
    variant: str | None = None,
    fresh: bool = False,
    watch: Watch | None = None,
    began: Callable[[RunRecord], None] | None = None,
    max_memory: int | None = MOST,
) -> RunRecord:
    """Run a search and store every trial; an unfinished search goes on from its stored trials.

    Raises `SearchError`, `ChoiceError`, `NeedsMemoryError` if a trial needs more than `max_memory` bytes, and
    what the engine raises. Trials that were made stay in the store.
    """
    (engine,) = choose("engine for searches", [engine], ENGINES_OF_SEARCHES)
    (variant,) = choose("variant", [variant or testbed.variants[0]], testbed.variants)
    check_slow(engine, settings.slow)
    (_,) = choose("method", [settings.method], METHODS)
    need(testbed.campaign, [engine], [variant]).check(max_memory)
    with TrialRunner(testbed, traffic, engine, variant, lambda: False, settings.slow) as runner:
        least = settings.least if settings.least is not None else runner.least()
        most = settings.most if settings.most is not None else runner.most()
        if not 0 < least < most:
            raise SearchError(
                f"loads from {rate(least)} to {rate(most)} are not a valid range",
                "give a `--min` above zero and below `--max`",
            )
        run_id, session = store.begin(_record(testbed, settings, runner, (least, most)), fresh=fresh)
        record = store.run(run_id, any_method=True)
        if began is not None:
            began(record)
        trials = _Trials(runner, store, record, session, settings.pause(engine), watch)
        result: dict[str, Json] = {
            **_found(settings, trials, least, most),
            "trials": len(trials.made),
            "trial_seconds": sum(trial.duration for trial in trials.made),
            "message_bytes": runner.message,
            "invalid_trials": sum(not trial.valid for trial in trials.made),
            "departures": settings.departures(engine),
        }
        longest = max((trial.duration for trial in trials.made), default=None)
        bound = None if longest is None else runner.bound(most, longest)
        result["limit_bit_per_s"] = None if bound is None else bound[0]
        found = msgspec.convert(result, Found)
        notes = [] if bound is None else above(found, settings.trial, bound, engine)
        result["notes"] = [*runner.notes, *learning(runner.learning), *notes]
    store.end(session, result)
    return store.run(run_id, any_method=True)


class _Trials:
    """Makes trials and stores them; a trial that is in the store already is not made again."""

    def __init__(
        self,
        runner: TrialRunner,
        store: Store,
        record: RunRecord,
        session: int,
        pause: float,
        watch: Watch | None,
    ) -> None:
        self._runner, self._store, self._record, self._session = runner, store, record, session
        self._pause, self._watch = pause, watch
        self._there = [Trial.from_json(data) for data in record.trials]
        self.made: list[Trial] = []

    def __call__(self, load: int, duration: float) -> Trial:
        position = len(self.made)
        if position < len(self._there):
            # A search depends only on its trials, so that the stored ones lead it to where it stopped.
            trial = self._there[position]
            if (trial.load, trial.duration) != (load, duration):
                raise SearchError(
                    "the stored trials belong to another search", "start a new search with `--fresh`"
                )
            self._runner.skip(load, duration)
        else:
            begin = time.perf_counter()
            trial, outcome = self._valid(load, duration)
            seconds = time.perf_counter() - begin
            told = json.dumps(trial.to_json(), ensure_ascii=False)
            made = Finished(position, seconds, outcome, None, told)
            if not self._store.write(self._record.id, self._session, [made]):
                raise SearchError(
                    f"another process works on the search {self._record.id}",
                    "wait until it has ended, or start a new search with `--fresh`",
                )
            if self._pause:
                time.sleep(self._pause)
        self.made.append(trial)
        if self._watch is not None:
            self._watch(self._record, trial, len(self.made))
        return trial

    def _valid(self, load: int, duration: float) -> tuple[Trial, str]:
        """Make a trial until it is valid, at most `_TRIES` times; returns the last one and its outcome."""
        for _ in range(_TRIES - 1):
            trial, outcome = self._runner.trial(load, duration)
            if trial.valid:
                return trial, outcome
        return self._runner.trial(load, duration)


def _found(settings: Settings, trials: _Trials, least: int, most: int) -> Mapping[str, Json]:
    budget = Budget(settings.longest)
    if settings.method == "mlrsearch":
        results = search(settings.goals, trials, least, most, budget)
        return {"goals": [result.to_json() for result in results]}
    if settings.method == "rfc2544":
        found = throughput(
            trials, least, most, duration=settings.trial, resolution=settings.width, budget=budget
        )
        return found.to_json()
    curve = frame_loss(
        trials, most, duration=settings.trial, step=settings.step, whole=settings.whole, budget=budget
    )
    clean = [trial.load for trial in curve if trial.loss == 0.0]
    return {"highest_clean_bit_per_s": max(clean, default=None)}


def _record(
    testbed: TestbedFile,
    settings: Settings,
    runner: TrialRunner,
    loads: tuple[int, int],
) -> RunRecord:
    from engpass.environment import environment

    told = settings.to_json() | {"least_bit_per_s": loads[0], "most_bit_per_s": loads[1]}
    if runner.learning:
        told["learning_s"] = LEARNING_SECONDS
    return new_record(
        testbed,
        Plan((runner.engine,), (runner.variant,), (), 1),
        environment(1, "search"),
        method=settings.method,
        traffic=runner.traffic,
        settings=told,
    )
