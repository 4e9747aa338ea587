"""The figures of the report, in its order: one file each and one line here."""

from engpass.report.figures import goodput, loss, offered_received, waterfall
from engpass.report.figures.base import Drawing, Figure

FIGURES: tuple[Figure, ...] = (
    goodput.FIGURE,
    loss.FIGURE,
    offered_received.FIGURE,
    waterfall.FIGURE,
)

__all__ = ["FIGURES", "Drawing", "Figure"]
