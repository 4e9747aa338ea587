"""Texts about a run: the opening paragraph, and the bottlenecks of each variant."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from engpass import formatting
from engpass.report.aggregate import Point, Table
from engpass.report.record import Run
from engpass.results.above_limit import AT, differ
from engpass.results.engine_difference import apart
from engpass.results.frame import DELAY_P99, LONGEST_GAP, LOSS
from engpass.types.outcome import Bottleneck
from engpass.types.signals import Signal

DONE_BY = {
    "limit": "computed in closed form",
    "simulate": "simulated",
    "emulate": "emulated in real time",
    "measure": "measured",
}
"""How each engine obtains its results."""
_MOST_SENTENCES = 8
_BRIEF = 5e-3
"""Gaps in the reception up to this many seconds are not mentioned: a queue can cause them."""


def summary(run: Run, table: Table) -> str:
    """One paragraph about the run and its results; names are in backticks."""
    parts = [_what_ran(run, table)]
    if run.points_done < run.points_total:
        parts.append(f"Only {run.points_done} of {run.points_total} points are done.")
    all_results = (_result(table, flow, variant) for flow in table.flows for variant in table.variants)
    results = list(islice(filter(None, all_results), _MOST_SENTENCES + 1))
    parts.extend(results[:_MOST_SENTENCES])
    if len(results) > _MOST_SENTENCES:
        parts.append("The table below has all results.")
    return " ".join(parts)


def _what_ran(run: Run, table: Table) -> str:
    if not table.points:
        return "No point of this run is done yet."
    parts = [_count(len(table.variants), "variant")]
    parts += [f"{_count(len(axis.texts), 'value')} of the {axis.label} ({axis.span})" for axis in table.axes]
    if table.measured:
        parts.append(_count(run.repeats, "repeat"))
    engines = [DONE_BY.get(engine, f"run with `{engine}`") for engine in table.engines]
    return f"{_join(parts)}, {' and '.join(engines)}."


def _result(table: Table, flow: str, variant: str) -> str:
    mine = table.of(flow, variant)
    # The text quotes one engine; the table of engines has all of them.
    quoted = next((name for name in table.measured if any(p.engine == name for p in mine)), None)
    measured = [p for p in mine if p.engine == quoted]
    limits = {p.at: p for p in mine if p.engine == "limit"}
    if not mine:
        return ""
    best = max(measured or mine, key=lambda p: p.goodput.mean)
    who = f"In `{variant}`, `{flow}`" if len(table.variants) > 1 else f"`{flow}`"
    verb = "reaches" if measured else "is limited to"
    most = "up to " if table.axes else ""
    text = f"{who} {verb} {most}{formatting.rate(best.goodput.mean)}{_at(table, best)}"
    if not measured:
        return text + "."
    limit = limits.get(best.at)
    if limit and limit.goodput.mean:
        fair, bound = limit.goodput.mean, limit.bound
        if bound and best.goodput.mean > fair * (1 + AT) and differ(fair, bound):
            text += (
                f", more than its fair share and {formatting.percent(best.goodput.mean / bound)} of its bound"
            )
        else:
            text += f", {formatting.percent(best.goodput.mean / fair)} of its limit"
    text += _others(mine, best)
    more = (_loss(table, measured, best), _delay(table, measured), _gap(table, measured))
    return "; ".join(filter(None, (text, *more))) + "."


def _loss(table: Table, points: Sequence[Point], best: Point) -> str:
    """Text about the greatest loss; empty if the points have no loss figures."""
    loss, worst = _greatest(points, LOSS)
    if worst is None:
        return ""
    if loss == 0:
        return "no loss"
    if worst is best:
        return f"{formatting.percent(loss)} of the {_unit(best)} are lost"
    low = formatting.rate(worst.goodput.mean) if worst.goodput.mean else "zero"
    return f"the highest loss is {formatting.percent(loss)}{_at(table, worst)}, with a goodput of {low}"


def _delay(table: Table, points: Sequence[Point]) -> str:
    """Text about the longest delay; empty if the points have no delays."""
    seconds, slowest = _greatest(points, DELAY_P99)
    if slowest is None:
        return ""
    return f"the highest p99 delay is {formatting.duration(seconds)}{_at(table, slowest)}"


def _gap(table: Table, points: Sequence[Point]) -> str:
    """Text about the longest time without a reception; empty if it is short or the file has no events."""
    seconds, longest = _greatest(points, LONGEST_GAP)
    if longest is None or seconds <= _BRIEF:
        return ""
    return f"nothing arrives for up to {formatting.duration(seconds)}{_at(table, longest)}"


def _greatest(points: Sequence[Point], signal: Signal) -> tuple[float, Point | None]:
    """The greatest value of a signal, and its point; 0 and `None` without a value."""
    known = [(value, point) for point in points if (value := point.samples.folded(signal)) is not None]
    return max(known, key=lambda one: one[0], default=(0.0, None))


def _others(points: Sequence[Point], best: Point) -> str:
    """Text with the goodputs of other engines at the same point, if they differ much."""
    there = {p.engine: p.goodput.mean for p in points if p.at == best.at}
    far = [one for one in apart(there) if one.far and one.engine not in ("limit", best.engine)]
    said = [f"`{one.engine}` has {formatting.rate(one.value)}" for one in far]
    return f" ({' and '.join(said)})" if said else ""


def _unit(point: Point) -> str:
    return "packets" if point.kind == "tcp-stream" else "datagrams"


def moment(text: str) -> str:
    """A time stamp (ISO 8601) to the minute, such as `1997-11-05 10:00 UTC`; other text is unchanged."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    if time.tzinfo is None:
        return time.strftime("%Y-%m-%d %H:%M")
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _at(table: Table, point: Point) -> str:
    values = [axis.texts[at] for axis, at in zip(table.axes, point.at, strict=True)]
    return f" (at {', '.join(values)})" if values else ""


