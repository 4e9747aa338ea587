"""The blocks of a document. Cells hold values in base units; the renderers format them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from engpass.units import Unit

Tone: TypeAlias = Literal["good", "bad", "mark", "muted"]
"""The meaning that a colour carries."""


class Amount(msgspec.Struct, frozen=True):
    """A value in a base unit: `bit/s`, `s`, `B`, what is counted; empty for a share."""

    value: float
    unit: str
    remark: str = ""
    """A warning about the value, such as `invalid`."""


class Change(msgspec.Struct, frozen=True):
    """A change relative to the value before, as a share: 0.1 is a rise by 10 %."""

    share: float
    half_interval: float | None = None
    """Half the width of the confidence interval of the share; `None` if it is unknown or negligible."""


class Marked(msgspec.Struct, frozen=True):
    """Words in a colour."""

    text: str
    tone: Tone


class Lines(msgspec.Struct, frozen=True):
    """A cell of several lines; an empty one is left out."""

    lines: Sequence[str | Marked]


Cell: TypeAlias = str | int | Amount | Change | Marked | Lines | None
"""Names in backticks are code."""


class Column(msgspec.Struct, frozen=True):
    """A column of a table; numbers stand right-aligned."""

    title: str
    right: bool = False
    unit: Unit | None = None
    """A page names this unit in the head and shows all amounts in it; elsewhere each has its own."""
    gives_way: int = 0
    """A terminal that is too narrow omits the columns above 0, the smallest first."""
    note: str = ""
    """A sentence below the table; names in backticks."""


def columns(*titles: str, left: int = 1) -> list[Column]:
    """Columns with these titles; those after the first `left` ones stand right-aligned."""
    return [Column(title, right=place >= left) for place, title in enumerate(titles)]


class Table(msgspec.Struct, frozen=True):
    """A table; each row has a cell for each column."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    """Sentences below the table, before those of the columns; names in backticks."""
    rules: Sequence[int] = ()
    """Rows above which a terminal draws a rule."""
    total: bool = False
    """Whether the last row is the sum or the result of the others."""
    texts: bool = False
    """Whether cells are sentences: they wrap, and a rule stands between rows."""
    splits: bool = False
    """Whether a table too wide for the terminal is split into several, each with the first column."""
    left_out: str = ""
    """Where to find columns that a terminal omits."""

    @property
    def all_notes(self) -> list[str]:
        """The notes of the table and of its columns."""
        return [*self.notes, *filter(None, (column.note for column in self.columns))]


class Group(msgspec.Struct, frozen=True):
    """Rows with a heading: a sentence, and the commands or options that belong to it."""

    heading: str
    code: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


class Groups(msgspec.Struct, frozen=True):
    """A table whose rows stand in groups; the first column has names, the others figures."""

    title: str
    head: str
    """What the headings are."""
    columns: Sequence[str]
    groups: Sequence[Group]


class Prose(msgspec.Struct, frozen=True):
    """A paragraph; names in backticks. `lead` are the words that classify it, such as `invalid`."""

    text: str
    lead: Marked | None = None
    strong: bool = False


class Fact(msgspec.Struct, frozen=True):
    """A named value; one without a value is not shown. `note` says where it comes from."""

    name: str
    value: Cell
    note: str = ""


class Facts(msgspec.Struct, frozen=True):
    """Named values, one below the other."""

    facts: Sequence[Fact]
    title: str = ""


class Items(msgspec.Struct, frozen=True):
    """A list of sentences, each with the name that it is about."""

    items: Sequence[tuple[str, str]]
    """Name and sentence; names in backticks."""
    noun: str
    """Noun for the names, such as `variant`."""
    more: str = ""
    """A sentence about further names that the list leaves out."""


class Curve(msgspec.Struct, frozen=True):
    """A value from each instant of `times_s` on, in the unit of its panel."""

    name: str
    times_s: Sequence[float]
    values: Sequence[float]
    ends_s: Sequence[float] = ()
    """End of each value, which is a bar in a figure; if empty, a value lasts until the next one."""
    colour: str = "s1"
    """The name of a colour in the theme of pages."""


class Panel(msgspec.Struct, frozen=True):
    """Curves with one unit; several of them share the scale of a figure."""

    title: Sequence[str]
    """The title in the lines that a figure shows."""
    unit: str
    curves: Sequence[Curve]
    full: float | None = None
    """The greatest possible value, if known."""


class Marks(msgspec.Struct, frozen=True):
    """Instants at which something happened, or spans of time as long as something lasted."""

    name: str
    colour: str
    times_s: Sequence[float] = ()
    spans_s: Sequence[Sequence[float]] = ()


class OverTime(msgspec.Struct, frozen=True):
    """Curves and events on one time axis, from 0 to `end_s`: a figure, and lines of characters."""

    name: str
    """The name of the figure in a page."""
    title: str
    subtitle: str
    end_s: float
    panels: Sequence[Panel]
    marks: Sequence[Marks]
    caption: str = ""
    """Caption of the figure: the meaning of its panels."""
    notes: Sequence[str] = ()
    """Sentences about curves and events that the block leaves out."""


Block: TypeAlias = Table | Groups | Prose | Facts | Items | OverTime


class Document(msgspec.Struct, frozen=True):
    """A result for its reader: the answer in a sentence, then the blocks that carry it."""

    title: str
    sentence: str
    blocks: Sequence[Block] = ()
