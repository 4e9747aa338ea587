"""Decides when a run is long enough, by the confidence interval of a mean of correlated samples. Pure.

Neighbouring samples are correlated. A confidence interval that ignores this is too narrow: for AR(1) samples
with a coefficient of 0.9 it covers the mean a third of the time instead of 95 %. The samples are therefore
joined into batches, whose means are far less correlated (non-overlapping batch means with 10 to 30 batches:
Schmeiser, Operations Research 30, 1982). The correlation left between neighbours is taken for first-order
autoregression, which widens the interval and reduces the degrees of freedom (equivalent sample size: Zwiers
and von Storch, Journal of Climate 8, 1995).

A rule that is tested very often stops too early by chance. Tests are therefore few, each after half as many
samples again as the one before (Law and Carson, Operations Research 27, 1979, let the number grow in steps
in the same way).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from engpass.measure.answers import Line
from engpass.results.student import quantile
from engpass.types.agent import StopRule
from engpass.types.outcome import Precision

CONFIDENCE = 0.95
LEAST_SAMPLES = 40
"""Least number of samples; from fewer the correlation cannot be estimated."""
LEAST_EFFECTIVE = 20.0
"""Least number of independent samples that must be behind an interval, however narrow it is."""

_BATCHES = 20
_GROWTH = 1.5
_MOST_CORRELATION = 0.9


class Mean(msgspec.Struct, frozen=True):
    """A mean, half the width of its confidence interval, and the equivalent number of independent samples."""

    value: float
    half: float
    samples: int
    effective: float

    @property
    def share(self) -> float:
        """Half the interval as a share of the mean: 0 without any spread, infinite if only the mean is 0."""
        if self.half == 0.0:
            return 0.0
        return self.half / abs(self.value) if self.value else math.inf


def mean(samples: Sequence[float], confidence: float = CONFIDENCE) -> Mean | None:
    """The mean of a time series, with its confidence interval; `None` for fewer than `LEAST_SAMPLES`."""
    count = len(samples)
    if count < LEAST_SAMPLES:
        return None
    length = count // _BATCHES
    # Samples at the beginning, where the warm-up may still show, are left out if they fill no batch.
    used = samples[count - length * _BATCHES :]
    batches = [math.fsum(used[i : i + length]) / length for i in range(0, len(used), length)]
    middle = math.fsum(batches) / _BATCHES
    apart = [batch - middle for batch in batches]
    squares = math.fsum(one * one for one in apart)
    if squares <= (abs(middle) * 1e-12) ** 2 * _BATCHES:
        return Mean(middle, 0.0, count, float(count))
    correlation = math.fsum(a * b for a, b in itertools.pairwise(apart)) / squares
    # The mean is taken from the same samples, which lowers the estimated correlation by 1 / batches.
    correlation = min(max(0.0, correlation + 1.0 / _BATCHES), _MOST_CORRELATION)
    wider = (1.0 + correlation) / (1.0 - correlation)
    error = math.sqrt(squares / (_BATCHES - 1) / _BATCHES * wider)
    freedom = max(3.0, (_BATCHES - 1) / wider)
    spread = math.fsum((one - middle) ** 2 for one in used) / (len(used) - 1)
    effective = min(float(count), max(1.0, spread / error**2))
    return Mean(middle, quantile(0.5 + confidence / 2, freedom) * error, count, effective)


class Series(msgspec.Struct):
    """Samples of a flow at one end: bytes or messages per second, one for each interval."""

    interval_ns: int
    warmup_ns: int
    of: str = "bytes"
    """`bytes` or `messages`."""
    bits: int = 8
    """Bits of payload for each byte or message."""
    samples: list[float] = msgspec.field(default_factory=list)

    def take(self, record: Line) -> None:
        """Add the record of an interval, unless it began in the warm-up or is less than half as long."""
        begin, end = record.from_ns, record.to_ns
        if begin >= self.warmup_ns and (end - begin) * 2 >= self.interval_ns:
            amount = record.bytes if self.of == "bytes" else record.messages
            self.samples.append(amount * 1e9 / (end - begin))


class Rule:
    """The stop rule: a run may end when all series are precise enough.

    Tests are rare, because frequent tests would end a run by chance.
    """

    def __init__(self, asked: float, series: Mapping[tuple[str, str], Series]) -> None:
        self.asked = asked
        self.series = dict(series)
        self._next = LEAST_SAMPLES

    @classmethod
    def of(cls, stop: StopRule | None) -> Rule | None:
        """The stop rule that the core asks for; `None` if there is none."""
        if stop is None:
            return None
        each = {
            (one.flow, one.host): Series(one.interval_ns, one.warmup_ns, one.of, one.bits)
            for one in stop.series
        }
        return cls(stop.asked, each)

    @property
    def flows(self) -> dict[str, Precision]:
        """The precision of the mean of each flow."""
        return {flow: self.told(flow) for flow, _ in self.series}

    def take(self, flow: str, host: str, record: Line) -> None:
        """Add the record of an interval, if the rule watches that flow at that host."""
        series = self.series.get((flow, host))
        if series is not None:
            series.take(record)

    def reached(self) -> bool:
        """True if the run may stop now; the test is made only if enough samples came since the last one."""
        count = min((len(series.samples) for series in self.series.values()), default=0)
        if count < self._next:
            return False
        self._next = math.ceil(count * _GROWTH)
        return all(self._is_narrow(series) for series in self.series.values())

    def _is_narrow(self, series: Series) -> bool:
        found = mean(series.samples)
        return found is not None and self.fits(found)

    def fits(self, found: Mean) -> bool:
        """True if an interval is narrow enough and enough independent samples are behind it."""
        return found.share <= self.asked and found.effective >= LEAST_EFFECTIVE

    def told(self, flow: str) -> Precision:
        """The precision of a flow's mean, at the host where it is worst."""
        own = [self._told(series) for (name, _), series in self.series.items() if name == flow]
        return min(own, key=lambda one: (one.reached, -(one.share or 0.0)))

    def _told(self, series: Series) -> Precision:
        found = mean(series.samples)
        told = Precision(
            asked=self.asked,
            reached=False,
            confidence=CONFIDENCE,
            intervals=len(series.samples),
            interval_s=series.interval_ns / 1e9,
        )
        if found is None:
            return told
        return replace(
            told,
            reached=self.fits(found),
            mean_bit_per_s=found.value * series.bits,
            half_width_bit_per_s=found.half * series.bits,
            # JSON has no infinity, so with a mean of 0 the share is left out.
            share=found.share if math.isfinite(found.share) else None,
            effective_samples=round(found.effective, 1),
        )
