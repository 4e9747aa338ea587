"""How busy lines and engines are: the greatest value of each signal over the points of a variant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from engpass.results.outcomes import engines, lines, sweep
from engpass.results.samples import Samples
from engpass.show.blocks import Amount, Cell, Column, Table
from engpass.types.outcome import DirectionOutcome, EngineOutcome, Outcome
from engpass.types.signals import ENGINE, LINE, Signal

MOST = 200
"""Maximum number of rows of a table."""

_Subject = DirectionOutcome | EngineOutcome
_Key = tuple[str, str, str]
"""Variant, engine of Engpass, and name of the line or engine."""


def line_table(outcomes: Iterable[Outcome]) -> Table:
    """The signals of lines that summaries show; a line on which nothing was sent is left out."""

    def named(outcome: Outcome) -> Iterator[tuple[str, _Subject]]:
        return ((f"{link}: {side.from_} → {side.to}", side) for link, side in lines(outcome))

    return _table("Lines", "Line", [signal for signal in LINE if signal.summary], outcomes, named)


def engine_table(outcomes: Iterable[Outcome]) -> Table:
    """The loads of CPUs and forwarding engines; an engine without work is left out."""

    def named(outcome: Outcome) -> Iterator[tuple[str, _Subject]]:
        return ((f"{node}: {name}", engine) for node, name, engine in engines(outcome))

    return _table("CPUs and forwarding engines", "Node", ENGINE, outcomes, named)


def _table(
    title: str,
    what: str,
    shown: Sequence[Signal],
    outcomes: Iterable[Outcome],
    named: Callable[[Outcome], Iterator[tuple[str, _Subject]]],
) -> Table:
    found: dict[_Key, dict[tuple[tuple[str, float | str], ...], Samples]] = {}
    for outcome in outcomes:
        place = tuple(sweep(outcome).items())
        for name, subject in named(outcome) if outcome.engine != "limit" else ():
            places = found.setdefault((outcome.variant, outcome.engine, name), {})
            places.setdefault(place, Samples(shown)).add(subject)
    greatest = {key: _greatest(places.values(), shown) for key, places in found.items()}
    kept = {key: values for key, values in greatest.items() if any(values.values())}
    known = [signal for signal in shown if any(values[signal] is not None for values in kept.values())]
    several = [len({key[place] for key in kept}) > 1 for place in (0, 1)]
    heads = [head for head, needed in zip(("Variant", "Engine"), several, strict=True) if needed]
    rows: list[list[Cell]] = []
    for (variant, engine, name), values in list(kept.items())[:MOST]:
        names = [text for text, needed in zip((variant, engine), several, strict=True) if needed]
        amounts = (None if (value := values[one]) is None else Amount(value, one.unit) for one in known)
        rows.append([*names, name, *amounts])
    notes = []
    if any(len(places) > 1 for places in found.values()):
        notes.append("each figure is the greatest over all swept values")
    if any(samples.repeats > 1 for places in found.values() for samples in places.values()):
        notes.append("counts are sums over the repeats, loads means, queues the longest")
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
