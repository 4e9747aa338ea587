"""Cells as text, for the terminal and for pages."""

from __future__ import annotations

from engpass.formatting import percent, quantity
from engpass.show.blocks import Amount, Cell, Change, Lines, Marked

_TENFOLD = 10.0
"""A value that has grown by this factor has the factor as its change."""


def cell_text(cell: Cell) -> str:
    """A cell as text: an amount in the unit that suits it, nothing for `None`."""
    match cell:
        case None:
            return ""
        case Amount():
            return quantity(cell.value, cell.unit) + (f" {cell.remark}" if cell.remark else "")
        case Change():
            return _change(cell)
        case Marked():
            return cell.text
        case Lines():
            return "\n".join(filter(None, map(cell_text, cell.lines)))
        case int():
            return f"{cell:,}"
        case str():
            return cell


def _change(change: Change) -> str:
    """A change as text, with its interval: a percentage, or a factor from ten times on."""
    half = change.half_interval
    if change.share + 1 >= _TENFOLD:
        return f"{change.share + 1:,.0f}-fold" + ("" if half is None else f" ±{half:,.1f}")
    text = f"{change.share:+.1%}".replace("%", " %")
    return text + ("" if half is None else f" ±{percent(half)}")
