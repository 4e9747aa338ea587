"""`dips`: the share of low values in a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, needed, say_reach
from engpass.claims.curves import Curve
from engpass.claims.quantity import Quantity, say_range


@dataclass(frozen=True)
class Dips(Check):
    """The share of swept values at which the goodput is below a level; optionally also the extremes."""

    numeric: ClassVar[bool] = True

    below: Quantity
    from_: Quantity | None = None
    to: Quantity | None = None
    deepest: Quantity | None = None
    """The claim holds only if the lowest goodput of the curve is below this value."""
    highest: Quantity | None = None
    """The claim holds only if the highest goodput of the curve is at least this value."""

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Count the values below the level, and compare their share with the claim's interval."""
        curve = curves(self.variant, "goodput").between(*bounds(self.from_, self.to))
        low, all_ = count(curve, self.below.value), len(curve.samples)
        least, greatest = curve.least().value, curve.greatest().value
        said = f"{needed(accept).say(low / all_)}: {low} of {all_} sizes"
        said += f"; {say_range(least, greatest, curve.unit)}"
        deep = self.deepest is None or least < self.deepest.value
        high = self.highest is None or greatest >= self.highest.value
        return Verdict(said, deep and high and low / all_ in needed(accept))

    def criterion(self) -> str:
        """The range, the level of the dips, and the required extremes, as text."""
        said = f"of the sizes {say_reach(self.from_, self.to)}".strip() + f" below {self.below}"
        if self.deepest:
            said += f", minimum below {self.deepest}"
        return said + (f", maximum at least {self.highest}" if self.highest else "")


def count(curve: Curve, level: float) -> int:
    """Number of samples of a curve below a level."""
    return sum(sample.value < level for sample in curve.samples)
