"""MLRsearch: one search for several goals, with short trials first (RFC 9971).

The RFC defines a result and leaves the choice of the next load to the implementation. This one begins at the
largest load, and first looks for bounds near its forwarding rate. It then approaches each goal in stages of
longer trials and narrower bounds. A stage begins with the bounds of the stage before. If these do not hold,
it moves on in steps that double. It bisects the range between a lower and an upper bound.

Goals that allow less loss come first. Their trials are at lower loads, and bad trials at a low load
invalidate lower bounds that other goals have at higher loads ("Conservativeness and Relevant Bounds").
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engpass.search.goal import Bound, Goal, GoalResult, classify, conditional_throughput
from engpass.search.trial import Budget, Measurer, Trial

_PASSES = 4


class _OverError(Exception):
    """The budget of time for the search is used up."""


class _State(msgspec.Struct):
    """The range of loads, and by load all trials so far."""

    measure: Measurer
    least: int
    most: int
    budget: Budget
    trials: dict[int, list[Trial]] = msgspec.field(default_factory=dict)

    def bounds(self, goal: Goal) -> tuple[int | None, int | None]:
        """The relevant bounds so far: the lowest upper bound, and the highest lower bound below it."""
        known = {load: classify(goal, trials) for load, trials in self.trials.items()}
        upper = min((load for load, bound in known.items() if bound is Bound.UPPER), default=None)
        below = (
            load for load, bound in known.items() if bound is Bound.LOWER and (upper is None or load < upper)
        )
        return max(below, default=None), upper

    def decide(self, goal: Goal, load: int) -> None:
        """Make trials at a load until it is a lower or an upper bound for the goal."""
        while classify(goal, self.trials.get(load, [])) is None:
            self.once(load, goal.final)

    def once(self, load: int, duration: float) -> Trial:
        if self.budget.over:
            raise _OverError
        trial = self.budget.spend(self.measure(load, duration))
        self.trials.setdefault(load, []).append(trial)
        return trial

    def within(self, load: float) -> int:
        return min(self.most, max(self.least, round(load)))


def search(
    goals: Sequence[Goal], measure: Measurer, least: int, most: int, budget: Budget | None = None
) -> list[GoalResult]:
    """Search all goals between two loads in bit/s; results in the order of the goals.

    A goal whose bounds were not found within the budget has an irregular result with the reason.
    """
    state = _State(measure, least, most, budget or Budget(float("inf")))
    order = sorted(goals, key=lambda goal: goal.loss)
    why: str | None = None
    try:
        _approach(state, order)
        for _ in range(_PASSES):
            # Trials for later goals may have changed the bounds of earlier goals.
            for goal in order:
                _stage(state, goal, [])
            if all(_result(state, goal, None).regular or _at_edge(state, goal) for goal in order):
                break
    except _OverError:
        why = f"the search ended after {state.budget.spent:g} s of trials"
    return [_result(state, goal, why) for goal in goals]


def _approach(state: _State, order: Sequence[Goal]) -> None:
    shortest = min(order, key=lambda goal: goal.stages()[0].final).stages()[0]
    # The forwarding rate at the maximum load (RFC 2285 section 3.6.2) is near the greatest possible one.
    first = state.once(state.most, shortest.final)
    if first.loss > 0 and (near := state.within(first.forwarded)) < state.most:
        state.once(near, shortest.final)
    for goal in order:
        hints = [state.within(first.forwarded), state.within(first.forwarded * (1 - shortest.width))]
        for stage in goal.stages():
            _stage(state, stage, hints)
            hints = [load for load in state.bounds(stage) if load is not None]


def _stage(state: _State, goal: Goal, hints: list[int]) -> None:
    """Find bounds within the goal's width; at an edge of the range of loads there may be only one."""
    up = down = 1
    while True:
        lower, upper = state.bounds(goal)
        if upper is None:
            if lower == state.most:
                return
            above = [load for load in hints if lower is None or load > lower]
            if above and lower is not None:
                load = min(above)
            elif lower is None:
                load = max(above, default=state.most)
            else:
                load, up = state.within(lower * (1 + goal.width * up) + 1), up * 2
        elif lower is None:
            if upper == state.least:
                return
            under = [load for load in hints if load < upper]
            if under:
                load = max(under)
            else:
                load, down = state.within(upper * (1 - min(0.5, goal.width * down))), down * 2
                load = min(load, upper - 1)
        elif _is_near(goal, lower, upper):
            return
        else:
            between = [load for load in hints if lower < load < upper]
            load = between[0] if between else (lower + upper) // 2
        hints = [hint for hint in hints if hint != load]
        state.decide(goal, load)


def _is_near(goal: Goal, lower: int, upper: int) -> bool:
    return upper - lower <= max(1, goal.width * upper)


def _at_edge(state: _State, goal: Goal) -> bool:
    lower, upper = state.bounds(goal)
    return (upper is None and lower == state.most) or (lower is None and upper == state.least)


def _result(state: _State, goal: Goal, why: str | None) -> GoalResult:
    lower, upper = state.bounds(goal)
    conditional = None if lower is None else conditional_throughput(goal, lower, state.trials[lower])
    if lower is not None and upper is not None and _is_near(goal, lower, upper):
        return GoalResult(goal, lower, upper, conditional, regular=True)
    if upper is None and lower == state.most:
        why = "even the largest load meets the goal"
    elif lower is None and upper == state.least:
        why = "even the smallest load misses the goal"
    return GoalResult(
        goal, lower, upper, conditional, regular=False, why=why or "the bounds are too far apart"
    )
