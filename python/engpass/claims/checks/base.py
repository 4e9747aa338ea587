"""The base of all checks: verdicts, intervals, ranges of the sweep."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from engpass.claims.curves import Curve
from engpass.claims.quantity import Quantity
from engpass.say import written

Curves = Callable[[str, str], Curve]
"""Returns the curve of a variant (first) and a quantity (second) of the claim's campaign, engine and flow."""


@dataclass(frozen=True)
class Interval:
    """The numbers that a claim accepts, and their text in tables."""

    low: float
    high: float
    unit: str
    text: str
    decimals: int = 2
    """Decimals with which tables show a number that is compared with the bounds."""
    name: str = ""
    """The unit in which the claim is written, for such numbers too; empty for a number without one."""

    def say(self, value: float) -> str:
        """A value in the base unit as the claim would write it."""
        return written(self.name, self.decimals, value)

    def say_range(self, low: float, high: float) -> str:
        """Two values as the claim would write them; one of them if they are the same."""
        return written(self.name, self.decimals, *((low,) if low == high else (low, high)))

    def __contains__(self, value: float) -> bool:
        # Rounding of the last bit decides no claim.
        slack = 1e-9 * max(abs(bound) for bound in (self.low, self.high) if math.isfinite(bound))
        return self.low - slack <= value <= self.high + slack


@dataclass(frozen=True)
class Verdict:
    """The value obtained, with units, and whether the claim holds."""

    obtained: str
    holds: bool
    judged: bool = True
    """`False` where the data for a verdict are missing; the claim then does not hold."""


@dataclass(frozen=True)
class Check(ABC):
    """A check of one claim: its fields are the arguments that a claims file gives."""

    numeric: ClassVar[bool] = False
    """Whether it compares a number with the stated one (`tolerance`) or with bounds (`least`, `most`)."""

    _: KW_ONLY
    variant: str
    """Variant that the claim is about."""

    @abstractmethod
    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Look at the curves; raises `NoDataError`."""

    def criterion(self) -> str:
        """The condition for holding in a few words; a numeric check has its interval besides."""
        return ""

    def variants(self) -> tuple[str, ...]:
        """The variants that the check reads."""
        reference: str | None = getattr(self, "reference", None)
        return (self.variant,) if reference is None else (self.variant, reference)

    def reach(self) -> tuple[float | None, float | None]:
        """The range of swept values that the check reads, in base units; `None` where it has no bound."""
        return bounds(getattr(self, "from_", None), getattr(self, "to", None))


def needed(accept: Interval | None) -> Interval:
    """The interval of a numeric check."""
    assert accept is not None, "the reader gives every numeric check an interval"  # noqa: S101 (an invariant)
    return accept


def bounds(low: Quantity | None, high: Quantity | None) -> tuple[float | None, float | None]:
    """Bounds of a range of swept values as numbers."""
    return (None if low is None else low.value, None if high is None else high.value)


def say_reach(low: Quantity | None, high: Quantity | None) -> str:
    """A range of swept values in words: `from 9 kB to 64 kB`, or nothing where it has no bounds."""
    return " ".join(f"{word} {bound}" for word, bound in (("from", low), ("to", high)) if bound is not None)
