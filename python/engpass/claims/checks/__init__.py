"""The checks that a claims file may name: one class each, whose fields are its arguments.

Adding one: write its class in a file here, and add a line to `CHECKS`.
"""

from engpass.claims.checks.base import Check, Curves, Interval, Verdict
from engpass.claims.checks.cliff import Cliff
from engpass.claims.checks.collapse import Collapse
from engpass.claims.checks.crossing import Crossing
from engpass.claims.checks.dips import Dips
from engpass.claims.checks.fairness import Fairness
from engpass.claims.checks.first_fall import FirstFall
from engpass.claims.checks.lossless import Lossless
from engpass.claims.checks.maximum import Maximum
from engpass.claims.checks.mean_ratio import MeanRatio
from engpass.claims.checks.more_dips import MoreDips
from engpass.claims.checks.no_timeout import NoTimeout
from engpass.claims.checks.onset import Onset
from engpass.claims.checks.oscillation import Oscillation
from engpass.claims.checks.plateau import Flat, Plateau
from engpass.claims.checks.rises import Rises
from engpass.claims.checks.round_trip import RoundTrip
from engpass.claims.checks.same import Same
from engpass.claims.checks.total import Total
from engpass.claims.checks.value import Value
from engpass.claims.checks.within import Within

CHECKS: dict[str, type[Check]] = {
    "value": Value,
    "maximum": Maximum,
    "rises": Rises,
    "first-fall": FirstFall,
    "lossless": Lossless,
    "crossing": Crossing,
    "same": Same,
    "onset": Onset,
    "collapse": Collapse,
    "plateau": Plateau,
    "flat": Flat,
    "cliff": Cliff,
    "within": Within,
    "oscillation": Oscillation,
    "dips": Dips,
    "more-dips": MoreDips,
    "mean-ratio": MeanRatio,
    "total": Total,
    "fairness": Fairness,
    "round-trip": RoundTrip,
    "no-timeout": NoTimeout,
}
"""All checks by the names that claims files use."""

__all__ = ["CHECKS", "Check", "Curves", "Interval", "Verdict"]
