"""The answer in a line for each variant: what each flow gets, what it loses, and what holds it back."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engpass import formatting
from engpass.results.above_limit import AT, differ
from engpass.results.engine_difference import apart
from engpass.results.samples import DELAY_P99, LONGEST_GAP, LOSS, TRANSFER_TIME
from engpass.show.blocks import Block, Items, Prose

if TYPE_CHECKING:
    from engpass.results.aggregate import Point, Table
    from engpass.types.signals import Signal

_BRIEF = 5e-3
"""Gaps in the reception up to this many seconds are not mentioned: a queue can cause them."""

_EACH = 3
"""Maximum number of flows that are named one by one."""

MOST = 12
"""Maximum number of variants with a headline."""


def view(table: Table) -> Block:
    """A sentence for each variant with points; a single variant needs no name."""
    lines = headlines(table)
    if len(table.variants) == 1 and lines:
        return Prose(lines[0][1])
    more = len(table.variants) - len(lines)
    return Items(lines, "variant", f"{formatting.count(more, 'more variant')}: see the table" if more else "")


def headlines(table: Table) -> list[tuple[str, str]]:
    """For each variant with points: its name and a sentence; names are in backticks."""
    lines = []
    for variant in table.variants[:MOST]:
        flows = {flow: _points(table, flow, variant) for flow in table.flows}
        known = {flow: points for flow, points in flows.items() if points}
        if len(known) <= _EACH:
            text = "; ".join(_flow(table, flow, points, variant) for flow, points in known.items())
        else:
            text = _many(table, known)
        if text:
            lines.append((variant, f"{text}."))
    return lines


def _points(table: Table, flow: str, variant: str) -> list[Point]:
    """The points of one engine: of the first that is not `limit`, if there is one."""
    points = table.of(flow, variant)
    engines = dict.fromkeys(point.engine for point in points)
    quoted = next((engine for engine in table.measured if engine in engines), next(iter(engines), ""))
    return [point for point in points if point.engine == quoted]


def _flow(table: Table, flow: str, points: Sequence[Point], variant: str) -> str:
    """A sentence on the goodput of one flow over the sweep."""
    best = max(points, key=lambda point: point.goodput.value)
    worst = min(points, key=lambda point: point.goodput.value)
    every = table.of(flow, variant)
    limit = next((point for point in every if point.engine == "limit" and point.at == best.at), None)
    if best.engine == "limit":
        return f"`{flow}` can get {_range(table, worst, best)}{_held(best)}"
    share = _share(best, limit, "" if worst is best else "there ")
    text = f"`{flow}` gets {_range(table, worst, best)}{share}{_others(every, best)}"
    time, slow = _greatest(points, TRANSFER_TIME) if _times(points) else (0.0, None)
    ends = ""
    if slow is not None:
        most = "up to " if points[1:] else ""
        ends = f"its transfer takes {most}{formatting.duration(time)}{_where(table, slow)}"
    return ", ".join(filter(None, (text, ends, *_harm(table, points))))


def _times(points: Sequence[Point]) -> list[float]:
    """The times of transfers that end, one for each of the flows; none if a flow does not end."""
    found = [time for point in points if (time := point.samples.folded(TRANSFER_TIME)) is not None]
    return found if len(found) == len(points) else []


def _many(table: Table, flows: dict[str, list[Point]]) -> str:
    """What many flows get, together and each; a multicast group counts by its receivers."""
    groups = [flow for flow, points in flows.items() if any(one.has_receivers for one in points)]
    theirs = {point.flow for group in groups for point in table.receivers(group)}
    number = len(flows.keys() - theirs)
    who = formatting.count(number, "flow")
    flows = {flow: points for flow, points in flows.items() if flow not in groups}
    if groups:
        who += f" to {formatting.count(len(flows), 'receiver')}"
    totals: dict[tuple[int, ...], float] = {}
    for points in flows.values():
        for point in points:
            totals[point.at] = totals.get(point.at, 0.0) + point.goodput.value
    top = max(totals, key=lambda at: totals[at])
    every = [point for points in flows.values() for point in points]
    there = [point for point in every if point.at == top]
    rates = [point.goodput.value for point in there]
    verb = "get" if number > 1 else "gets"
    if all(point.engine == "limit" for point in every):
        verb = "can get"
    most = "up to " if len(totals) > 1 else ""
    low, high = min(rates), max(rates)
    each = "equal shares"
    _, slow = _greatest(every, TRANSFER_TIME) if _times(every) else (0.0, None)
    if slow is not None:
        # Transfers that end have equal goodputs over the run: only their times differ, most at this point.
        times = _times([point for point in every if point.at == slow.at])
        each = (
            f"transfers take {formatting.duration(statistics.median(times))} (median)"
            f" to {formatting.duration(max(times))} (longest){_where(table, slow)}"
        )
    elif not math.isclose(low, high, rel_tol=AT):
        each = f"{formatting.both(low, high, 'bit/s')} each"
    total = f"{most}{formatting.rate(totals[top])} together{_where(table, there[0])}"
    return ", ".join(filter(None, (f"{who} {verb} {total}", each, *_harm(table, every))))


def _range(table: Table, worst: Point, best: Point) -> str:
    if worst is best:
        return formatting.rate(best.goodput.value)
    low = formatting.rate(worst.goodput.value)
    return f"{low}{_where(table, worst)} to {formatting.rate(best.goodput.value)}{_where(table, best)}"


def _share(best: Point, limit: Point | None, there: str) -> str:
    """The goodput against its limit, with the limit's bottleneck, or against its bound if that is lower."""
    if limit is None or not limit.goodput.value:
        return ""
    fair, bound = limit.goodput.value, limit.bound
    if bound and best.goodput.value > fair * (1 + AT) and differ(fair, bound):
        return f", {there}more than its fair share of {formatting.rate(fair)}"
    if bound and bound < fair and differ(fair, bound):
        # The fair share does not know that a flow has only a part of the run; its bound does.
        reached = formatting.percent(best.goodput.value / bound)
        return f", {there}{reached} of its bound of {formatting.rate(bound)}"
    return f", {there}{formatting.percent(best.goodput.value / fair)} of its limit{_held(limit)}"