@dataclass(frozen=True)
class Stretch:
    """Neighbouring points of a sweep with the same bottleneck.

    `where` names the swept values, `goodput` is their range of goodputs, and `summary` is the engine's text
    at the last value, `end`.
    """

    points: int
    where: str
    end: str
    bottleneck: Bottleneck | None
    next: Bottleneck | None
    goodput: str
    summary: str


def bottlenecks(table: Table, flow: str, variant: str, engine: str = "limit") -> list[Stretch]:
    """The bottleneck over the sweep by one engine, in stretches along the first axis."""
    mine = table.of(flow, variant)
    points = [p for p in mine if p.engine == engine and (p.bottleneck or p.summary)]
    stretches: list[list[Point]] = []
    for point in sorted(points, key=lambda p: (p.at[1:], p.at[:1])):
        last = stretches[-1][-1] if stretches else None
        same = last is not None and (last.bottleneck, last.next, last.at[1:]) == (
            point.bottleneck,
            point.next,
            point.at[1:],
        )
        if same:
            stretches[-1].append(point)
        else:
            stretches.append([point])
    return [_stretch(table, points) for points in stretches]


def _stretch(table: Table, points: Sequence[Point]) -> Stretch:
    first, last = points[0], points[-1]
    where = ""
    if table.axes:
        ends = [table.axes[0].texts[point.at[0]] for point in (first, last)]
        where = ends[0] if first is last else f"{ends[0]} to {ends[1]}"
        rest = [
            f"{axis.label} {axis.texts[at]}" for axis, at in zip(table.axes[1:], first.at[1:], strict=True)
        ]
        where = ", ".join([f"{table.axes[0].label} {where}", *rest])
    rates = [point.goodput.mean for point in points]
    low, high = formatting.rate(min(rates)), formatting.rate(max(rates))
    return Stretch(
        points=len(points),
        where=where,
        end=table.axes[0].texts[last.at[0]] if table.axes else "",
        bottleneck=last.bottleneck,
        next=last.next,
        goodput=low if low == high else f"{low} to {high}",
        summary=last.summary or "",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _join(parts: Sequence[str]) -> str:
    return " \N{MULTIPLICATION SIGN} ".join(parts)
