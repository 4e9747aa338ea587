"""The parts of an explanation as tables: results of the flow, losses, counters of TCP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engpass import formatting
from engpass.results.frame import FLOW_SIGNALS
from engpass.show.blocks import Amount, Cell, Column, Table

if TYPE_CHECKING:
    from engpass.explain.point_facts import Situation

_MEAN = "mean of the repeats"


def service(at: Situation) -> Table:
    """Goodput, loss and delay of the flow, with its limit and its idle delay to compare."""
    idle = "" if not at.idle_delay else f"idle path {formatting.duration(at.idle_delay)}"
    rows: list[Sequence[Cell]] = [
        ("goodput", Amount(at.goodput, "bit/s"), at.limit_text),
        ("loss", Amount(at.served.loss, ""), ""),
        ("delay p50", _time(at.served.half), idle),
        ("delay p99", _time(at.served.delay), ""),
    ]
    rows += [
        (signal.title.lower(), _time(value), "")
        # The message delay of a datagram is its delay.
        for name in ("queueing_delay_p99_s", *(["message_delay_p99_s"] if at.tcp else []))
        if (value := at.folded(signal := FLOW_SIGNALS[name])) is not None
    ]
    if at.gap is not None:
        rows.append(("longest gap", _time(at.gap), at.outage_text))
    columns = [Column("Measure"), Column("Simulated", right=True), Column("Compare with", right=True)]
    notes = ["several repeats: mean rates and delays, loss of all datagrams, longest gap of all"]
    return Table("Results of the flow", columns, rows, notes if len(at.outcomes) > 1 else ())


def _time(seconds: float | None) -> Amount | None:
    return None if seconds is None else Amount(seconds, "s")


def _of_repeats(at: Situation) -> str:
    return f", {_MEAN}" if len(at.outcomes) > 1 else ""


def losses(at: Situation) -> Table:
    """Where the packets of which flow were lost, and why."""
    rows: list[Sequence[Cell]] = [
        (
            formatting.place_name(drop.place, at.parallel).replace("->", "→"),
            drop.cause,
            drop.flow,
            round(drop.cells),
            round(drop.datagrams),
        )
        for drop in at.drops
    ]
    columns = [Column("Lost at"), Column("Cause"), Column("Flow")]
    columns += [Column(title, right=True) for title in ("Cells, frames", "Datagrams")]
    return Table(f"Losses by place{_of_repeats(at)}", columns, rows)


def counters(at: Situation) -> Table:
    """What TCP counted."""
    counts: Mapping[str, float] = at.counts
    rows: list[Sequence[Cell]] = [
        (formatting.named(key), formatting.counted(key, value)) for key, value in counts.items()
    ]
    return Table(f"Counters of TCP{_of_repeats(at)}", [Column("Counter"), Column("Value", right=True)], rows)
