"""Shows blocks as HTML, for the sections of a page."""

from __future__ import annotations

from typing import Literal

from engpass.show.blocks import Block, Prose, Table
from engpass.show.markup import esc, prose
from engpass.show.markup import table as html_table
from engpass.show.text import cell_text

_TALL = 15
"""Rows above which a table scrolls in its own box."""


def block_html(block: Block) -> str:
    """A block as HTML; empty for a table without rows."""
    match block:
        case Prose():
            return f"<p>{prose(block.text)}</p>"
        case Table():
            return _table(block) if block.rows else ""


def _table(table: Table) -> str:
    head = [esc(column.title) for column in table.columns]
    rows = [[esc(cell_text(cell)) for cell in row] for row in table.rows]
    numeric = [place for place, column in enumerate(table.columns) if column.right]
    notes = "".join(f"<p>{prose(note)}</p>" for note in table.notes)
    kind: Literal["tall", "plain"] = "tall" if len(rows) > _TALL else "plain"
    return html_table(esc(table.title), head, rows, numeric=numeric, kind=kind) + notes
