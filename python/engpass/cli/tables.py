"""Tables of runs, delays and limits, for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from engpass.formatting import count, duration, listed, percent, quantity, rate
from engpass.results import above_limit, receivers
from engpass.results.engine_difference import FAR, apart
from engpass.results.frame import DELAY_P99, FAMILIES, GOODPUT, LONGEST_GAP, SUMMARY, Samples, at
from engpass.results.run_notes import Remarks, chose_otherwise

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.campaign import Plan
    from engpass.store import RunRecord, Store
    from engpass.types.outcome import FlowOutcome, Outcome, Stage

# Most swept values per variant in a summary: a few variants then fit on a screen.
_MOST = 12

_MOST_READ = 5_000
"""Most points that are all read for the headlines: 1.3 s with two flows, 4 s with ten."""

MOST_FLOWS = 200
"""Most flows in a table: a longer one takes seconds to print and is too long to read."""

_WIDTH = 100
"""Width of the summary table in a file or a pipe, in characters; a terminal has its own width."""

_GIVE_WAY = ("Offered", "Spread", "Delay p50")
"""Columns that a too wide table omits, the first one first."""


def grid(*columns: str, title: str | None = None, left: int = 1) -> Table:
    """An empty table; the first `left` columns are left-aligned, the others right-aligned."""
    table = Table(title=Text(title) if title else None, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if i < left else "right", overflow="fold")
    return table


def plain(*texts: str) -> list[Text]:
    """The cells of a row."""
    # `Text` keeps names such as `[red]` from being read as markup.
    return [Text(text) for text in texts]


def waterfall(title: str, stages: Sequence[Stage]) -> Table:
    """From line rate to goodput, stage by stage."""
    table = grid("Stage", "Rate", "% of line rate", "Taken", title=title)
    first = stages[0].rate_bit_per_s if stages else 0
    before = None
    for stage in stages:
        value = stage.rate_bit_per_s
        taken = "" if before is None or before == value else rate(before - value)
        table.add_row(*plain(stage.name, rate(value), percent(value / first if first else None), taken))
        before = value
    if table.rows:
        # The last stage is what the application gets.
        table.rows[-1].style = "bold"
    return table


@dataclass
class _Cell:
    """Results of one engine for one variant, sweep point and flow, over the repeats."""

    samples: Samples = field(default_factory=lambda: Samples(SUMMARY))
    fair: float | None = None
    bound: float | None = None
    invalid: int = 0
    chose_otherwise: bool = False

    @property
    def mean(self) -> float | None:
        """Mean goodput in bit/s, `None` without points."""
        return self.samples.folded(GOODPUT)

    def add(self, outcome: Outcome, flow: FlowOutcome) -> None:
        self.invalid += outcome.valid is False
        self.chose_otherwise |= chose_otherwise(outcome)
        self.samples.add(flow)

    def texts(self) -> dict[str, str]:
        """The texts by column; a column without a value is missing or empty."""
        limits = {"Limit": rate(self.fair), "Fair share": rate(self.fair), "Bound": rate(self.bound)}
        goodput = self.samples.spread(GOODPUT)
        if goodput is None:
            return limits
        half = (goodput.high - goodput.low) / 2
        spread = percent(half / goodput.mean if goodput.mean else 0.0) if self.samples.repeats > 1 else ""
        texts = {
            signal.title: quantity(value, signal.unit)
            for signal in SUMMARY
            if (value := self.samples.folded(signal)) is not None
        }
        texts[GOODPUT.title] += " invalid" if self.invalid else ""
        return {**texts, "Spread": spread, **limits}


_Cells = dict[tuple[str, int, str, str], _Cell]
"""Cells by variant, sweep point, flow and engine."""


def summary(store: Store, record: RunRecord, out: Console) -> None:
    """Print goodput, loss, delay and limits per variant and swept value; a long sweep is thinned out."""
    plan = record.plan
    shown, wanted = _shown(plan)
    # The headlines need all points of a run, the table only some: a short run is read once for both.
    short = record.points_total <= _MOST_READ
    points = list(store.read_outcomes(record, None if short else _ranges(sorted(wanted))))
    remarks = Remarks()
    cells, kinds = _cells(record, ((wanted[at], one) for at, one in points if at in wanted), remarks)
    flows = [name for name, kind in kinds.items() if kind not in above_limit.GENERATORS] or list(kinds)
    table, left_out = _summary_table(record, cells, flows[:MOST_FLOWS], _width(out))
    out.print(Text(record.name, style="bold"))
    for line in _headlines(record, (outcome for _, outcome in points)) if short else ():
        out.print(line, markup=False, soft_wrap=True)
    out.print(table)
    notes = _thinned(record, shown, len(flows))
    notes += _columns_explained(record, cells, left_out)
    if any(cell.invalid for cell in cells.values()):
        notes.append("invalid: packets of the emulated network were later than the limit; `--slow` helps")
    if len(_counting(plan)) > 1 and "simulate" in plan.engines:
        notes.append(
            f"vs simulate: difference in goodput from `simulate`; `!` marks more than {percent(FAR)}"
        )
    got = _got(cells, kinds)
    notes += above_limit.notes(got)
    notes += remarks.lines()
    for note in notes:
        out.print(note, markup=False, soft_wrap=True)


def _counting(plan: Plan) -> list[str]:
    """The engines that have rows of their own: all but `limit`."""
    return [name for name in plan.engines if name != "limit"]


def _cells(
    record: RunRecord, points: Iterable[tuple[tuple[str, int], Outcome]], remarks: Remarks
) -> tuple[_Cells, dict[str, str]]:
    """The cells of points with their variants and sweep points, and the kinds of flows."""
    engines = _counting(record.plan)
    cells: _Cells = {}
    kinds: dict[str, str] = {}
    for place, outcome in points:
        remarks.add(outcome)
        for name, _, flow in receivers.rows(outcome):
            kinds[name] = flow.kind
            # The limit is a column in the rows of all other engines.
            for engine in engines if outcome.engine == "limit" and engines else [outcome.engine]:
                cell = cells.setdefault((*place, name, engine), _Cell())
                if outcome.engine == "limit":
                    cell.fair, cell.bound = flow.goodput_bit_per_s, above_limit.bound(flow)
                else:
                    cell.add(outcome, flow)
    return cells, kinds


def _headlines(record: RunRecord, outcomes: Iterable[Outcome]) -> list[str]:
    """A line for each variant."""
    from engpass.results.aggregate import tabulate
    from engpass.views.headline import headlines

    table = tabulate(record, outcomes)
    found = headlines(table)
    lines = [f"{variant}: {text}" if len(table.variants) > 1 else text for variant, text in found]
    if more := len(table.variants) - len(found):
        lines.append(f"{count(more, 'more variant')}: see the table")
    return lines


def _columns_explained(record: RunRecord, cells: _Cells, left_out: Sequence[str]) -> list[str]:
    """Notes on the columns of the summary, and on omitted columns."""
    notes = []
    if left_out:
        notes.append(f"no room for {listed(left_out)}: `engpass export {record.id}` has all columns")
    shown = {
        signal for cell in cells.values() for signal in SUMMARY if cell.samples.folded(signal) is not None
    }
    if DELAY_P99 in shown:
        notes.append(
            "delay: one way, of datagrams or TCP segments, mean of the repeats; `show --delays` has more"
        )
    if LONGEST_GAP in shown:
        notes.append("longest gap: the longest time without a received packet, over all repeats")
    if _has_two_limits(cells.values()):
        notes.append(
            "fair share: max-min fair among the flows; bound: the most that the flow can get in the whole run"
        )
    repeated = any(cell.samples.repeats > 1 for cell in cells.values())
    if repeated and "Spread" not in left_out:
        notes.append("spread: ±(max - min)/2, in per cent of the mean")
    return notes


def _got(cells: _Cells, kinds: dict[str, str]) -> list[above_limit.Got]:
    """The goodputs of the flows that have a bound."""
    return [
        above_limit.Got(
            (variant, index), engine, flow, kinds[flow], cell.mean, cell.bound, cell.chose_otherwise
        )
        for (variant, index, flow, engine), cell in cells.items()
        if cell.mean is not None and cell.bound is not None
    ]


def _shown(plan: Plan) -> tuple[list[int], dict[int, tuple[str, int]]]:
    """Indices of the swept values to show (evenly spaced, and the last), and positions of their points."""
    count = plan.sweep_points
    shown = sorted({*range(0, count, math.ceil(count / _MOST)), count - 1})
    # Only shown points are read, so the summary of a million points is fast.
    wanted = {
        position: (variant, index)
        for engine in plan.engines
        for variant in plan.variants
        for index in shown
        for position in plan.positions(engine, variant, index)
    }
    return shown, wanted


def _thinned(record: RunRecord, shown: list[int], flows: int) -> list[str]:
    """A note on omitted swept values and flows, and where to find them."""
    parts = [
        f"{some:,} of {count:,} {what}"
        for some, count, what in (
            (len(shown), record.plan.sweep_points, "swept values"),
            (min(flows, MOST_FLOWS), flows, "flows"),
        )
        if some < count
    ]
    return [f"{' and '.join(parts)} are shown; `engpass export {record.id}` has all"] if parts else []


_Times = dict[tuple[str, int, str, str], Samples]
"""Samples of a family of times by variant, sweep point, flow and engine."""


def delays(store: Store, record: RunRecord, out: Console) -> None:
    """Print a table for each family of times, such as delays and round trips."""
    shown, wanted = _shown(record.plan)
    found: dict[str, _Times] = {family: {} for family in FAMILIES}
    for position, outcome in store.read_outcomes(record, _ranges(sorted(wanted))):
        for name, _, flow in receivers.rows(outcome):
            key = (*wanted[position], name, outcome.engine)
            for family, signals in FAMILIES.items():
                if any(at(flow, signal.path) is not None for signal in signals):
                    found[family].setdefault(key, Samples(signals)).add(flow)
    if not any(found.values()):
        out.print(
            "no point has delays: `simulate` reports them, and so does `measure` for requests", markup=False
        )
        return
    flows = list(dict.fromkeys(key[2] for rows in found.values() for key in rows))
    for family, rows in found.items():
        if rows:
            out.print(_times_table(record, family, rows, flows[:MOST_FLOWS]))
    notes = _thinned(record, shown, len(flows))
    notes.append(
        "percentiles over all datagrams, segments or requests: mean of the repeats; min, max: of all"
    )
    for note in notes:
        out.print(note, markup=False, soft_wrap=True)


def _times_table(record: RunRecord, family: str, rows: _Times, flows: Sequence[str]) -> Table:
    plan, drawn, signals = record.plan, frozenset(flows), FAMILIES[family]
    engines = len({key[3] for key in rows}) > 1
    heads = [signal.family[1] for signal in signals if signal.family is not None]
    names = ["Variant", *(axis.path for axis in plan.axes), "Flow", *(["Engine"] if engines else [])]
    table = grid(*names, *heads, title=f"{record.name}: {family.lower()}")
    for variant in plan.variants:
        for (name, index, flow, engine), samples in rows.items():
            if name == variant and flow in drawn:
                values = [value.text for value in plan.values(index)]
                folded = (duration(samples.folded(signal)) for signal in signals)
                table.add_row(*plain(variant, *values, flow, *([engine] if engines else []), *folded))
        table.add_section()
    return table


def _ranges(positions: Sequence[int]) -> list[range]:
    """Merge ascending positions into ranges, so that one query reads neighbours."""
    merged: list[range] = []
    for position in positions:
        if merged and merged[-1].stop == position:
            merged[-1] = range(merged[-1].start, position + 1)
        else:
            merged.append(range(position, position + 1))
    return merged


def _width(out: Console) -> int:
    return out.width if out.is_terminal else _WIDTH


def _summary_table(
    record: RunRecord, cells: _Cells, flows: Sequence[str], width: int
) -> tuple[Table, list[str]]:
    """The summary table, and the columns that do not fit into `width` characters."""
    plan = record.plan
    places = {flow: place for place, flow in enumerate(flows)}
    axes = [axis.path for axis in plan.axes]
    named = len(flows) > 1
    engines = list(plan.engines)
    told = len([name for name in engines if name != "limit"]) > 1
    compared = told and "simulate" in engines
    columns = ["Variant", *axes, *(["Flow"] if named else []), *(["Engine"] if told else [])]
    other = ["vs simulate"] if compared else []
    spread = ["Spread"] if any(cell.samples.repeats > 1 for cell in cells.values()) else []
    limits = ["Fair share", "Bound"] if _has_two_limits(cells.values()) else ["Limit"]
    known = [one for one in SUMMARY if any(cell.samples.folded(one) is not None for cell in cells.values())]
    first, others = ["Goodput", *spread], [one.title for one in known if one is not GOODPUT]
    figures = [*first, *others, *limits, *other]
    chosen = sorted(
        (key for key in cells if key[2] in places),
        key=lambda key: (plan.variants.index(key[0]), key[1], places[key[2]], engines.index(key[3])),
    )
    rows = []
    for key in chosen:
        values = [value.text for value in plan.values(key[1])]
        names = [key[0], *values, *([key[2]] if named else []), *([key[3]] if told else [])]
        texts = cells[key].texts() | ({"vs simulate": _apart(cells, key)} if compared else {})
        rows.append([*names, *(texts.get(column, "") for column in figures)])
    heads = [*columns, *figures]
    left_out = _too_wide(heads, rows, width)
    kept = [place for place, head in enumerate(heads) if head not in left_out]
    table = grid(*(heads[place] for place in kept))
    for _, group in groupby(rows, key=lambda row: row[0]):
        for row in group:
            table.add_row(*plain(*(row[place] for place in kept)))
        table.add_section()
    return table, left_out


def _has_two_limits(cells: Iterable[_Cell]) -> bool:
    """Whether the fair share and the bound of any flow differ."""
    return any(
        cell.fair is not None and cell.bound is not None and above_limit.differ(cell.fair, cell.bound)
        for cell in cells
    )


def _too_wide(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The columns to omit, in the order of `_GIVE_WAY`, until the others fit into the width."""
    from rich.cells import cell_len

    # Each column adds a border and a blank on both sides.
    widths = {
        head: 3 + max(map(cell_len, (head, *column))) for head, *column in zip(heads, *rows, strict=True)
    }
    left_out: list[str] = []
    for head in _GIVE_WAY:
        if sum(widths.values()) < width:
            break
        if widths.pop(head, None) is not None:
            left_out.append(head)
    return left_out


def _apart(cells: _Cells, key: tuple[str, int, str, str]) -> str:
    """The difference of an engine's goodput from that of `simulate`; empty unless both have one."""
    variant, index, flow, engine = key
    both = {name: cells.get((variant, index, flow, name)) for name in ("simulate", engine)}
    means = {name: cell.mean for name, cell in both.items() if cell is not None and cell.mean is not None}
    if engine == "simulate" or len(means) < 2:
        return ""
    bounds = (cell.bound for cell in both.values() if cell is not None)
    bound = next((one for one in bounds if one is not None), None)
    if bound is not None:
        means["limit"] = bound
    other = next(one for one in apart(means) if one.engine == engine)
    return ("" if other.share is None else f"{other.share * 100:+.1f} %") + (" !" if other.far else "")
