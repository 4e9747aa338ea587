"""The figures of the report: one file each and one line here.

Adding one: write `figures/NAME.py` with a `FIGURE`, add it to `FIGURES` for the pictures, and put its box
where it belongs on the page (`page._results` or a section).
"""

from engpass.report.figures import (
    goodput_resources,
    heat_map,
    ledger_stack,
    ledger_waterfall,
    offered_received,
    over_sweep,
    sharing,
    waterfall,
)
from engpass.report.figures.base import Drawing, Figure

FIGURES: tuple[Figure, ...] = (
    *over_sweep.FIGURES,
    *heat_map.FIGURES,
    goodput_resources.FIGURE,
    offered_received.FIGURE,
    sharing.FIGURE,
    waterfall.FIGURE,
    ledger_stack.FIGURE,
    ledger_waterfall.FIGURE,
)

__all__ = ["FIGURES", "Drawing", "Figure"]
