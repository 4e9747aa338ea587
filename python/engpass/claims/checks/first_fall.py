"""`first-fall`: where a curve falls for the first time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from engpass.claims.checks.base import Check, Curves, Interval, Verdict
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class FirstFall(Check):
    """The first swept value with less goodput than the one before is this one."""

    at: Quantity
    by: Quantity
    """Least fall that counts, as a share of the value before."""

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Look for the first fall, however small: an earlier one breaks the claim, too."""
        curve = curves(self.variant, "goodput")
        for before, sample in pairwise(curve.samples):
            if sample.value < before.value:
                deep = sample.value <= before.value * (1 - self.by.value)
                step = f"{say(before.value, curve.unit)} to {say(sample.value, curve.unit)}"
                there = math.isclose(sample.x, self.at.value, rel_tol=1e-9)
                return Verdict(f"{sample.text}: {step}", deep and there)
        return Verdict("no fall", False)

    def criterion(self) -> str:
        """Where, and how deep."""
        return f"this size, by {self.by} or more"
