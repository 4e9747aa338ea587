"""`more-dips`: the number of low values grows from variant to variant."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from engpass.claims.checks.base import Check, Curves, Interval, Verdict, bounds, say_reach
from engpass.claims.checks.dips import count
from engpass.claims.quantity import Quantity


@dataclass(frozen=True)
class MoreDips(Check):
    """The number of goodputs below a level never falls from one variant to the next, and grows overall.

    `variant` is the last variant; `after` names the variants before it, in order and separated by blanks.
    """

    after: str
    below: Quantity
    from_: Quantity | None = None
    to: Quantity | None = None

    def judge(self, curves: Curves, accept: Interval | None) -> Verdict:  # noqa: ARG002 (every check has the same call)
        """Count the values below the level for each variant, and compare the counts."""
        low, high = bounds(self.from_, self.to)
        found = [curves(name, "goodput").between(low, high) for name in self.variants()]
        dips = [count(curve, self.below.value) for curve in found]
        said = ", ".join(str(number) for number in dips) + f" of {len(found[-1].samples)} sizes"
        return Verdict(said, dips[-1] > dips[0] and all(a <= b for a, b in pairwise(dips)))

    def criterion(self) -> str:
        """The range and the level of the dips, as text."""
        sizes = f"sizes {say_reach(self.from_, self.to)}".strip()
        return f"never fewer from variant to variant, and more in the last; {sizes} below {self.below}"

    def variants(self) -> tuple[str, ...]:
        """The variants that `after` names, then the variant of the claim."""
        return (*self.after.split(), self.variant)
