"""The checks that a claims file may name: one class each, whose fields are its arguments.

Adding one: write its class in a file here, and add a line to `CHECKS`.
"""

from engpass.claims.checks.base import Check, Curves, Interval, Verdict
from engpass.claims.checks.cliff import Cliff
from engpass.claims.checks.crossing import Crossing
from engpass.claims.checks.dips import Dips
from engpass.claims.checks.falls import Falls
from engpass.claims.checks.flat import Flat
from engpass.claims.checks.mean_ratio import MeanRatio
from engpass.claims.checks.more_dips import MoreDips
from engpass.claims.checks.none import Nothing
from engpass.claims.checks.onset import Onset
from engpass.claims.checks.oscillation import Oscillation
from engpass.claims.checks.rises import Rises
from engpass.claims.checks.round_trip import RoundTrip
from engpass.claims.checks.same import Same
from engpass.claims.checks.value import Value

CHECKS: dict[str, type[Check]] = {
    "value": Value,
    "rises": Rises,
    "falls": Falls,
    "none": Nothing,
    "crossing": Crossing,
    "same": Same,
    "onset": Onset,
    "flat": Flat,
    "cliff": Cliff,
    "oscillation": Oscillation,
    "dips": Dips,
    "more-dips": MoreDips,
    "mean-ratio": MeanRatio,
    "round-trip": RoundTrip,
}
"""All checks, by the names under which claims files select them."""

__all__ = ["CHECKS", "Check", "Curves", "Interval", "Verdict"]
