"""How busy lines and engines are: the greatest value of each signal over the points of a variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engpass.results.frame import Samples
from engpass.results.outcomes import engines, lines, sweep
from engpass.show.blocks import Amount, Cell, Column, Table
from engpass.types.outcome import Outcome
from engpass.types.signals import ENGINE, LINE, Signal

MOST = 200
"""Most rows of a table."""

_Key = tuple[str, str, str]
"""Variant, engine of Engpass, and name of the line or engine."""


def line_table(outcomes: Iterable[Outcome]) -> Table:
    """The signals of lines that summaries show; a line on which nothing was sent is left out."""
    shown = [signal for signal in LINE if signal.summary]
    found: dict[_Key, dict[object, Samples]] = {}
    for outcome in outcomes:
        place = tuple(sweep(outcome).items())
        for link, side in lines(outcome) if outcome.engine != "limit" else ():
            key = (outcome.variant, outcome.engine, f"{link}: {side.from_} → {side.to}")
            found.setdefault(key, {}).setdefault(place, Samples(shown)).add(side)
    return _table("Lines", "Line", shown, found)


def engine_table(outcomes: Iterable[Outcome]) -> Table:
    """The loads of CPUs and forwarding engines; an engine without work is left out."""
    found: dict[_Key, dict[object, Samples]] = {}
    for outcome in outcomes:
        place = tuple(sweep(outcome).items())
        for node, name, engine in engines(outcome) if outcome.engine != "limit" else ():
            key = (outcome.variant, outcome.engine, f"{node}: {name}")
            found.setdefault(key, {}).setdefault(place, Samples(ENGINE)).add(engine)
    return _table("CPUs and forwarding engines", "Node", ENGINE, found)


def _table(title: str, what: str, shown: Sequence[Signal], found: dict[_Key, dict[object, Samples]]) -> Table:
    greatest = {key: _greatest(places.values(), shown) for key, places in found.items()}
    kept = {key: values for key, values in greatest.items() if any(values.values())}
    known = [signal for signal in shown if any(values[signal] is not None for values in kept.values())]
    variants, engines = ({key[place] for key in kept} for place in (0, 1))
    several = [len(variants) > 1, len(engines) > 1]
    heads = [head for head, needed in zip(("Variant", "Engine"), several, strict=True) if needed]
    rows: list[list[Cell]] = []
    for (variant, engine, name), values in list(kept.items())[:MOST]:
        names = [text for text, needed in zip((variant, engine), several, strict=True) if needed]
        amounts = [
            None if values[signal] is None else Amount(values[signal] or 0.0, signal.unit) for signal in known
        ]
        rows.append([*names, name, *amounts])
    notes = []
    if any(len(places) > 1 for places in found.values()):
        notes.append("each figure is the greatest over all swept values")
    if len(kept) > MOST:
        notes.append(f"{MOST} of {len(kept):,} rows")
    columns = [*(Column(head) for head in heads), Column(what)]
    columns += [Column(signal.title, right=True) for signal in known]
    return Table(title, columns, rows, notes)


def _greatest(places: Iterable[Samples], shown: Sequence[Signal]) -> dict[Signal, float | None]:
    samples = list(places)
    return {
        signal: max((value for one in samples if (value := one.folded(signal)) is not None), default=None)
        for signal in shown
    }
