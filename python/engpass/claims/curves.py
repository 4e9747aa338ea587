"""Curves: a quantity of a flow, of all flows together, or of a link, over the swept values of a campaign."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engpass.campaign import Axis
from engpass.claims.flows import TOGETHER
from engpass.claims.links import LINK_UNITS, on_link
from engpass.claims.missing import NoDataError
from engpass.results import receivers
from engpass.types.outcome import FlowOutcome, Outcome, Quantiles, SweptValue


@dataclass(frozen=True)
class Sample:
    """One point of a curve: the swept value in base units and as written, and the quantity there."""

    x: float
    text: str
    value: float


@dataclass(frozen=True)
class Curve:
    """Samples in ascending order of the swept values."""

    samples: tuple[Sample, ...]
    x_unit: str
    unit: str

    def between(self, low: float | None, high: float | None) -> Curve:
        """The samples from `low` to `high`, both included; `None` is no bound. Raises `NoDataError`."""
        kept = tuple(s for s in self.samples if (low is None or s.x >= low) and (high is None or s.x <= high))
        if not kept:
            raise NoDataError("no point in this range")
        return Curve(kept, self.x_unit, self.unit)

    def at(self, x: float) -> Sample:
        """The sample at a swept value; raises `NoDataError`."""
        for sample in self.samples:
            if math.isclose(sample.x, x, rel_tol=1e-9):
                return sample
        raise NoDataError("no point at this value")

    def only(self, x: float) -> Curve:
        """The curve with only the sample at one swept value; raises `NoDataError`."""
        return Curve((self.at(x),), self.x_unit, self.unit)

    def scaled(self, factor: float, unit: str) -> Curve:
        """All values times a factor, in another unit."""
        samples = (Sample(sample.x, sample.text, sample.value * factor) for sample in self.samples)
        return Curve(tuple(samples), self.x_unit, unit)

    def in_bytes(self) -> Curve:
        """The curve in bytes per second if `self` is in bits per second; else `self`."""
        return self.scaled(1 / 8, "B/s") if self.unit == "bit/s" else self

    def least(self) -> Sample:
        """The sample with the least value, the first of several."""
        return min(self.samples, key=lambda sample: sample.value)

    def greatest(self) -> Sample:
        """The sample with the greatest value, the first of several."""
        return max(self.samples, key=lambda sample: sample.value)


_Of = Callable[[FlowOutcome], float | None]
"""Returns a quantity of a flow; `None` if the engine does not give it."""


def _delay(figure: Callable[[Quantiles], float]) -> _Of:
    return lambda flow: None if flow.delay_s is None else figure(flow.delay_s.network)


RATES: dict[str, _Of] = {
    "goodput": lambda flow: flow.goodput_bit_per_s,
    "offered": lambda flow: flow.offered_bit_per_s,
}
"""Quantities of a flow that are rates; the mean of the repeats."""

DELAYS: dict[str, _Of] = {
    "idle delay": lambda flow: None if flow.limit is None else flow.limit.idle_delay_s,
    "delay min": _delay(lambda times: times.min),
    "delay p50": _delay(lambda times: times.p50),
    "delay p90": _delay(lambda times: times.p90),
    "delay p99": _delay(lambda times: times.p99),
    "delay p999": _delay(lambda times: times.p99_9),
    "delay max": _delay(lambda times: times.max),
}
"""One-way delays of a flow: the idle delay, given by `limit`, and quantiles of simulated points."""

GAPS: dict[str, _Of] = {
    "longest gap": lambda flow: None if flow.outage is None else flow.outage.longest_s,
}
"""Times without a reception; only files with events have them."""

DATAGRAMS: dict[str, _Of] = {
    "sent": lambda flow: None if flow.datagrams is None else flow.datagrams.sent,
    "lost": lambda flow: None if flow.datagrams is None else flow.datagrams.lost,
    "lost to line down": lambda flow: None if flow.outage is None else flow.outage.lost,
}
"""Counts of the datagrams of a flow; losses to a line that is down need a file with events."""

COUNTED = {**dict.fromkeys(DATAGRAMS, "datagrams"), "timeouts": "timeouts"}
"""Quantities that are summed over all repeats, with their units."""


class Campaign:
    """The outcomes of one campaign."""

    def __init__(self, axes: Sequence[Axis], outcomes: Iterable[Outcome]) -> None:
        self._axes = tuple(axes)
        self._points: dict[tuple[str, str, tuple[float, ...]], list[Outcome]] = {}
        for outcome in outcomes:
            place = tuple(_number(axis, outcome.sweep[axis.path]) for axis in self._axes)
            self._points.setdefault((outcome.engine, outcome.variant, place), []).append(outcome)

    def curve(
        self,
        engine: str,
        variant: str,
        flow: str,
        quantity: str,
        where: Mapping[str, str] | None = None,
        link: str | None = None,
    ) -> Curve:
        """A quantity over the sweep; without a sweep, one sample.

        Quantities are `goodput`, `offered`, those of `DATAGRAMS` (summed over the repeats), `DELAYS` and
        `GAPS`, the names of stages of the limit engine, and those of `TOGETHER`, which ignore the flow. With
        a `link` they are `utilisation`, `cells`, and accounts of the ledger of its first direction, in bytes
        (`a + b` is a sum). If several paths are swept, `where` fixes all but one. Raises `NoDataError`.
        """
        fixed = where or {}
        free = [index for index, axis in enumerate(self._axes) if axis.path not in fixed]
        if len(free) > 1:
            raise NoDataError("several paths are swept, but the claim does not select a point")
        at = [self._fixed(axis, fixed[axis.path]) if axis.path in fixed else None for axis in self._axes]
        samples = []
        for (of_engine, of_variant, place), outcomes in self._points.items():
            there = all(want is None or want == have for want, have in zip(at, place, strict=True))
            if (of_engine, of_variant) == (engine, variant) and there:
                x, text = (place[free[0]], _text(self._axes[free[0]], place[free[0]])) if free else (0.0, "")
                values = [
                    _value(outcome, flow, quantity) if link is None else on_link(outcome, link, quantity)
                    for outcome in outcomes
                ]
                value = math.fsum(values) / (1 if quantity in COUNTED else len(values))
                samples.append(Sample(x, text, value))
        if not samples:
            raise NoDataError(f"no point of {engine}, variant {variant}")
        samples.sort(key=lambda sample: sample.x)
        if link is not None:
            unit = LINK_UNITS.get(quantity, "B")
        elif quantity in TOGETHER:
            unit = TOGETHER[quantity][0]
        else:
            unit = "s" if quantity in (*DELAYS, *GAPS) else COUNTED.get(quantity, "bit/s")
        x_unit = (self._axes[free[0]].values[0].unit or "") if free else ""
        return Curve(tuple(samples), x_unit, unit)

    @staticmethod
    def _fixed(axis: Axis, text: str) -> float:
        for index, value in enumerate(axis.values):
            if value.text == text:
                return value.number if value.number is not None else float(index)
        raise NoDataError(f"`{axis.path}` never has the value {text}")


def _number(axis: Axis, value: SweptValue) -> float:
    if value.number is not None:
        return value.number
    # A value that is not a number is represented by its position in the file.
    return float([v.text for v in axis.values].index(value.text or ""))


def _text(axis: Axis, x: float) -> str:
    for index, value in enumerate(axis.values):
        if (value.number if value.number is not None else index) == x:
            return value.text
    return f"{x:g}"


def _value(outcome: Outcome, flow: str, quantity: str) -> float:
    if quantity in TOGETHER:
        value = TOGETHER[quantity][1](outcome.flows.values())
        if value is None:
            raise NoDataError(f"the outcome has no {quantity}")
        return value
    found = next((one for name, _, one in receivers.rows(outcome) if name == flow), None)
    if found is None:
        raise NoDataError(f"no flow {flow}")
    if quantity in _OF_FLOW:
        told = _OF_FLOW[quantity](found)
        if told is None:
            what = f"datagrams {quantity}" if quantity in DATAGRAMS else quantity
            raise NoDataError(f"the engine does not report {what}")
        return told
    for stage in found.limit.stages if found.limit is not None else ():
        if stage.name == quantity:
            return stage.rate_bit_per_s
    raise NoDataError(f"no quantity {quantity}")


_OF_FLOW = {**RATES, **DELAYS, **GAPS, **DATAGRAMS}
