"""What all checks share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from engpass.claims.curves import Curve
from engpass.claims.quantity import Quantity

Curves = Callable[[str, str], Curve]
"""The curve of a variant (first) and a quantity (second), of the claim's campaign, engine and flow."""


@dataclass(frozen=True)
class Interval:
    """What a number may be, and how a table says it."""

    low: float
    high: float
    unit: str
    text: str
    decimals: int = 2
    """Decimals with which what is compared with it must be shown."""

    def __contains__(self, value: float) -> bool:
        # Rounding of the last bit decides no claim.
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        return self.low - slack <= value <= self.high + slack


@dataclass(frozen=True)
class Verdict:
    """What came out, with units, and whether the claim holds."""

    obtained: str
    holds: bool


@dataclass(frozen=True)
class Check(ABC):
    """A check of one claim: its fields are the arguments that a claims file gives."""

    numeric: ClassVar[bool] = False
    """Whether it compares a number with the published one (`tolerance`) or with a range (`accept`)."""

    _: KW_ONLY
    variant: str
    """Variant that the claim is about."""

    @abstractmethod
    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Look at the curves; raises `NoDataError`."""

    def criterion(self) -> str:
        """What counts as holding, in a few words, besides the interval of a numeric check."""
        return ""


def needed(accept: Interval | None) -> Interval:
    """The interval of a numeric check."""
    assert accept is not None, "the reader gives every numeric check an interval"  # noqa: S101 (an invariant)
    return accept


def bounds(low: Quantity | None, high: Quantity | None) -> tuple[float | None, float | None]:
    """Bounds of a range of swept values as numbers."""
    return (None if low is None else low.value, None if high is None else high.value)
