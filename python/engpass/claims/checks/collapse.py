"""`collapse`: a throughput that goes to almost nothing and stays there."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from engpass.claims.checks.base import Check, Curves, Interval, Verdict
from engpass.claims.checks.onset import onset
from engpass.claims.quantity import Quantity, say


@dataclass(frozen=True)
class Collapse(Check):
    """From `from` on the goodput is at most `most`.

    Between the onset, where it has lost half of the reference's, and `from` it may be more while it falls.
    """

    reference: str
    from_: Quantity
    most: Quantity

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Look for the greatest goodput in the collapse, and for a recovery before it."""
        curve = curves(self.variant, "goodput")
        top = curve.between(self.from_.value, None).greatest()
        said = f"at most {say(top.value, curve.unit)}, at {top.text}"
        first = onset(curve, curves(self.reference, "goodput"), 0.5)
        if first is None:
            return Verdict(f"{said}; never half of `{self.reference}`", False)
        if first.x < self.from_.value:
            for before, sample in pairwise(curve.between(first.x, self.from_.value).samples):
                if sample.value > max(before.value, self.most.value):
                    return Verdict(f"{said}; rises again at {sample.text}", False)
        return Verdict(said, top.value <= self.most.value)

    def criterion(self) -> str:
        """Where and how little."""
        return f"at most {self.most} from {self.from_} on"
