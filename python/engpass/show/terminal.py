"""Shows a document on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rich import box
from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

from engpass.formatting import listed
from engpass.show.blocks import (
    Block,
    Cell,
    Document,
    Facts,
    Groups,
    Items,
    Lines,
    Marked,
    OverTime,
    Prose,
    Table,
    Tone,
)
from engpass.show.sparkline import sparklines
from engpass.show.text import cell_text

if TYPE_CHECKING:
    from rich.console import Console

_STYLES: dict[Tone, str] = {"good": "green", "bad": "bold red", "mark": "yellow", "muted": "dim"}

_WIDTH = 100
"""Width of tables that omit columns in a file or a pipe, in characters; a terminal has its own width."""

_SENTENCE = 32
"""Room for the first column of a table of sentences, with its borders, in characters."""


def print_document(document: Document, out: Console) -> None:
    """Print the title, the answer and all blocks."""
    out.print(Text(document.title, style="bold"))
    out.print(document.sentence, markup=False, soft_wrap=True)
    print_blocks(document.blocks, out)


def print_blocks(blocks: Iterable[Block], out: Console) -> None:
    """Print blocks; a table without rows is left out."""
    for block in blocks:
        match block:
            case Prose():
                _prose(block, out)
            case Facts():
                _facts(block, out)
            case Groups():
                _groups(block, out)
            case Table() if block.rows:
                _table(block, out)
            case Items():
                _items(block, out)
            case OverTime():
                _over_time(block, out)


def _prose(block: Prose, out: Console) -> None:
    lead = () if block.lead is None else ((f"{block.lead.text}: ", _STYLES[block.lead.tone]),)
    # `Text` keeps names such as `[red]` from being read as markup.
    out.print(Text.assemble(*lead, block.text, style="bold" if block.strong else ""), soft_wrap=True)


def _items(block: Items, out: Console) -> None:
    lines = [f"{name}: {text}" for name, text in block.items]
    for line in filter(None, (*lines, block.more)):
        out.print(Text(line), soft_wrap=True)


def _over_time(block: OverTime, out: Console) -> None:
    out.print(Text(f"{block.title}, from 0 to {block.end_s:g} s, {block.subtitle}", style="bold"))
    out.print(sparklines(block, out.width))
    for note in block.notes:
        out.print(note, markup=False, soft_wrap=True)


def _facts(block: Facts, out: Console) -> None:
    shown = Grid.grid(padding=(0, 2))
    for fact in block.facts:
        if value := cell_text(fact.value):
            shown.add_row(
                Text(fact.name, style="bold"), Text(value), *([Text(fact.note)] if fact.note else [])
            )
    if block.title:
        out.print(Text(block.title, style="bold"))
    out.print(shown)


def _groups(block: Groups, out: Console) -> None:
    cells = [[[cell_text(cell) for cell in row] for row in group.rows] for group in block.groups]
    rows = [list(block.columns), *(row for group in cells for row in group)]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]

    def tell(row: Sequence[str]) -> None:
        name, *figures = (text.rjust(width) for text, width in zip(row, widths, strict=True))
        line("      " + "  ".join([row[0].ljust(len(name)), *figures]))

    def line(text: str, style: str = "") -> None:
        out.print(Text(text, style=style), soft_wrap=True)

    out.print()
    line(block.title, "bold")
    tell(block.columns)
    for group, found in zip(block.groups, cells, strict=True):
        line(f"  {group.heading}")
        for code in group.code:
            line(f"  {code}")
        for row in found:
            tell(row)
        if group.note:
            line(f"      {group.note}")


def _table(table: Table, out: Console) -> None:
    width = out.width if out.is_terminal else _WIDTH
    if any(column.gives_way for column in table.columns):
        table = _narrowed(table, width)
    for part in _split(table, out.width) if table.splits else [table]:
        shown = grid(part)
        for column in shown.columns[1:] if table.texts else ():
            column.max_width = max(1, out.width - _SENTENCE) // (len(shown.columns) - 1)
        out.print(shown)
    for note in table.all_notes:
        out.print(note, markup=False, soft_wrap=True)


def _narrowed(table: Table, width: int) -> Table:
    """The table without the columns that do not fit into the width; a note names these."""
    # Each column adds a border and a blank on both sides.
    widths = [3 + width for width in _widths(table)]
    order = sorted(
        (column.gives_way, place) for place, column in enumerate(table.columns) if column.gives_way
    )
    gone: list[int] = []
    for _, place in order:
        if sum(widths) < width:
            break
        widths[place] = 0
        gone.append(place)
    if not gone:
        return table
    omitted = f"no room for {listed([table.columns[place].title for place in gone])}: {table.left_out}"
    kept = _columns(table, [place for place in range(len(widths)) if place not in gone])
    return replace(kept, notes=[omitted, *table.notes])


def _split(table: Table, width: int) -> list[Table]:
    """The table in parts that fit into the width, each with the first column."""
    first, *others = (3 + width for width in _widths(table))
    parts: list[list[int]] = [[0]]
    room = width - 1 - first
    for place, wide in enumerate(others, 1):
        if wide > room and len(parts[-1]) > 1:
            parts.append([0])
            room = width - 1 - first
        parts[-1].append(place)
        room -= wide
    return [_without_empty_rows(_columns(table, places)) for places in parts]


def _without_empty_rows(table: Table) -> Table:
    """The table without the rows that have nothing beside their first cell."""
    kept = [place for place, row in enumerate(table.rows) if any(map(cell_text, row[1:]))]
    rules = {sum(place < rule for place in kept) for rule in table.rules}
    return replace(table, rows=[table.rows[place] for place in kept], rules=sorted(rules))


def _widths(table: Table) -> list[int]:
    heads = [cell_len(column.title) for column in table.columns]
    return [
        max([head, *(cell_len(cell_text(row[place])) for row in table.rows)])
        for place, head in enumerate(heads)
    ]


def _columns(table: Table, places: Sequence[int]) -> Table:
    return replace(
        table,
        columns=[table.columns[place] for place in places],
        rows=[[row[place] for place in places] for row in table.rows],
    )


def grid(table: Table) -> Grid:
    """A table as Rich draws it, without its notes."""
    shown = Grid(title=Text(table.title) if table.title else None, title_justify="left", title_style="bold")
    if table.texts:
        shown = Grid(title=shown.title, title_justify="left", title_style="bold", box=box.HORIZONTALS)
        shown.show_lines, shown.pad_edge = True, False
    for column in table.columns:
        shown.add_column(Text(column.title), justify="right" if column.right else "left", overflow="fold")
    for place, row in enumerate(table.rows):
        if place in table.rules:
            shown.add_section()
        bold = table.total and place == len(table.rows) - 1
        shown.add_row(*map(_cell, row), style="bold" if bold else None)
    return shown


def _cell(cell: Cell) -> Text:
    match cell:
        case Marked():
            return Text(cell.text, style=_STYLES[cell.tone])
        case Lines():
            return Text("\n").join(_cell(line) for line in cell.lines if cell_text(line))
    return Text(cell_text(cell))
