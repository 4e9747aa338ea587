"""The columns of exported tables and of the CSV in reports: a row per flow, line or engine of a point."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from engpass.campaign import Axis
from engpass.results import receivers
from engpass.results.outcomes import engines, lines, sweep
from engpass.results.samples import Cell, at, value
from engpass.types.outcome import DirectionOutcome, EngineOutcome, FlowOutcome, Outcome
from engpass.types.signals import ENGINE, FLOW, LINE, Signal

Type = Literal["integer", "unsigned", "number", "text"]
Of = Literal["flows", "lines", "engines"]
"""What the rows of a table stand for."""

Row: TypeAlias = dict[str, Cell]
"""The cells of a row by column, without those that are empty."""

_TEXT: Type = "text"

_POINT: dict[str, Type] = {
    "point": "integer",
    "engine": "text",
    "variant": "text",
    "repeat": "integer",
    "seed": "unsigned",
}
_TEXTS = {
    "bottleneck": "bottleneck.title",
    "next_bottleneck": "next_bottleneck.title",
    "summary": "summary",
    "bound_bottleneck": "limit.bound.bottleneck.title",
    "bound_summary": "limit.bound.summary",
    # The columns of the first version with their old names, kept for one release.
    "next": "next_bottleneck.title",
    "sentence": "summary",
}
"""Text columns with the path of their value in the outcome of a flow; every exported table has them."""

_ALWAYS: dict[str, Type] = {
    signal.name: "integer" if signal.whole else "number" for signal in FLOW if signal.always
}
"""Signals that every table has; it has others if some outcome has a value for them."""


def _number(flow: FlowOutcome | DirectionOutcome | EngineOutcome, signal: Signal) -> Cell:
    """The value of a signal; an integer if it is a whole number."""
    return value(flow, signal) if signal.ratio is not None else at(flow, signal.path)


class Columns:
    """The columns of a run's table: about the point, its swept values, and the flow, line or engine.

    These come first, and in this order, in every file. Columns that only some outcomes have follow in the
    order in which they appear.
    """

    def __init__(self, axes: Sequence[Axis], of: Of = "flows") -> None:
        self._of = of
        swept: dict[str, Type] = {
            axis.path: "text" if any(value.number is None for value in axis.values) else "number"
            for axis in axes
        }
        flow: dict[str, Type] = {"flow": "text", "kind": "text", **_ALWAYS, **dict.fromkeys(_TEXTS, "text")}
        names: dict[Of, tuple[str, ...]] = {"lines": ("link", "from", "to"), "engines": ("node", "name")}
        about = flow if of == "flows" else dict.fromkeys(names[of], _TEXT)
        self.types: dict[str, Type] = {**_POINT, **swept, **about}
        self._texts = [path for path, kind in swept.items() if kind == "text"]

    def rows(self, position: int | None, outcome: Outcome) -> Iterator[Row]:
        """The rows of an outcome: for each flow and each receiver of a group, or for each line or engine.

        Values are in base units (bit/s, bytes, seconds).
        """
        shared: Row = {
            "point": position,
            "engine": outcome.engine,
            "variant": outcome.variant,
            "repeat": outcome.repeat,
            "seed": outcome.seed,
            **sweep(outcome),
            # Only outcomes of emulation have this: packets may have been too late.
            **({"valid": outcome.valid} if outcome.valid is not None else {}),
        }
        for path in self._texts:
            # If some values of an axis are text, all are written as text.
            if path in shared:
                shared[path] = str(shared[path])
        yield from ({**shared, **row} for row in _ROWS[self._of](outcome))

    def names(self, rows: Iterable[Mapping[str, Cell]]) -> list[str]:
        """The names of all columns that occur in some rows, in order."""
        names = dict.fromkeys(self.types)
        for row in rows:
            names |= dict.fromkeys(row)
        return list(names)


def _flows(outcome: Outcome) -> Iterator[Row]:
    for name, host, flow in receivers.rows(outcome):
        found = {signal.name: _number(flow, signal) for signal in FLOW}
        found |= {column: at(flow, path) for column, path in _TEXTS.items()}
        found |= {"kind": flow.kind}
        found["precision_reached"] = at(flow, "real.precision.reached")
        found |= receivers.membership(outcome, name, host)
        values = {column: value for column, value in found.items() if value is not None}
        if host:
            # The row of the flow itself has the figures of the receiver with the lowest goodput.
            values["receiver"] = host
        yield {"flow": name, **values}


def _numbers(subject: DirectionOutcome | EngineOutcome, signals: Sequence[Signal]) -> Row:
    """The values of those signals that the line or engine has, by column."""
    found = {signal.name: _number(subject, signal) for signal in signals}
    return {name: value for name, value in found.items() if value is not None}


def _engines(outcome: Outcome) -> Iterator[Row]:
    for node, name, engine in engines(outcome):
        yield {"node": node, "name": name, **_numbers(engine, ENGINE)}


def _lines(outcome: Outcome) -> Iterator[Row]:
    for link, side in lines(outcome):
        yield {"link": link, "from": side.from_, "to": side.to, **_numbers(side, LINE)}


_ROWS: dict[Of, Callable[[Outcome], Iterator[Row]]] = {
    "flows": _flows,
    "lines": _lines,
    "engines": _engines,
}
