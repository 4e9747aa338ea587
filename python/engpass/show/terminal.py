"""Shows a document on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table as Grid
from rich.text import Text

from engpass.show.blocks import Block, Document, Prose, Table
from engpass.show.text import cell_text

if TYPE_CHECKING:
    from rich.console import Console


def print_document(document: Document, out: Console) -> None:
    """Print the title, the answer and all blocks."""
    out.print(Text(document.title, style="bold"))
    out.print(document.sentence, markup=False, soft_wrap=True)
    for block in document.blocks:
        print_block(block, out)


def print_block(block: Block, out: Console) -> None:
    """Print one block; a table without rows is left out."""
    match block:
        case Prose():
            out.print(block.text, markup=False, soft_wrap=True)
        case Table() if block.rows:
            out.print(_grid(block))
            for note in block.notes:
                out.print(note, markup=False, soft_wrap=True)


def _grid(table: Table) -> Grid:
    grid = Grid(title=Text(table.title), title_justify="left", title_style="bold")
    for column in table.columns:
        grid.add_column(Text(column.title), justify="right" if column.right else "left", overflow="fold")
    for row in table.rows:
        # `Text` keeps names such as `[red]` from being read as markup.
        grid.add_row(*(Text(cell_text(cell)) for cell in row))
    return grid
