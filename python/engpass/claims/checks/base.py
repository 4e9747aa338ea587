"""The base of all checks: intervals that a claim accepts, verdicts, and the class `Check`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from engpass.claims.curves import Curve
from engpass.claims.quantity import Quantity
from engpass.formatting import written

Curves = Callable[[str, str], Curve]
"""Returns the curve of a variant (first) and a quantity (second) of the claim's campaign, engine and flow."""


@dataclass(frozen=True)
class Interval:
    """The interval of values that a claim accepts, and how tables show these values."""

    low: float
    high: float
    unit: str
    text: str
    decimals: int = 2
    """Decimals of values in tables, enough to compare them with the bounds."""
    name: str = ""
    """The unit in which the claim is written and tables show values; empty if it has none."""

    def say(self, value: float) -> str:
        """Format a value, given in its base unit, with the unit and decimals of the claim."""
        return written(self.name, self.decimals, value)

    def say_range(self, low: float, high: float) -> str:
        """Format two values as `say` does, as `LOW to HIGH`; equal values as one."""
        return written(self.name, self.decimals, *((low,) if low == high else (low, high)))

    def __contains__(self, value: float) -> bool:
        # Rounding errors in the last digits must not decide whether a value is inside.
        slack = 1e-9 * max(abs(bound) for bound in (self.low, self.high) if math.isfinite(bound))
        return self.low - slack <= value <= self.high + slack


@dataclass(frozen=True)
class Verdict:
    """The value obtained, as text with its unit, and whether the claim holds."""

    obtained: str
    holds: bool
    judged: bool = True
    """False if the data for a verdict are missing; then the claim does not hold."""


@dataclass(frozen=True)
class Check(ABC):
    """One kind of check; its fields are the arguments that a claims file gives."""

    numeric: ClassVar[bool] = False
    """True if the check compares a number with the stated value (`tolerance`) or bounds (`least`, `most`)."""

    _: KW_ONLY
    variant: str
    """The variant that the claim is about."""

    @abstractmethod
    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Evaluate the claim on the outcomes' curves; raises `NoDataError` if data are missing."""

    def criterion(self) -> str:
        """The condition of the check in a few words, without the interval of a numeric check."""
        return ""

    def variants(self) -> tuple[str, ...]:
        """The variants whose points the check reads."""
        reference: str | None = getattr(self, "reference", None)
        return (self.variant,) if reference is None else (self.variant, reference)

    def reach(self) -> tuple[float | None, float | None]:
        """The least and the greatest swept value that the check reads, in base units; `None` is no bound."""
        return bounds(getattr(self, "from_", None), getattr(self, "to", None))


def needed(accept: Interval | None) -> Interval:
    """The interval of a numeric check, which the reader of claims files has required."""
    assert accept is not None, "the reader gives every numeric check an interval"  # noqa: S101 (an invariant)
    return accept


def bounds(low: Quantity | None, high: Quantity | None) -> tuple[float | None, float | None]:
    """The bounds of a range of swept values as numbers in base units; `None` is no bound."""
    return (None if low is None else low.value, None if high is None else high.value)


def say_reach(low: Quantity | None, high: Quantity | None) -> str:
    """A range of swept values as text: `from 9 kB to 64 kB`; empty without bounds."""
    return " ".join(f"{word} {bound}" for word, bound in (("from", low), ("to", high)) if bound is not None)
