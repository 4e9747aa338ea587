"""Goals of MLRsearch, and the classification of loads by their trials (RFC 9971)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import msgspec

from engpass.search.trial import Trial


class Goal(msgspec.Struct, frozen=True):
    """A search goal (RFC 9971, "Search Goal"). Durations are in seconds, ratios and the width shares."""

    loss: float = 0.0
    """Goal Loss Ratio: the greatest loss ratio of a good trial."""
    final: float = 1.0
    """Goal Final Trial Duration: only trials of at least this length can make a load a lower bound."""
    total: float = 21.0
    """Goal Duration Sum: total time of trials that decides on a load."""
    exceed: float = 0.5
    """Goal Exceed Ratio: share of the duration sum in which trials may lose too much."""
    width: float = 0.005
    """Goal Width: how far the bounds may be apart, as a share of the upper one."""
    initial: float | None = None
    """Goal Initial Trial Duration: the shortest trial; the final one if not given."""

    def stages(self) -> list[Goal]:
        """Goals that lead to this one, which is the last; earlier ones have shorter trials, wider bounds."""
        first = min(self.initial if self.initial is not None else self.final, self.final)
        steps = 0
        while first * 8**steps < self.final:
            steps += 1
        ratio = (self.final / first) ** (1 / steps) if steps else 1.0
        found = []
        for step in range(steps):
            final = first * ratio**step
            found.append(
                Goal(
                    self.loss,
                    final,
                    max(final, self.total * final / self.final),
                    self.exceed,
                    min(0.5, self.width * 2 ** (steps - step)),
                )
            )
        return [*found, self]

    def to_json(self) -> dict[str, float]:
        """All attributes of the goal, which a report must show (RFC 9971, "Manager")."""
        return {
            "loss_ratio": self.loss,
            "final_trial_s": self.final,
            "duration_sum_s": self.total,
            "exceed_ratio": self.exceed,
            "width": self.width,
            "initial_trial_s": self.initial if self.initial is not None else self.final,
        }


RFC2544 = Goal(loss=0.0, final=60.0, total=60.0, exceed=0.0, initial=1.0)
"""The goal that finds RFC 2544's throughput (RFC 9971, "MLRsearch Compliant with RFC 2544")."""

TST009 = Goal(loss=0.0, final=60.0, total=120.0, exceed=0.5, initial=1.0)
"""ETSI's binary search with loss verification (RFC 9971, "MLRsearch Compliant with TST009")."""


class Bound(Enum):
    """Classification of a load for a goal: a lower or an upper bound."""

    LOWER = "lower"
    UPPER = "upper"


class _Sums(msgspec.Struct, frozen=True):
    """Seconds of the trials at one load: full-length or shorter, with low or high loss."""

    full_low: float
    full_high: float
    short_low: float
    short_high: float


def _sums(goal: Goal, trials: Sequence[Trial]) -> _Sums:
    times = {(full, low): 0.0 for full in (True, False) for low in (True, False)}
    for trial in trials:
        times[trial.duration >= goal.final, trial.loss <= goal.loss] += trial.duration
    return _Sums(times[True, True], times[True, False], times[False, True], times[False, False])


def classify(goal: Goal, trials: Sequence[Trial]) -> Bound | None:
    """Classify a load by its trials as a lower or an upper bound of the goal; `None` if it is undecided.

    RFC 9971, "Load Classification Code". Trials that are shorter than the final duration count only against a
    load: by their bad time, less the part that their good time makes up for. Further trials in the rest of
    the goal's time cannot change a classification.
    """
    sums = _sums(goal, trials)
    made_up = sums.short_low * goal.exceed / (1.0 - goal.exceed)
    bad = sums.full_high + max(0.0, sums.short_high - made_up)
    whole = max(sums.full_low + bad, goal.total)
    allowed = whole * goal.exceed
    # A lower bound stays one even if the rest of the time is bad, an upper bound even if the rest is good.
    # The slack allows for sums of rounded seconds.
    slack = 1e-9 * whole
    if whole - sums.full_low <= allowed + slack:
        return Bound.LOWER
    return None if bad <= allowed + slack else Bound.UPPER


def conditional_throughput(goal: Goal, load: int, trials: Sequence[Trial]) -> float:
    """The forwarding rate to expect at a lower bound, in bit/s.

    RFC 9971, "Conditional Throughput Code": the rate of the trial at the loss quantile that the goal's exceed
    ratio leaves. Time that was not measured counts as lost. Raises `ValueError` without any trial.
    """
    full = sorted((t for t in trials if t.duration >= goal.final), key=lambda trial: trial.loss)
    if not trials:
        raise ValueError("a load without a trial has no conditional throughput")
    time = max(goal.total, sum(trial.duration for trial in full))
    left = time * (1.0 - goal.exceed)
    slack = 1e-9 * time
    quantile = None
    for trial in full:
        if quantile is not None and left <= slack:
            break
        quantile = trial.loss
        left -= trial.duration
    else:
        if left > slack or quantile is None:
            quantile = 1.0
    return load * (1.0 - quantile)


class GoalResult(msgspec.Struct, frozen=True):
    """The result for one goal (RFC 9971, "Goal Result")."""

    goal: Goal
    lower: int | None
    """Relevant lower bound, in bit/s. If there is no upper bound, only the highest load that was reached."""
    upper: int | None
    """Relevant upper bound, in bit/s."""
    conditional: float | None
    """Conditional throughput at the lower bound, in bit/s."""
    regular: bool
    """True if both bounds are known and not farther apart than the goal's width."""
    why: str | None = None
    """The reason why the result is irregular."""

    def to_json(self) -> dict[str, dict[str, float] | float | str | None]:
        """The result as JSON data, with its goal."""
        return {
            "goal": self.goal.to_json(),
            "lower_bit_per_s": self.lower,
            "upper_bit_per_s": self.upper,
            "conditional_throughput_bit_per_s": self.conditional,
            "regular": self.regular,
            "why": self.why,
        }
