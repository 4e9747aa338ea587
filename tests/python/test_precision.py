"""The stopping rule: confidence intervals have their coverage, even with autocorrelated samples."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Iterator

import pytest

from engpass.measure.answers import Line
from engpass.measure.precision import LEAST_SAMPLES, Rule, Series, mean

MIDDLE = 10.0


def endless(coefficient: float, rng: random.Random) -> Iterator[float]:
    """AR(1) samples around `MIDDLE` with a standard deviation of 1; `coefficient` is their correlation."""
    step = math.sqrt(1 - coefficient**2)
    state = rng.gauss(0, 1)
    while True:
        yield MIDDLE + state
        state = coefficient * state + step * rng.gauss(0, 1)


def autoregressive(coefficient: float, count: int, rng: random.Random) -> list[float]:
    return list(itertools.islice(endless(coefficient, rng), count))


@pytest.mark.parametrize(
    ("coefficient", "count", "least", "naive"),
    [(0.0, 100, 0.92, 1.0), (0.5, 100, 0.92, 0.82), (0.8, 300, 0.90, 0.56), (0.9, 1000, 0.90, 0.44)],
)
def test_confidence_interval_has_its_stated_coverage(
    coefficient: float, count: int, least: float, naive: float
) -> None:
    rng, runs = random.Random(1), 400
    held = simply = 0
    for _ in range(runs):
        samples = autoregressive(coefficient, count, rng)
        found = mean(samples)
        assert found is not None
        held += abs(found.value - MIDDLE) <= found.half
        error = statistics.stdev(samples) / math.sqrt(count)
        simply += abs(statistics.fmean(samples) - MIDDLE) <= 1.96 * error
    assert least <= held / runs <= 0.995
    # Intervals that assume independent samples: far from 95 %.
    assert simply / runs <= naive


@pytest.mark.parametrize(("coefficient", "asked"), [(0.0, 0.02), (0.5, 0.03), (0.8, 0.05), (0.9, 0.07)])
def test_stop_rule_keeps_the_coverage(coefficient: float, asked: float) -> None:
    rng, runs = random.Random(2), 200
    held = 0
    for _ in range(runs):
        series = Series(1, 0)
        rule = Rule(asked, {("stream", "b"): series})
        for sample in endless(coefficient, rng):
            series.samples.append(sample)
            if rule.reached():
                break
        found = mean(series.samples)
        assert found is not None
        assert found.share <= asked
        held += abs(found.value - MIDDLE) <= asked * found.value
    assert held / runs >= 0.90


def test_effective_samples_match_ar1_theory() -> None:
    """For AR(1) the effective samples are (1 - a) / (1 + a) of all samples."""
    for coefficient in (0.0, 0.5, 0.8):
        samples = autoregressive(coefficient, 20_000, random.Random(3))
        found = mean(samples)
        assert found is not None
        assert found.effective == pytest.approx(20_000 * (1 - coefficient) / (1 + coefficient), rel=0.5)


def test_few_samples_give_no_mean_and_equal_ones_no_width() -> None:
    assert mean([1.0] * (LEAST_SAMPLES - 1)) is None
    found = mean([5.0] * LEAST_SAMPLES)
    assert found is not None
    assert (found.value, found.half, found.effective) == (5.0, 0.0, LEAST_SAMPLES)
    nothing = mean([0.0] * LEAST_SAMPLES)
    assert nothing is not None
    assert nothing.share == 0.0


def test_warmup_and_partial_intervals_are_no_samples() -> None:
    series = Series(100, 150)
    for begin, end in ((0, 100), (100, 200), (200, 300), (300, 310)):
        series.take(Line(from_ns=begin, to_ns=end, bytes=7))
    assert series.samples == [7e9 / 100]


def test_precision_requires_every_series() -> None:
    rng = random.Random(4)
    calm, wild = Series(1, 0), Series(1, 0)
    rule = Rule(0.01, {("a", "x"): calm, ("b", "x"): wild})
    for _ in range(200):
        calm.samples.append(MIDDLE)
        wild.samples.append(rng.uniform(0, 20))
        assert not rule.reached()
    told = rule.told("b")
    assert told.reached is False
    assert told.share is not None
    assert told.share > 0.01
    assert rule.flows == {"a": rule.told("a"), "b": told}
    assert rule.told("a").reached
