"""`onset`: the swept value from which a variant falls behind another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, needed, say_reach
from engpass.claims.curves import Curve, Sample
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Onset(Check):
    """The first swept value at which the goodput of a variant is clearly below that of a reference."""

    numeric: ClassVar[bool] = True

    reference: str
    by: Quantity
    """Least share of the reference's goodput by which the variant must fall short."""
    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Find the onset, and compare its swept value with the claim's interval."""
        curve, reference = (
            curves(name, "goodput").between(*self.reach()) for name in (self.variant, self.reference)
        )
        first = onset(curve, reference, self.by.value)
        if first is None:
            return Verdict("no fall", False)
        alone = say(reference.at(first.x).value, reference.unit)
        said = f"{first.text}: {say(first.value, curve.unit)}, `{self.reference}` {alone}"
        return Verdict(said, first.x in needed(accept))

    def criterion(self) -> str:
        """The least shortfall and the range, as text."""
        return f"first point {self.by} below the reference {say_reach(self.from_, self.to)}".strip()


def onset(curve: Curve, reference: Curve, by: float) -> Sample | None:
    """The first sample below `1 - by` of the reference at the same swept value; `None` without one."""
    return next((s for s in curve.samples if s.value < (1 - by) * reference.at(s.x).value), None)
