"""Tables for people."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from engpass import above
from engpass.apart import FAR, apart
from engpass.remarks import Remarks
from engpass.say import duration, percent, rate

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.campaign import Plan
    from engpass.store import RunRecord, Store

# Swept values per variant in a summary; a screenful for the usual few variants.
_MOST = 12

MOST_FLOWS = 200
"""Flows in a table: more are none that anybody reads, and a terminal takes seconds for it."""

# Background: shown only where there is nothing else.
_GENERATORS = frozenset({"cbr", "on-off"})


def grid(*columns: str, title: str | None = None, left: int = 1) -> Table:
    """An empty table; all but the first columns are set to the right."""
    table = Table(title=Text(title) if title else None, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if i < left else "right", overflow="fold")
    return table


def plain(*texts: str) -> list[Text]:
    """The cells of a row."""
    # Names come from files: no `[red]` in them is markup.
    return [Text(text) for text in texts]


def waterfall(title: str, flow: dict[str, Any]) -> Table:
    """From line rate to goodput, stage by stage."""
    table = grid("Stage", "Rate", "of the first", "taken", title=title)
    stages = flow["stages"]
    first = stages[0]["rate_bit_per_s"] if stages else 0
    before = None
    for stage in stages:
        value = stage["rate_bit_per_s"]
        taken = "" if before is None or before == value else rate(before - value)
        table.add_row(*plain(stage["name"], rate(value), percent(value / first if first else None), taken))
        before = value
    if table.rows:
        # The last stage is what the application gets.
        table.rows[-1].style = "bold"
    return table


def runs(records: Sequence[RunRecord]) -> Table:
    """The runs of a store."""
    table = grid("Run", "Testbed", "File", "Status", "Points", "Used", left=4)
    for r in records:
        points = f"{r.points_done:,} of {r.points_total:,}"
        table.add_row(*plain(r.id, r.name, r.source, r.status, points, moment(r.used)))
    return table


def moment(iso: str) -> str:
    """A time for people: to the second, UTC."""
    return iso[:19].replace("T", " ") + " UTC"


def details(record: RunRecord, sessions: int) -> Table:
    """What was asked of a run and where it ran."""
    environment = record.environment
    rows = [
        ("run", record.id),
        ("testbed", record.name),
        ("description", record.description or ""),
        ("file", record.source),
        ("created", moment(record.created)),
        ("status", record.status),
        ("points", f"{record.points_done:,} of {record.points_total:,}"),
        ("failed", f"{record.points_failed:,}" if record.points_failed else ""),
        ("engines", ", ".join(record.engines)),
        ("variants", ", ".join(record.variants)),
        ("sweep", ", ".join(f"{a['path']} ({len(a['values'])} values)" for a in record.axes)),
        ("repeats", str(record.repeats)),
        ("overrides", ", ".join(f"{path} = {value}" for path, value in record.overrides)),
        ("sessions", str(sessions)),
        *(
            (key, str(environment.get(key, "")))
            for key in ("version", "python", "system", "kernel", "cpu", "hostname")
        ),
    ]
    table = Table.grid(padding=(0, 2))
    for name, value in rows:
        if value:
            table.add_row(Text(name, style="bold"), Text(value))
    return table


@dataclass
class _Cell:
    """What came out of one engine for one variant, sweep point and flow, over the repeats."""

    goodput: list[float] = field(default_factory=list)
    offered: list[float] = field(default_factory=list)
    sent: int = 0
    lost: int = 0
    limit: float | None = None
    invalid: int = 0

    @property
    def mean(self) -> float | None:
        """Mean goodput, if there is any point."""
        return math.fsum(self.goodput) / len(self.goodput) if self.goodput else None

    def add(self, flow: dict[str, Any], *, valid: bool) -> None:
        self.invalid += not valid
        self.goodput.append(flow["goodput_bit_per_s"])
        self.offered.append(flow["offered_bit_per_s"])
        self.sent += flow.get("sent_datagrams") or 0
        self.lost += flow.get("lost_datagrams") or 0

    def texts(self) -> list[str]:
        mean = self.mean
        if mean is None:
            return ["", "", "", "", rate(self.limit)]
        offered = math.fsum(self.offered) / len(self.offered)
        half = (max(self.goodput) - min(self.goodput)) / 2
        spread = percent(half / mean if mean else 0.0) if len(self.goodput) > 1 else ""
        # Some that are lost in a window were sent before it: no more than all.
        loss = percent(min(1.0, self.lost / self.sent)) if self.sent else ""
        mark = " invalid" if self.invalid else ""
        return [rate(mean) + mark, spread, rate(offered), loss, rate(self.limit)]


_Cells = dict[tuple[str, int, str, str], _Cell]
"""By variant, sweep point, flow and engine."""


def summary(store: Store, record: RunRecord, out: Console) -> None:
    """Print mean goodput, spread, loss and limit per variant and swept value; thinned for a long sweep."""
    plan = record.plan
    shown, wanted = _shown(plan)
    engines = [name for name in plan.engines if name != "limit"]
    cells: _Cells = {}
    kinds: dict[str, str] = {}
    remarks = Remarks()
    for position, text in store.raw_outcomes(record.id, _ranges(sorted(wanted))):
        outcome = json.loads(text)
        remarks.add(outcome)
        for name, flow in outcome["flows"].items():
            kinds[name] = flow["kind"]
            # The limit stands beside what every other engine found.
            for engine in engines if outcome["engine"] == "limit" and engines else [outcome["engine"]]:
                cell = cells.setdefault((*wanted[position], name, engine), _Cell())
                if outcome["engine"] == "limit":
                    cell.limit = flow["goodput_bit_per_s"]
                else:
                    cell.add(flow, valid=outcome.get("valid", True))
    flows = [name for name, kind in kinds.items() if kind not in _GENERATORS] or list(kinds)
    out.print(_summary_table(record, cells, flows[:MOST_FLOWS]))
    notes = _thinned(record, shown, len(flows))
    if any(len(cell.goodput) > 1 for cell in cells.values()):
        notes.append("spread: half of the greatest less the least, of the mean")
    if any(cell.invalid for cell in cells.values()):
        notes.append("invalid: packets of the emulated network were later than its limit; `--slow` helps")
    if len(engines) > 1 and "simulate" in engines:
        notes.append(f"apart: goodput against that of `simulate`; more than {percent(FAR)} has a `!`")
    got = _got(cells, kinds)
    if any(one.above for one in got):
        of = above.of_run(record.topology, record.text, record.variants, record.overrides)
        notes += above.notes(got, of)
    notes += remarks.lines()
    for note in notes:
        out.print(note, markup=False, soft_wrap=True)


def _got(cells: _Cells, kinds: dict[str, str]) -> list[above.Got]:
    """What the flows got where both a goodput and a limit are known."""
    return [
        above.Got((variant, index), engine, flow, kinds[flow], cell.mean, cell.limit)
        for (variant, index, flow, engine), cell in cells.items()
        if cell.mean is not None and cell.limit is not None
    ]


def _shown(plan: Plan) -> tuple[list[int], dict[int, tuple[str, int]]]:
    """Swept values that a table shows, in even steps and the last; and the positions of their points."""
    count = plan.sweep_points
    shown = sorted({*range(0, count, math.ceil(count / _MOST)), count - 1})
    # Only the points that are shown are read: a summary of a million points takes no time.
    wanted = {
        position: (variant, index)
        for engine in plan.engines
        for variant in plan.variants
        for index in shown
        for position in plan.positions(engine, variant, index)
    }
    return shown, wanted


def _thinned(record: RunRecord, shown: list[int], flows: int) -> list[str]:
    """What a table does not show, and where it is."""
    parts = [
        f"{some:,} of {count:,} {what}"
        for some, count, what in (
            (len(shown), record.plan.sweep_points, "swept values"),
            (min(flows, MOST_FLOWS), flows, "flows"),
        )
        if some < count
    ]
    return [f"{' and '.join(parts)} are shown; `engpass export {record.id}` has all"] if parts else []


_QUANTILES = {"p50": "50 %", "p90": "90 %", "p99": "99 %", "p999": "99.9 %"}
_TIMES = {"delay": "Delay", "round_trip": "Round trip"}


def delays(store: Store, record: RunRecord, out: Console) -> None:
    """Print quantiles of delays and round trips per variant, swept value and flow: means of the repeats."""
    plan = record.plan
    shown, wanted = _shown(plan)
    found: dict[tuple[str, int, str], dict[str, list[float]]] = {}
    for position, text in store.raw_outcomes(record.id, _ranges(sorted(wanted))):
        outcome = json.loads(text)
        if outcome["engine"] != "simulate":
            continue
        for name, flow in outcome["flows"].items():
            for key in (f"{time}_{quantile}_s" for time in _TIMES for quantile in _QUANTILES):
                if flow.get(key) is not None:
                    row = found.setdefault((*wanted[position], name), {})
                    row.setdefault(key, []).append(flow[key])
    times = [time for time in _TIMES if any(f"{time}_p50_s" in row for row in found.values())]
    if not times:
        out.print(
            "no point has delays: only `simulate` tells them, of flows that send datagrams", markup=False
        )
        return
    flows = list(dict.fromkeys(name for _, _, name in found))
    drawn = frozenset(flows[:MOST_FLOWS])
    rows = [(key, row) for key, row in found.items() if key[2] in drawn]
    axes = [axis.path for axis in plan.axes]
    heads = [f"{_TIMES[time]} {share}" for time in times for share in _QUANTILES.values()]
    table = grid("Variant", *axes, "Flow", *heads, title=record.name)
    for variant in plan.variants:
        for (_, index, name), row in (item for item in rows if item[0][0] == variant):
            values = [value.text for value in plan.values(index)]
            columns = (row.get(f"{time}_{quantile}_s") for time in times for quantile in _QUANTILES)
            means = [duration(math.fsum(column) / len(column)) if column else "" for column in columns]
            table.add_row(*plain(variant, *values, name, *means))
        table.add_section()
    out.print(table)
    for note in [
        *_thinned(record, shown, len(flows)),
        "of all, that share is at most that long; mean of the repeats",
    ]:
        out.print(note, markup=False, soft_wrap=True)


def _ranges(positions: Sequence[int]) -> list[range]:
    """Ascending positions as ranges: neighbours come with one query."""
    merged: list[range] = []
    for position in positions:
        if merged and merged[-1].stop == position:
            merged[-1] = range(merged[-1].start, position + 1)
        else:
            merged.append(range(position, position + 1))
    return merged


def _summary_table(record: RunRecord, cells: _Cells, flows: Sequence[str]) -> Table:
    plan = record.plan
    places = {flow: place for place, flow in enumerate(flows)}
    axes = [axis.path for axis in plan.axes]
    named = len(flows) > 1
    engines = list(plan.engines)
    told = len([name for name in engines if name != "limit"]) > 1
    compared = told and "simulate" in engines
    columns = ["Variant", *axes, *(["Flow"] if named else []), *(["Engine"] if told else [])]
    figures = ["Goodput", "Spread", "Offered", "Loss", "Limit", *(["Apart"] if compared else [])]
    table = grid(*columns, *figures, title=record.name, left=1)
    chosen = sorted(
        (key for key in cells if key[2] in places),
        key=lambda key: (plan.variants.index(key[0]), key[1], places[key[2]], engines.index(key[3])),
    )
    for variant, keys in groupby(chosen, key=lambda key: key[0]):
        for key in keys:
            values = [value.text for value in plan.values(key[1])]
            names = [*([key[2]] if named else []), *([key[3]] if told else [])]
            other = [_apart(cells, key)] if compared else []
            table.add_row(*plain(variant, *values, *names, *cells[key].texts(), *other))
        table.add_section()
    return table


def _apart(cells: _Cells, key: tuple[str, int, str, str]) -> str:
    """How far an engine is from `simulate`, if both have something."""
    variant, index, flow, engine = key
    both = {name: cells.get((variant, index, flow, name)) for name in ("simulate", engine)}
    means = {name: cell.mean for name, cell in both.items() if cell is not None and cell.mean is not None}
    if engine == "simulate" or len(means) < 2:
        return ""
    limit = next((cell.limit for cell in both.values() if cell is not None and cell.limit is not None), None)
    if limit is not None:
        means["limit"] = limit
    other = next(one for one in apart(means) if one.engine == engine)
    return ("" if other.share is None else f"{other.share * 100:+.1f} %") + (" !" if other.far else "")
