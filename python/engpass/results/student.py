"""Student's t distribution, and the test whether two means differ by more than chance. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

LEVEL = 0.001
"""Probability that equal means count as different. Our choice: few false alarms in hundreds of tests."""


class Mean(msgspec.Struct, frozen=True):
    """The mean over the repeats of a signal."""

    value: float
    variance: float
    """Sample variance of one repeat; 0 for a single repeat, which says nothing about it."""
    repeats: int

    @property
    def error(self) -> float | None:
        """The standard error of the mean; `None` for a single repeat."""
        return math.sqrt(self.variance / self.repeats) if self.repeats > 1 else None


def mean(values: Sequence[tuple[float, float]]) -> Mean:
    """The mean of repeats, each a value with its divisor.

    The divisors of a ratio such as the loss may differ. Its mean is the ratio of the sums, and its variance
    that of the linearized ratio (Cochran, *Sampling Techniques*, section 2.11).
    """
    count = len(values)
    divisor = math.fsum(whole for _, whole in values) / count
    middle = math.fsum(part for part, _ in values) / count / divisor
    apart = ((part - middle * whole) / divisor for part, whole in values)
    return Mean(middle, math.fsum(one * one for one in apart) / max(1, count - 1), count)


def half_width(one: Mean, other: Mean, level: float = LEVEL) -> float:
    """Half the width of the confidence interval for the difference of two means.

    Means that are farther apart differ at this level (Welch, *Biometrika* 34, 1947, for unequal variances).
    Give both the same number of repeats: few beside many make Welch's degrees of freedom too large, and 3
    beside 40 have fifteen times the false alarms. A single repeat is taken to have the variance of the
    other mean's repeats. The width is 0 if no repeats scatter, or if both are single.
    """
    if one.repeats == 1:
        one, other = other, one
    if other.repeats == 1:
        freedom = one.repeats - 1.0
        squares = one.variance * (1.0 + 1.0 / one.repeats)
    else:
        parts = [mean.variance / mean.repeats for mean in (one, other)]
        squares = math.fsum(parts)
        freedom = min(one.repeats, other.repeats) - 1.0
        if squares:
            freedom /= math.fsum((part / squares) ** 2 for part in parts)
    return quantile(1.0 - level / 2.0, freedom) * math.sqrt(squares) if squares else 0.0


def quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t distribution for probabilities above 0.5, from 1 degree of freedom on."""
    tails = 2.0 * (1.0 - probability)
    # The probability of both tails beyond t is the incomplete beta function of freedom / (freedom + t²).
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2.0
        if _incomplete_beta(freedom / 2.0, 0.5, middle) < tails:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom * (1.0 - high) / high)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function (Abramowitz and Stegun 26.5.1)."""
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) / (a * _fraction(a, b, x))


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (26.5.8), by the method of Lentz."""
    tiny = 1e-300
    found, c, d = 1.0, 1.0, 0.0
    for step in range(1, 1000):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / ((1.0 + term * d) or tiny)
        c = (1.0 + term / c) or tiny
        found *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return found
