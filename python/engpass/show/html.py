"""Shows blocks as HTML, for the sections of a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from engpass.formatting import count
from engpass.show.blocks import (
    Amount,
    Block,
    Cell,
    Column,
    Facts,
    Groups,
    Items,
    Lines,
    Marked,
    OverTime,
    Prose,
    Table,
)
from engpass.show.markup import Swatch, chart_box, details, esc, prose, swatches
from engpass.show.markup import table as html_table
from engpass.show.text import cell_text
from engpass.units import plain

_TALL, _WIDE = 15, 8
"""Rows and columns above which a table scrolls in its own box; in others each row is a card on a phone."""

_OPEN = 4
"""Items of a list that are not folded."""


def blocks_html(blocks: Iterable[Block]) -> str:
    """Blocks as HTML; nothing for a table without rows."""
    return "".join(map(_block, blocks))


def _block(block: Block) -> str:
    match block:
        case Prose():
            lead = (
                f'<span class="badge {block.lead.tone}">{esc(block.lead.text)}</span> ' if block.lead else ""
            )
            text = f"<strong>{prose(block.text)}</strong>" if block.strong else prose(block.text)
            return f"<p>{lead}{text}</p>"
        case Facts():
            return _facts(block)
        case Groups():
            return _groups(block)
        case Table():
            return _table(block) if block.rows else ""
        case Items():
            return _items(block)
        case OverTime():
            return _over_time(block)


def _items(block: Items) -> str:
    items = [f"<li><code>{esc(name)}</code>: {prose(text)}</li>" for name, text in block.items]
    shown, folded = items[:_OPEN], items[_OPEN:]
    more = f"<p>{prose(block.more)}</p>" if block.more else ""
    rest = details(count(len(folded), f"more {block.noun}"), f"<ul>{''.join(folded)}</ul>") if folded else ""
    return f"<ul>{''.join(shown)}</ul>{rest}{more}" if shown else ""


def _over_time(block: OverTime) -> str:
    """The box of the figure, with a legend for a panel of several curves."""
    curves = [curve for panel in block.panels if len(panel.curves) > 1 for curve in panel.curves]
    key = swatches(Swatch(curve.colour, curve.name) for curve in curves)
    return chart_box(block.name, " ".join([block.caption, *block.notes]), key)


def _facts(block: Facts) -> str:
    title = f'<p class="caption">{prose(block.title)}</p>' if block.title else ""
    items = "".join(
        f"<dt>{esc(fact.name)}</dt><dd>{_cell(fact.value)}"
        + (f' <span class="muted">{esc(fact.note)}</span></dd>' if fact.note else "</dd>")
        for fact in block.facts
        if cell_text(fact.value)
    )
    return f"{title}<dl>{items}</dl>"


def _groups(block: Groups) -> str:
    """A row for each group: in its first cell the heading, in the others its rows, one below the other."""
    rows = []
    for group in block.groups:
        note = f'<br><span class="muted">{prose(group.note)}</span>' if group.note else ""
        code = "".join(f"<br><code>{esc(line)}</code>" for line in group.code)
        names, *figures = ("<br>".join(map(_cell, column)) for column in zip(*group.rows, strict=True))
        # A name must stay on the line of its figures, so it must not wrap.
        rows.append(
            [f"{prose(group.heading)}{code}{note}", names.replace(" ", "\N{NO-BREAK SPACE}"), *figures]
        )
    heads = [esc(block.head), *map(esc, block.columns)]
    return html_table(esc(block.title), heads, rows, numeric=range(2, len(heads)), kind="cards")


def _table(table: Table) -> str:
    rows = [
        [_cell(cell, column) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows
    ]
    if table.total:
        rows[-1] = [f"<strong>{cell}</strong>" for cell in rows[-1]]
    numeric = [place for place, column in enumerate(table.columns) if column.right]
    notes = "".join(f'<p class="muted">{prose(note)}</p>' for note in table.all_notes)
    long = len(rows) > _TALL or len(table.columns) > _WIDE
    kind: Literal["tall", "cards"] = "tall" if long and not table.texts else "cards"
    return (
        html_table(
            prose(table.title), [_head(one) for one in table.columns], rows, numeric=numeric, kind=kind
        )
        + notes
    )


def _head(column: Column) -> str:
    unit = f' <span class="unit">{esc(column.unit.name)}</span>' if column.unit and column.unit.name else ""
    return prose(column.title) + unit


def _cell(cell: Cell, column: Column | None = None) -> str:
    match cell:
        case Amount() if column is not None and column.unit is not None:
            remark = f' <span class="badge bad">{esc(cell.remark)}</span>' if cell.remark else ""
            return plain(cell.value / column.unit.factor) + remark
        case Marked():
            return f'<span class="{cell.tone}">{prose(cell.text)}</span>'
        case Lines():
            inner = "<br>".join(_cell(line) for line in cell.lines if cell_text(line))
            return f'<div class="wide">{inner}</div>'
    return prose(cell_text(cell))
