"""Cells as text, for the terminal and for pages."""

from __future__ import annotations

from engpass.formatting import quantity
from engpass.show.blocks import Amount, Cell


def cell_text(cell: Cell) -> str:
    """A cell as text: an amount in the unit that suits it, nothing for `None`."""
    match cell:
        case None:
            return ""
        case Amount():
            return quantity(cell.value, cell.unit)
        case int():
            return f"{cell:,}"
        case str():
            return cell
