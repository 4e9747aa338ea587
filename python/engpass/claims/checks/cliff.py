"""`cliff`: the swept value at which the goodput collapses."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, needed
from engpass.claims.missing import NoDataError
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Cliff(Check):
    """The swept value between the last point without a loss and the first with one.

    Before it the goodput is at least `least` and nothing is lost; at the end it is at most `most`.
    """

    numeric: ClassVar[bool] = True

    least: Quantity
    most: Quantity

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:
        """Find the first loss, and compare the goodput before it and at the end with the arguments."""
        curve, lost = curves(self.variant, "goodput"), curves(self.variant, "lost")
        if len(curve.samples) < 2:
            raise NoDataError("too few points to see a cliff")
        edge = next(((a, b) for a, b in pairwise(lost.samples) if b.value > 0), None)
        if edge is None or edge[0].value > 0:
            return Verdict(
                "losses at the first point" if lost.samples[0].value > 0 else "no loss at any point", False
            )
        place = (edge[0].x + edge[1].x) / 2
        above = curve.between(None, edge[0].x).least().value
        end = curve.samples[-1]
        said = f"{needed(accept).say(place)}; {say(above, curve.unit)} before"
        said += f", {say(end.value, curve.unit)} at {end.text}"
        deep = above >= self.least.value and end.value <= self.most.value
        return Verdict(said, deep and place in needed(accept))

    def criterion(self) -> str:
        """The goodput before the cliff and at the end of the sweep, as text."""
        return f"{self.least} before, {self.most} at the end"