def _held(limit: Point) -> str:
    return f" ({limit.bottleneck.title})" if limit.bottleneck is not None else ""


def _others(points: Sequence[Point], best: Point) -> str:
    """The goodputs of other engines at the same point, if they differ much."""
    there = {point.engine: point.goodput.value for point in points if point.at == best.at}
    far = [one for one in apart(there) if one.far and one.engine not in ("limit", best.engine)]
    said = [f"`{one.engine}` has {formatting.rate(one.value)}" for one in far]
    return f" ({' and '.join(said)})" if said else ""


def _harm(table: Table, points: Sequence[Point]) -> list[str]:
    """The greatest loss, delay and gap, as far as the engine gives them."""
    several = len({(point.at, point.flow) for point in points}) > 1
    most = "up to " if several else ""
    said = []
    loss, lossy = _greatest(points, LOSS)
    if lossy is not None:
        # A share below 0.01 % is already said as an upper bound.
        share = f"{most}{formatting.percent(loss)}".replace("up to <", "<")
        said.append(f"{share} lost{_where(table, lossy)}" if loss else "no loss")
    delay, slow = _greatest(points, DELAY_P99)
    if slow is not None:
        said.append(f"p99 delay {most}{formatting.duration(delay)}{_where(table, slow)}")
    gap, silent = _greatest(points, LONGEST_GAP)
    if silent is not None and gap > _BRIEF:
        said.append(f"nothing arrives for up to {formatting.duration(gap)}{_where(table, silent)}")
    return said


def _greatest(points: Sequence[Point], signal: Signal) -> tuple[float, Point | None]:
    """The greatest value of a signal, and its point; 0 and `None` without a value."""
    known = [(value, point) for point in points if (value := point.samples.folded(signal)) is not None]
    return max(known, key=lambda one: one[0], default=(0.0, None))


def _where(table: Table, point: Point) -> str:
    values = [axis.texts[at] for axis, at in zip(table.axes, point.at, strict=True)]
    return f" (at {', '.join(values)})" if values else ""
