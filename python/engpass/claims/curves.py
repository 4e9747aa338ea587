"""Curves: a quantity of a flow, of all flows, of a link or of an engine, as a function of the swept value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from engpass.campaign import Axis
from engpass.claims.flows import TOGETHER
from engpass.claims.links import account_bytes, first_direction
from engpass.claims.missing import NoDataError
from engpass.results import receivers, samples
from engpass.results.samples import signal_of
from engpass.types.outcome import DirectionOutcome, EngineOutcome, FlowOutcome, Outcome, SweptValue
from engpass.types.signals import Signal


class Sample(msgspec.Struct, frozen=True):
    """A point of a curve: the swept value as a number in base units and as text, and the quantity there."""

    x: float
    text: str
    value: float


class Curve(msgspec.Struct, frozen=True):
    """A quantity as a function of the swept value: samples in ascending order of the swept values."""

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
        """The curve with all values multiplied by a factor, in another unit."""
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


class Campaign:
    """The outcomes of one campaign, from which curves are taken."""

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
        node: str | None = None,
    ) -> Curve:
        """A quantity as a function of the swept value; without a sweep the curve has one sample.

        Quantities are signals of the flow by their title, such as `goodput` or `delay p99`, the names of
        stages of the limit engine, and those of `TOGETHER`, which ignore the flow. With a `link` they are
        signals of its first direction, and accounts of its ledger in bytes (`a + b` is a sum). With a `node`
        they are signals of its engine, or with `ROUTER.CARD` of that card's. If several paths are swept,
        `where` fixes all but one. Raises `NoDataError`.
        """
        fixed = where or {}
        free = [index for index, axis in enumerate(self._axes) if axis.path not in fixed]
        if len(free) > 1:
            raise NoDataError("several paths are swept, but the claim does not select a point")
        at = [self._fixed(axis, fixed[axis.path]) if axis.path in fixed else None for axis in self._axes]
        samples, unit = [], ""
        for (of_engine, of_variant, place), outcomes in self._points.items():
            there = all(want is None or want == have for want, have in zip(at, place, strict=True))
            if (of_engine, of_variant) == (engine, variant) and there:
                x, text = (place[free[0]], _text(self._axes[free[0]], place[free[0]])) if free else (0.0, "")
                if node:
                    value, unit = _at_node(outcomes, node, quantity)
                elif link:
                    value, unit = _on_link(outcomes, link, quantity)
                else:
                    value, unit = _of_flow(outcomes, flow, quantity)
                samples.append(Sample(x, text, value))
        if not samples:
            raise NoDataError(f"no point of {engine}, variant {variant}")
        samples.sort(key=lambda sample: sample.x)
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
    # A word or boolean stands for its position among the swept values.
    return float([v.text for v in axis.values].index(value.text or ""))


def _text(axis: Axis, x: float) -> str:
    for index, value in enumerate(axis.values):
        if (value.number if value.number is not None else index) == x:
            return value.text
    return f"{x:g}"


def _of_flow(outcomes: Sequence[Outcome], flow: str, quantity: str) -> tuple[float, str]:
    """A quantity of a flow over the repeats: its value and its base unit."""
    if quantity in TOGETHER:
        unit, together = TOGETHER[quantity]
        values = [known(together(one.flows.values()), f"the outcome has no {quantity}") for one in outcomes]
        return math.fsum(values) / (1 if quantity == "timeouts" else len(values)), unit
    flows = [_find(one, flow) for one in outcomes]
    if (signal := signal_of(quantity)) is not None:
        return _folded(flows, signal), signal.unit
    stages = [
        next((stage.rate_bit_per_s for stage in one.limit.stages if stage.name == quantity), None)
        if one.limit is not None
        else None
        for one in flows
    ]
    return math.fsum(known(rate, f"no quantity {quantity}") for rate in stages) / len(stages), "bit/s"


def _find(outcome: Outcome, flow: str) -> FlowOutcome:
    found = next((one for name, _, one in receivers.rows(outcome) if name == flow), None)
    if found is None:
        raise NoDataError(f"no flow {flow}")
    return found


def _on_link(outcomes: Sequence[Outcome], link: str, quantity: str) -> tuple[float, str]:
    """A quantity of the first direction of a link over the repeats: its value and its base unit."""
    sides = [first_direction(one, link) for one in outcomes]
    if (signal := signal_of(quantity, "line")) is not None:
        return _folded(sides, signal), signal.unit
    return math.fsum(account_bytes(side, link, quantity) for side in sides) / len(sides), "B"


def _at_node(outcomes: Sequence[Outcome], node: str, quantity: str) -> tuple[float, str]:
    """A quantity of an engine of a node over the repeats: its value and its base unit."""
    if (signal := signal_of(quantity, "engine")) is None:
        raise NoDataError(f"`{quantity}` is no signal of engines")
    return _folded([_engine(one, node) for one in outcomes], signal), signal.unit


def _engine(outcome: Outcome, place: str) -> EngineOutcome:
    """The engine of `HOST` or `ROUTER`, or that of a line card, `ROUTER.CARD`."""
    node, _, card = place.partition(".")
    engines = outcome.nodes[node].engines if node in outcome.nodes else {}
    names = (card,) if card else ("forwarding", "cpu")
    found = next((engines[name] for name in names if name in engines), None)
    if found is None:
        raise NoDataError(f"the outcome has no engine `{place}` that takes time")
    return found


def _folded(subjects: Sequence[FlowOutcome | DirectionOutcome | EngineOutcome], signal: Signal) -> float:
    """A signal's value over all repeats, combined as the signal defines; raises `NoDataError`."""
    for subject in subjects:
        known(samples.value(subject, signal), f"the engine does not report `{signal.title.lower()}`")
    return known(samples.folded(subjects, signal), "there is no outcome")


def known(found: float | None, otherwise: str) -> float:
    """The value if it is known; else raises `NoDataError` with the reason."""
    if found is None:
        raise NoDataError(otherwise)
    return found
