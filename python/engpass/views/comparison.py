"""Prints a comparison of runs: a table of the signals that differ by more than their repeats scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from engpass.campaign import Axis
from engpass.formatting import count
from engpass.results.comparison import Comparison, Difference
from engpass.show.blocks import Amount, Cell, Column, Document, Prose, Table

MOST = 40
"""Maximum number of rows of the table without `--all`."""


class Compared(msgspec.Struct, frozen=True):
    """A compared run, for its line above the table."""

    id: str
    about: str
    """Name, file and overrides of the run, as text."""


def view(
    runs: Sequence[Compared], axes: Sequence[Axis], found: Comparison, *, whole: bool = False
) -> Document:
    """Show a comparison of runs. `axes` are those of the first run; `whole` lists all differences."""
    # Places have swept values in base units; the table shows them as the file writes them.
    texts = {
        (axis.path, value.text if value.number is None else value.number): value.text
        for axis in axes
        for value in axis.values
    }
    blocks: list[Prose | Table] = []
    for run, alone in zip(runs, found.alone, strict=True):
        more = f"; {count(alone, 'result')} that not all runs have" if alone else ""
        blocks.append(Prose(f"run {run.id}: {run.about}{more}"))
    if found.differences:
        shown = found.differences if whole else found.differences[:MOST]
        blocks.append(_table([run.id for run in runs], texts, shown, len(found.differences)))
    return Document(f"Comparison of {count(len(runs), 'run')}", _sentence(found), blocks)


def _sentence(found: Comparison) -> str:
    """Summarize the comparison; a result is one place, which may differ in several signals."""
    if not found.common:
        return "the runs have no point in common: compare runs with the same variants, flows and swept values"
    results = count(found.common, "result")
    places = {one.place for one in found.differences}
    if not places:
        return f"all {results} are equal within the scatter of their repeats"
    verdicts = [one.verdict for one in found.differences]
    sums = ", ".join(
        f"{verdicts.count(word):,} are {word}" for word in ("better", "worse") if verdicts.count(word)
    )
    verb = "differs" if len(places) == 1 else "differ"
    more = f"; of their signals {sums}" if sums else ""
    return f"{len(places):,} of {results} {verb} by more than the repeats scatter{more}"


def _table(
    ids: Sequence[str],
    texts: Mapping[tuple[str, float | str], str],
    differences: Sequence[Difference],
    total: int,
) -> Table:
    """Build a table with one row for each difference, and a column with the value of each run.

    `texts` has the text of a swept value by its path and its value in base units. `total` is the number of
    differences, of which the table has the first ones.
    """
    places = [one.place for one in differences]
    paths = list(dict.fromkeys(path for place in places for path, _ in place.swept))
    engines = len({place.engine for place in places}) > 1
    columns = [
        Column("Variant"),
        *(Column(path) for path in paths),
        Column("Flow"),
        *([Column("Engine")] if engines else []),
        Column("Signal"),
        *(Column(one, right=True) for one in ids),
        Column("Change", right=True),
        Column(""),
    ]
    rows: list[list[Cell]] = []
    for one in differences:
        swept = dict(one.place.swept)
        values = [texts.get((path, swept[path]), str(swept[path])) if path in swept else "" for path in paths]
        unit = one.signal.unit
        rows.append(
            [
                one.place.variant,
                *values,
                one.place.flow,
                *([one.place.engine] if engines else []),
                one.signal.title,
                *(None if spread is None else Amount(spread.value, unit) for spread in one.spreads),
                "" if one.change is None else f"{one.change:+.1%}".replace("%", " %"),
                one.verdict,
            ]
        )
    notes = ["result: a flow at a point; change: from the first run, as a share of the larger value"]
    if len(differences) < total:
        notes.append(f"the greatest {len(differences):,} of {total:,} changes; `--all` prints all")
    return Table("Changes, the greatest first", columns, rows, notes)
