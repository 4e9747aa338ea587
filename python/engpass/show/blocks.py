"""The blocks of a document. Cells hold values in base units; the renderers format them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Amount:
    """A value in a base unit: `bit/s`, `s`, `B`, what is counted; empty for a share."""

    value: float
    unit: str


Cell: TypeAlias = str | int | Amount | None


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand right-aligned."""

    title: str
    right: bool = False


@dataclass(frozen=True)
class Table:
    """A table; each row has a cell for each column."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    """Sentences below the table; names in backticks."""


@dataclass(frozen=True)
class Prose:
    """A paragraph; names in backticks."""

    text: str


Block: TypeAlias = Table | Prose


@dataclass(frozen=True)
class Document:
    """A result for its reader: the answer in a sentence, then the blocks that carry it."""

    title: str
    sentence: str
    blocks: Sequence[Block] = ()
