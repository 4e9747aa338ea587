"""Prints a comparison of runs: a table of the signals that differ by more than chance explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from engpass.campaign import Axis
from engpass.formatting import count, listed
from engpass.results.comparison import Comparison, Difference, Place
from engpass.show.blocks import Amount, Cell, Change, Column, Document, Prose, Table

MOST = 40
"""Maximum number of rows of the table without `--all`."""

_NEGLIGIBLE = 0.00005
"""Half a confidence interval below this share is not shown: repeats that are equal but for rounding."""


class Compared(msgspec.Struct, frozen=True):
    """A compared run, for its line above the table."""

    id: str
    about: str
    """Name, file and overrides of the run, as text."""


def view(
    runs: Sequence[Compared], axes: Sequence[Axis], found: Comparison, *, whole: bool = False
) -> Document:
    """Show a comparison; `axes` are those of all runs, the first run's last; `whole` lists all changes."""
    # Places have swept values in base units; the table shows them as the file writes them.
    texts = {
        (axis.path, value.text if value.number is None else value.number): value.text
        for axis in axes
        for value in axis.values
    }
    blocks: list[Prose | Table] = []
    for run, alone in zip(runs, found.alone, strict=True):
        more = ""
        if alone:
            such = "such as " if len(alone) > 1 else "that of "
            more = f"; {count(len(alone), 'result')} that not all runs have, {such}{_named(alone[0], texts)}"
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
    about = "change: relative to the first run"
    changes = [_change(one) for one in differences]
    if any(isinstance(change, Change) and change.half_interval is not None for change in changes):
        about += "; ±: its 99.9 % confidence interval, and smaller changes count as chance"
    columns = [
        Column("Variant"),
        *(Column(path) for path in paths),
        Column("Flow"),
        *([Column("Engine")] if engines else []),
        Column("Signal"),
        *(Column(one, right=True) for one in ids),
        Column("Change", right=True, note=about),
        Column(""),
    ]
    rows: list[list[Cell]] = []
    for one, change in zip(differences, changes, strict=True):
        swept = _swept(one.place, texts)
        values = [swept.get(path, "") for path in paths]
        unit = one.signal.unit
        rows.append(
            [
                one.place.variant,
                *values,
                one.place.flow,
                *([one.place.engine] if engines else []),
                one.signal.title,
                *(None if mean is None else Amount(mean.value, unit) for mean in one.means),
                change,
                one.verdict,
            ]
        )
    notes = ["result: a flow at a point; values: means of the repeats"]
    if len(differences) < total:
        notes.append(f"the greatest {len(differences):,} of {total:,} changes; `--all` prints all")
    return Table("Changes, the greatest first", columns, rows, notes)


def _swept(place: Place, texts: Mapping[tuple[str, float | str], str]) -> dict[str, str]:
    return {path: texts.get((path, value), str(value)) for path, value in place.swept}


def _named(place: Place, texts: Mapping[tuple[str, float | str], str]) -> str:
    """A place in words: `download` at `bbr`, traffic.download.message = 1 kB, simulate."""
    swept = [f"{path} = {value}" for path, value in _swept(place, texts).items()]
    return ", ".join([f"`{place.flow}` at `{place.variant}`", *swept, place.engine])


def _change(one: Difference) -> Cell:
    """The change from the first run; words if the first run has 0, nothing if a run lacks the signal."""
    if one.change is None:
        return None if one.pair is None else "from 0"
    half = one.uncertainty
    return Change(one.change, None if half is None or half < _NEGLIGIBLE else half)
