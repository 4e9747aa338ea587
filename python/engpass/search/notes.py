"""Notes on the result of a search: the time before each trial, and rates above what the path can carry."""

from __future__ import annotations

from collections.abc import Sequence

from engpass import formatting
from engpass.results.above_limit import AT
from engpass.search.found import Found
from engpass.search.rfc2544 import LEARNING_SECONDS, RESIDUE_SECONDS, TRIAL_SECONDS


def is_above(found: Found, rate: float | None) -> bool:
    """True if a rate in bit/s is above the limit of the path by more than rounding."""
    limit = found.limit_bit_per_s
    return rate is not None and limit is not None and rate > limit * (1 + AT)


def above(found: Found, trial: float, bound: tuple[float, str], engine: str) -> list[str]:
    """A sentence about the rates above a bound, for each duration of trials that has some.

    `trial` is the duration in seconds for methods without goals; `bound` is in bit/s, with what sets it.
    """
    limit, place = bound
    notes = []
    for seconds, rates in _rates(found, trial).items():
        excess = dict.fromkeys(formatting.rate(rate) for rate in rates if rate > limit * (1 + AT))
        if excess:
            verb = "is" if len(excess) == 1 else "are"
            told = f"{' and '.join(excess)} {verb} more than the limit of the path"
            why, cure = _why(seconds, engine), _cure(seconds, goals=found.goals is not None)
            notes.append(f"{told}, {formatting.rate(limit)} ({place}): {why}; {cure}")
    return notes


def learning(routers: Sequence[str]) -> list[str]:
    """A sentence about the time before each trial, if routers ask for hardware addresses."""
    if not routers:
        return []
    names = " and ".join(f"`{name}`" for name in routers[:3])
    names += f" and {formatting.count(len(routers) - 3, 'other')}" if len(routers) > 3 else ""
    who = f"router {names} learns" if len(routers) == 1 else f"routers {names} learn"
    begin = f"each trial begins after {LEARNING_SECONDS:g} s of its traffic"
    return [f"{begin}, in which {who} addresses (RFC 2544 section 23 waits as long)"]


def _rates(found: Found, trial: float) -> dict[float, Sequence[float]]:
    """The rates of a result in bit/s, by the duration of the trials that decided them, in seconds."""
    if found.goals is None:
        rates = (found.throughput_bit_per_s, found.highest_clean_bit_per_s)
        return {trial: [rate for rate in rates if rate is not None]}
    by_duration: dict[float, Sequence[float]] = {}
    for one in found.goals:
        if one.conditional_throughput_bit_per_s is not None:
            seconds = one.goal.final_trial_s
            by_duration[seconds] = [*by_duration.get(seconds, ()), one.conditional_throughput_bit_per_s]
    return by_duration


def _why(seconds: float, engine: str) -> str:
    why = f"queues deliver the rest in the {RESIDUE_SECONDS:g} s after a trial of {seconds:g} s"
    return f"{why}, or the real lines are faster than those of the file" if engine == "measure" else why


def _cure(seconds: float, *, goals: bool) -> str:
    options = "`--trial` or `--method rfc2544`" if goals and seconds < TRIAL_SECONDS else "`--trial`"
    return f"results of longer trials ({options}) are closer to the load that lasts"
