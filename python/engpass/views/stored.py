"""What the store has: lists of runs and searches, and the settings and the host of one run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engpass.jsondata import Json
from engpass.show.blocks import Cell, Column, Fact, Facts, Table
from engpass.units import unit_for

if TYPE_CHECKING:
    from engpass.results.record import Run
    from engpass.store import RunRecord


def runs(records: Sequence[RunRecord]) -> Table:
    """The runs of a store."""
    heads = [*map(Column, ("Run", "Testbed", "File", "Status")), Column("Points", right=True)]
    rows: list[list[Cell]] = [
        [r.id, r.name, r.source, r.status, f"{r.points_done:,} of {r.points_total:,}", moment(r.used)]
        for r in records
    ]
    return Table("", [*heads, Column("Used", right=True)], rows)


def searches(records: Sequence[RunRecord]) -> Table:
    """The searches of a store."""
    heads = [*map(Column, ("Search", "Testbed", "Method", "Engine", "Traffic", "Ended"))]
    rows: list[list[Cell]] = [
        [r.id, r.name, r.method, r.engine, r.traffic, "no" if r.result is None else "yes", moment(r.created)]
        for r in records
    ]
    return Table("", [*heads, Column("Started", right=True)], rows)


def moment(iso: str) -> str:
    """A time stamp (ISO 8601) in UTC, to the second; other text is unchanged."""
    try:
        time = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return f"{time if time.tzinfo is None else time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


_HOST = ("version", "python", "system", "kernel", "cpu", "hostname")
"""The facts about a host that a terminal shows."""


def details(run: Run, failed: int = 0, sessions: int = 0, *, whole: bool = False) -> Facts:
    """The settings of a run and the machine that it ran on: the main facts, or the `whole` record."""
    host: Mapping[str, Json] = run.environment
    told: list[tuple[str, Json]] = [
        ("run", run.id),
        ("testbed", run.name),
        ("description", run.description or ""),
        ("file", run.source),
        ("created", moment(run.created)),
        ("status", run.status),
        ("points", f"{run.points_done:,} of {run.points_total:,}"),
        ("failed", f"{failed:,}" if failed else ""),
        ("engines", ", ".join(run.engines)),
        ("variants", ", ".join(run.variants)),
        ("sweep", ", ".join(f"{axis.path} ({len(axis.values)} values)" for axis in run.axes)),
        ("repeats", str(run.repeats)),
        ("overrides", ", ".join(f"{path} = {value}" for path, value in run.overrides)),
        ("sessions", str(sessions) if sessions else ""),
    ]
    return facts([*told, *(host.items() if whole else ((key, host.get(key, "")) for key in _HOST))])


def facts(entries: Iterable[tuple[str, Json]]) -> Facts:
    """Names and values of JSON data; values in bytes get a suitable unit."""
    told = []
    for key, value in entries:
        if key.endswith("_bytes") and isinstance(value, int):
            told.append(Fact(key.removesuffix("_bytes"), unit_for("B", [value]).say(value, 3)))
        else:
            told.append(Fact(key.replace("_", " "), _flat(value)))
    return Facts(told)


def _flat(value: Json) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items())
    return ", ".join(map(_flat, value)) if isinstance(value, (list, tuple)) else str(value)
