"""Cells as text, for the terminal and for pages."""

from __future__ import annotations

from engpass.formatting import quantity
from engpass.show.blocks import Amount, Cell, Lines, Marked


def cell_text(cell: Cell) -> str:
    """A cell as text: an amount in the unit that suits it, nothing for `None`."""
    match cell:
        case None:
            return ""
        case Amount():
            return quantity(cell.value, cell.unit) + (f" {cell.remark}" if cell.remark else "")
        case Marked():
            return cell.text
        case Lines():
            return "\n".join(filter(None, map(cell_text, cell.lines)))
        case int():
            return f"{cell:,}"
        case str():
            return cell
