"""Values of signals: in one outcome, and over repeats, combined (folded) as each signal declares."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec.structs import replace

from engpass.results import student
from engpass.types.signals import ENGINE, FLOW, LINE, Signal

if TYPE_CHECKING:
    from engpass.types.outcome import DirectionOutcome, EngineOutcome, FlowOutcome

    Subject = FlowOutcome | DirectionOutcome | EngineOutcome

Cell: TypeAlias = str | float | bool | None
"""A value of a table."""

FLOW_SIGNALS = {signal.name: signal for signal in FLOW}
"""Signals of a flow by column name."""

GOODPUT = FLOW_SIGNALS["goodput_bit_per_s"]
OFFERED = FLOW_SIGNALS["offered_bit_per_s"]
LOSS = FLOW_SIGNALS["loss"]
SENT = FLOW_SIGNALS["sent_datagrams"]
DELAY_P50 = FLOW_SIGNALS["delay_p50_s"]
DELAY_P99 = FLOW_SIGNALS["delay_p99_s"]
LONGEST_GAP = FLOW_SIGNALS["outage_longest_s"]
IDLE_DELAY = FLOW_SIGNALS["idle_delay_s"]
MESSAGE_DELAY_P99 = FLOW_SIGNALS["message_delay_p99_s"]
TRANSFER_TIME = FLOW_SIGNALS["transfer_s"]
TRANSFER_RATE = FLOW_SIGNALS["transfer_bit_per_s"]
LOST_DOWN = FLOW_SIGNALS["outage_lost_datagrams"]

(LOAD,) = (signal for signal in ENGINE if signal.name == "load")
"""Share of the time in which an engine is busy."""

SUMMARY = tuple(signal for signal in FLOW if signal.summary)
"""Signals of a flow that summaries show, in their order."""

DRAWN = (*SUMMARY, MESSAGE_DELAY_P99, TRANSFER_TIME)
"""Signals of a flow that figures show."""

FAMILIES = {
    family: tuple(signal for signal in FLOW if signal.family is not None and signal.family[0] == family)
    for family in dict.fromkeys(signal.family[0] for signal in FLOW if signal.family is not None)
}
"""Signals of a flow with a common title, such as the quantiles of a delay, by that title."""

_BY_QUANTITY = {
    scope: {signal.title.lower().replace(".", ""): signal for signal in signals}
    for scope, signals in (("flow", FLOW), ("line", LINE), ("engine", ENGINE))
}


def signal_of(quantity: str, scope: str = "flow") -> Signal | None:
    """The signal of a `flow`, `line` or `engine` that claims call `quantity`; `None` if there is none."""
    return _BY_QUANTITY[scope].get(quantity.lower().replace(".", ""))


@functools.cache
def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def at(subject: Any, path: str) -> Cell:  # noqa: ANN401 (any part of an outcome)
    """The value at a dotted path in an outcome; `None` if a part of the path is missing."""
    for name in _parts(path):
        if subject is None:
            return None
        subject = getattr(subject, name, None)
    found: Cell = subject
    return found


def value(subject: Subject, signal: Signal) -> float | None:
    """The value of a signal in one outcome; `None` if the engine does not give it."""
    found = _sample(subject, signal)
    return None if found is None else _fold([found], signal)


class Spread(msgspec.Struct, frozen=True):
    """The repeats of a signal: their folded `value` and their range."""

    value: float
    low: float
    high: float


class Samples:
    """Values of some signals of one flow, line or engine: one value for each repeat that has one."""

    def __init__(self, signals: Iterable[Signal]) -> None:
        self._values: dict[Signal, list[tuple[float, float]]] = {signal: [] for signal in signals}
        self._spreads: dict[Signal, Spread | None] = {}
        self.repeats = 0
        """Number of repeats that were added."""

    def add(self, subject: Subject) -> None:
        """Add the outcome of a repeat."""
        self.repeats += 1
        self._spreads.clear()
        for signal, values in self._values.items():
            if (found := _sample(subject, signal)) is not None:
                values.append(found)

    def spread(self, signal: Signal) -> Spread | None:
        """The folded value and the range of a signal; `None` without a value."""
        # Tables and figures ask for the same signals again and again.
        if signal not in self._spreads:
            values = self._values.get(signal)
            each = [_fold([one], signal) for one in values or ()]
            self._spreads[signal] = Spread(_fold(values, signal), min(each), max(each)) if values else None
        return self._spreads[signal]

    def mean(self, signal: Signal, repeats: int | None = None) -> student.Mean | None:
        """The mean of a signal over the first repeats, or all, with its variance; `None` without a value.

        Also of signals that fold otherwise: a maximum or a sum grows with the number of repeats.
        """
        values = self._values.get(signal)
        if not values:
            return None
        found = student.mean(values[:repeats])
        # As in `_fold`: datagrams that were sent before the window may be lost in it.
        return replace(found, value=min(1.0, found.value)) if signal.ratio is not None else found

    def folded(self, signal: Signal) -> float | None:
        """The folded value of a signal; `None` if no repeat has a value."""
        values = self._values.get(signal)
        return _fold(values, signal) if values else None

    def values(self) -> dict[Signal, float]:
        """The folded values of all signals that have one."""
        return {signal: _fold(values, signal) for signal, values in self._values.items() if values}


def folded(subjects: Iterable[Subject], signal: Signal) -> float | None:
    """The value of a signal over some repeats; `None` if none has one."""
    samples = Samples([signal])
    for subject in subjects:
        samples.add(subject)
    return samples.folded(signal)


def _sample(subject: Subject, signal: Signal) -> tuple[float, float] | None:
    """The value of a signal with its divisor, which is 1 unless the signal is a ratio."""
    if signal.ratio is None:
        found = at(subject, signal.path)
        return (float(found), 1.0) if isinstance(found, int | float) else None
    part, whole = (at(subject, path) for path in signal.ratio)
    if not isinstance(part, int | float) or not isinstance(whole, int | float) or not whole:
        return None
    return float(part), float(whole)


def _fold(values: Sequence[tuple[float, float]], signal: Signal) -> float:
    if signal.ratio is not None:
        # More datagrams may be lost in the window than sent: a lost one may have been sent before.
        return min(1.0, math.fsum(part for part, _ in values) / math.fsum(whole for _, whole in values))
    numbers = [number for number, _ in values]
    match signal.fold:
        case "sum":
            return math.fsum(numbers)
        case "min":
            return min(numbers)
        case "max":
            return max(numbers)
        case "mean":
            return math.fsum(numbers) / len(numbers)
