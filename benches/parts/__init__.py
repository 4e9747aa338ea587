"""The parts of the benchmark, in the order of the report. Each one measures something and yields rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from figures import Row
from machine import Tools

from parts import (
    campaign,
    cells,
    choices,
    dumbbell,
    emulation,
    ledger,
    live,
    loops,
    memory,
    need,
    scaling,
    start,
)

Part = Callable[[Tools, bool], Iterator[Row]]

PARTS: dict[str, Part] = {
    "start": start.measure,
    "dumbbell": dumbbell.measure,
    "line": cells.line,
    "kyoto": cells.kyoto,
    "flows": scaling.flows,
    "losses": scaling.losses,
    "hops": scaling.hops,
    "sources": scaling.sources,
    "cells": scaling.cells,
    "choices": choices.measure,
    "ledger": ledger.measure,
    "campaign": campaign.measure,
    "sweep": campaign.sweep,
    "need": need.measure,
    "live": live.measure,
    "emulation": emulation.measure,
    "memory": memory.measure,
    "loops": loops.measure,
}
