"""Prints a comparison of runs: a table of the signals that differ by more than chance explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from engpass.campaign import Axis
from engpass.formatting import count, listed, percent
from engpass.results.comparison import Comparison, Difference
from engpass.show.blocks import Amount, Cell, Column, Document, Prose, Table

MOST = 40
"""Maximum number of rows of the table without `--all`."""

_TENFOLD = 10.0
"""A value that has grown by this factor has the factor as its change."""

_NEGLIGIBLE = 0.00005
"""Half a confidence interval below this share shows as 0: repeats that are equal but for rounding."""


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
    only = "the only common result" if any(found.alone) else "the only result"
    places = {one.place for one in found.differences}
    if not places:
        if found.common == 1:
            return f"{only} does not differ by more than chance explains"
        return f"none of {results} differs by more than chance explains"
    verdicts = [one.verdict for one in found.differences]
    sums = [
        f"{verdicts.count(word):,} {'is' if verdicts.count(word) == 1 else 'are'} {word}"
        for word in ("better", "worse")
        if verdicts.count(word)
    ]
    verb, whose = ("differs", "its") if len(places) == 1 else ("differ", "their")
    of = only if found.common == 1 else f"{len(places):,} of {results}"
    more = f"; of {whose} signals {listed(sums)}" if sums else ""
    return f"{of} {verb} by more than chance explains{more}"


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
    scatter = any(_interval(one) for one in differences)
    columns = [
        Column("Variant"),
        *(Column(path) for path in paths),
        Column("Flow"),
        *([Column("Engine")] if engines else []),
        Column("Signal"),
        *(Column(one, right=True) for one in ids),
        Column("Change", right=True),
        *([Column("Interval", right=True)] if scatter else []),
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
                *(None if mean is None else Amount(mean.value, unit) for mean in one.means),
                _change(one),
                *([_interval(one)] if scatter else []),
                one.verdict,
            ]
        )
    notes = [
        "result: a flow at a point; values: means of the repeats; change: relative to the first run",
    ]
    if scatter:
        notes.append("interval: 99.9 % confidence interval of the change; smaller changes count as chance")
    if len(differences) < total:
        notes.append(f"the greatest {len(differences):,} of {total:,} changes; `--all` prints all")
    return Table("Changes, the greatest first", columns, rows, notes)


def _change(one: Difference) -> str:
    """The change from the first run as text: a percentage, or a factor from ten times on."""
    if one.change is None:
        return "" if one.pair is None else "from 0"
    if one.change + 1 >= _TENFOLD:
        return f"{one.change + 1:,.0f}-fold"
    return f"{one.change:+.1%}".replace("%", " %")


def _interval(one: Difference) -> str:
    """The confidence interval of the change as text; empty if it is negligible or not known."""
    half = one.uncertainty
    if half is None or half < _NEGLIGIBLE:
        return ""
    if one.change is not None and one.change + 1 >= _TENFOLD:
        return f"±{half:,.1f}-fold"
    return f"±{percent(half)}"
