"""Texts about a run: the opening paragraph, and the bottlenecks of each variant."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from engpass import formatting
from engpass.results.aggregate import Point, Table
from engpass.results.record import Run
from engpass.types.outcome import Bottleneck

DONE_BY = {
    "limit": "computed in closed form",
    "simulate": "simulated",
    "emulate": "emulated in real time",
    "measure": "measured",
}
"""How each engine obtains its results."""


def summary(run: Run, table: Table) -> str:
    """What ran, in a sentence or two; names are in backticks."""
    text = _what_ran(run, table)
    if run.points_done < run.points_total:
        text += f" Only {run.points_done:,} of {run.points_total:,} points are done."
    return text


def _what_ran(run: Run, table: Table) -> str:
    if not table.points:
        return "No point of this run is done yet."
    parts = [formatting.count(len(table.variants), "variant")]
    parts += [
        f"{formatting.count(len(axis.texts), 'value')} of the {axis.label} ({axis.span})"
        for axis in table.axes
    ]
    if table.measured:
        parts.append(formatting.count(run.repeats, "repeat"))
    engines = [DONE_BY.get(engine, f"run with `{engine}`") for engine in table.engines]
    return f"{_join(parts)}, {' and '.join(engines)}."


def moment(text: str) -> str:
    """A time stamp (ISO 8601) to the minute, such as `1997-11-05 10:00 UTC`; other text is unchanged."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return text
    if time.tzinfo is None:
        return time.strftime("%Y-%m-%d %H:%M")
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


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


def _join(parts: Sequence[str]) -> str:
    return " \N{MULTIPLICATION SIGN} ".join(parts)
