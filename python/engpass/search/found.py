"""The trials and the result of a search, as the store keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from engpass.store import RunRecord


class Tried(msgspec.Struct, frozen=True):
    """A trial, as `Trial.to_json` writes it."""

    load_bit_per_s: float
    duration_s: float
    sent: int
    lost: int
    asked: int
    loss: float
    forwarded_bit_per_s: float
    kept: bool
    valid: bool = True
    late: int = 0


class GoalAsked(msgspec.Struct, frozen=True):
    """A goal, as `Goal.to_json` writes it."""

    loss_ratio: float
    final_trial_s: float
    duration_sum_s: float
    exceed_ratio: float


class GoalFound(msgspec.Struct, frozen=True):
    """The result for a goal, as `GoalResult.to_json` writes it."""

    goal: GoalAsked
    lower_bit_per_s: float | None
    upper_bit_per_s: float | None
    conditional_throughput_bit_per_s: float | None
    regular: bool
    why: str | None = None


class Found(msgspec.Struct, frozen=True):
    """The result of a search by any of the methods."""

    trials: int = 0
    trial_seconds: float = 0.0
    message_bytes: int = 1
    invalid_trials: int = 0
    departures: list[str] = []
    limit_bit_per_s: float | None = None
    """The bound of the limit engine on the stream, if it gives one."""
    notes: list[str] = []
    """The parts of the file that the engine leaves out, and results that are above the limit of the path."""
    goals: list[GoalFound] | None = None
    """Only for MLRsearch: the result for each goal."""
    finished: bool | None = None
    """Only for RFC 2544's throughput, like the next two fields."""
    throughput_bit_per_s: float | None = None
    lowest_lossy_bit_per_s: float | None = None
    highest_clean_bit_per_s: float | None = None
    """Only for RFC 2544's frame loss: the highest load without loss."""


class Loads(msgspec.Struct, frozen=True):
    """The smallest and the largest load of a search, of payload."""

    least_bit_per_s: float = 0.0
    most_bit_per_s: float = 0.0


def loads(record: RunRecord) -> Loads:
    """The range of loads of a search."""
    return msgspec.convert(record.settings, Loads)


def tried(record: RunRecord) -> list[Tried]:
    """The trials of a search."""
    return msgspec.convert(record.trials, list[Tried])


def found(record: RunRecord) -> Found | None:
    """The result of a search; `None` if it has not ended."""
    return None if record.result is None else msgspec.convert(record.result, Found)
