"""`onset`: where a variant begins to fall behind another one."""

from __future__ import annotations

from dataclasses import dataclass

from engpass.claims.checks.base import Check, Curves, Interval, Verdict
from engpass.claims.checks.crossing import crossing
from engpass.claims.curves import Curve, Sample
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Onset(Check):
    """A variant begins to fall behind a reference where the reference passes a level.

    The first swept value at which it has clearly less is at most one step of the sweep from the crossing.
    """

    reference: str
    level: Quantity
    by: Quantity
    """Share of the reference's goodput that must be missing."""

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Compare the place of the onset with that of the crossing."""
        reference = curves(self.reference, "goodput")
        place = crossing(reference, self.level.value)
        first = onset(curves(self.variant, "goodput"), reference, self.by.value)
        if place is None:
            return Verdict(f"`{self.reference}` never passes {self.level}", False)
        said = f"crossing at {say(place, reference.x_unit)}"
        if first is None:
            return Verdict(f"no fall; {said}", False)
        step = min(b.x - a.x for a, b in zip(reference.samples, reference.samples[1:], strict=False))
        return Verdict(f"{first.text}; {said}", abs(first.x - place) <= step * (1 + 1e-9))

    def criterion(self) -> str:
        """What an onset is, and how near."""
        return f"{self.by} less, within one step of the crossing"


def onset(curve: Curve, reference: Curve, by: float) -> Sample | None:
    """The first sample with less than `1 - by` of the reference; `None` if there is none."""
    return next((s for s in curve.samples if s.value < (1 - by) * reference.at(s.x).value), None)
