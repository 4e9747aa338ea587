"""`more-dips`: from variant to variant there are more low values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, say_reach
from engpass.claims.checks.dips import count
from engpass.claims.quantity import Quantity


@dataclass(frozen=True)
class MoreDips(Check):
    """The number of swept values below a level never falls from one variant to the next, and grows in all.

    The variant is the last one; `after` names those before it, in order, with blanks between them.
    """

    after: str
    below: Quantity
    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Count the dips of each variant."""
        low, high = bounds(self.from_, self.to)
        found = [curves(name, "goodput").between(low, high) for name in self.variants()]
        dips = [count(curve, self.below.value) for curve in found]
        said = ", ".join(str(number) for number in dips) + f" of {len(found[-1].samples)} sizes"
        return Verdict(said, dips[-1] > dips[0] and all(a <= b for a, b in pairwise(dips)))

    def criterion(self) -> str:
        """Range and level of the dips."""
        sizes = f"sizes {say_reach(self.from_, self.to)}".strip()
        return f"never fewer, more in the end; {sizes} below {self.below}"

    def variants(self) -> tuple[str, ...]:
        """The variants of `after`, and the claim's own last."""
        return (*self.after.split(), self.variant)
