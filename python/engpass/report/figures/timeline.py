"""The timeline of one run: windows, flight, goodput, queues and events over the same time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt

from engpass.report import theme
from engpass.report.figures import base
from engpass.report.figures.base import Block
from engpass.units import Unit, unit_for

_LEVELS = (
    ("congestion_window_bytes", "congestion window", "s1"),
    ("receive_window_bytes", "receive window", "s3"),
    ("flight_bytes", "in flight", "s2"),
)
_RECEIVE = "receive_window_bytes"

_BINS = 1_500
"""Parts of the time in which equal events are one mark."""

_EXTENT = 52
"""Pixels that every panel leaves for its axis, so that their times stand above each other."""

Timeline = Mapping[str, Any]


def draw(timeline: Timeline, flow: str, title: str, subtitle: str) -> alt.VConcatChart:
    """The panels about one flow and the queues on its way."""
    end = float(timeline["duration_s"])
    unit = unit_for("s", [end])
    time = alt.X("t:Q").title(None).scale(domain=[0, unit.of(end)], nice=False)
    bare = time.axis(labels=False, ticks=False, domain=False, tickCount=10)
    panels = list(_panels(timeline, flow, bare, unit))
    panels += _events(timeline, flow, bare, unit, end)
    panels.append(_clock(time.title(f"time in {unit.name}").axis(tickCount=10, grid=False)))
    heading = alt.TitleParams(title, subtitle=[subtitle])
    return alt.VConcatChart(
        vconcat=panels,
        spacing=12,
        title=heading,
        bounds="flush",
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(x="shared", color="independent")),
    )


def _clock(time: alt.X) -> alt.LayerChart:
    """The axis of time below all panels."""
    rows = [{"t": 0}]
    return _panel([alt.Chart().mark_point(opacity=0).encode(x=time)], rows, 1)


def key_of(timeline: Timeline, flow: str) -> list[Block]:
    """What the lines of the first panel stand for."""
    one = timeline["flows"].get(flow, {})
    return [Block(colour, name) for _, name, colour in _levels(one)]


def says(timeline: Timeline, flow: str) -> str:
    """What the panels show."""
    one = timeline["flows"].get(flow, {})
    cut = any(part.get("truncated") for part in (one, *timeline["queues"].values()))
    more = " Of many events only the first are kept." if cut else ""
    levels = _levels(one)
    windows = "What may be and what is under way, then " if levels else ""
    if levels and any(one.get(_RECEIVE, ())) and _RECEIVE not in [key for key, _, _ in levels]:
        more += " The receive window is never near and is left out."
    first = "what arrives" if windows else "What arrives"
    return f"{windows}{first}, the queues on the way, and below when something was lost or sent again.{more}"


def _panels(timeline: Timeline, flow: str, time: alt.X, unit: Unit) -> Iterator[alt.LayerChart]:
    one = timeline["flows"].get(flow, {})
    yield from _windows(one, time, unit)
    yield from _delivered(one, time, unit)
    for place, queue in timeline["queues"].items():
        if any(queue["length"]) or queue["drops"]:
            yield _queue(place, queue, time, unit)


def _windows(one: Mapping[str, Any], time: alt.X, unit: Unit) -> Iterator[alt.LayerChart]:
    levels = _levels(one)
    if not levels:
        return
    size = unit_for("B", [max(v or 0 for key, _, _ in levels for v in one[key])])
    rows = [
        {"t": unit.of(t), "value": size.of(v), "name": name}
        for key, name, _ in levels
        for t, v in zip(one["time_s"], one[key], strict=True)
        if v is not None
    ]
    colour = (
        alt.Color("name:N")
        .scale(domain=[name for _, name, _ in levels], range=[theme.LIGHT[c] for _, _, c in levels])
        .legend(alt.Legend(title=None, orient="top", symbolType="stroke"))
    )
    y = alt.Y("value:Q").title(f"window in {size.name}").axis(minExtent=_EXTENT)
    line = alt.Chart().mark_line(strokeWidth=1.5, interpolate="step-after", clip=True)
    yield _panel([line.encode(x=time, y=y, color=colour)], rows, 150)


def _levels(one: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """The windows that are drawn: not one that is far above all others, and hides what they do."""
    there = [level for level in _LEVELS if any(one.get(level[0], ()))]
    most = max((v or 0 for key, _, _ in there if key != _RECEIVE for v in one[key]), default=0)
    far = most > 0 and min((v for v in one.get(_RECEIVE, ()) if v), default=0) > 2 * most
    return [level for level in there if level[0] != _RECEIVE or not far]


def _delivered(one: Mapping[str, Any], time: alt.X, unit: Unit) -> Iterator[alt.LayerChart]:
    samples = list(zip(one.get("time_s", ()), one.get("delivered_bytes", ()), strict=True))
    # Over a sixtieth of the time each: between two samples arrive a few datagrams or none.
    step = max(1, len(samples) // 60)
    coarse = samples[::step]
    rates = [
        (begin, end, 8 * (after - before) / (end - begin))
        for (begin, before), (end, after) in pairwise(coarse)
        if end > begin
    ]
    if not rates:
        return
    rate = unit_for("bit/s", [value for _, _, value in rates])
    rows = [{"t": unit.of(b), "end": unit.of(e), "value": rate.of(v)} for b, e, v in rates]
    y = alt.Y("value:Q").title(f"goodput in {rate.name}").axis(minExtent=_EXTENT)
    bars = alt.Chart().mark_rect(color=theme.LIGHT["delivered1"], clip=True)
    yield _panel([bars.encode(x=time, x2="end:Q", y=y, y2=alt.datum(0))], rows, 90)


def _queue(place: str, queue: Mapping[str, Any], time: alt.X, unit: Unit) -> alt.LayerChart:
    where = _place(place)
    rows = [{"t": unit.of(t), "value": v} for t, v in zip(queue["time_s"], queue["length"], strict=True)]
    y = alt.Y("value:Q").title([where, f"in {queue['unit']}"]).axis(minExtent=_EXTENT)
    area = alt.Chart().mark_area(
        color=theme.LIGHT["idle2"],
        interpolate="step-after",
        clip=True,
        line={"color": theme.LIGHT["idle1"], "strokeWidth": 1},
    )
    layers = [area.encode(x=time, y=y)]
    if queue.get("capacity") is not None:
        full = alt.Chart(alt.InlineData(values=[{"value": queue["capacity"]}]))
        layers.append(full.mark_rule(style="reference").encode(y=alt.Y("value:Q")))
    return _panel(layers, rows, 90)


def _events(timeline: Timeline, flow: str, time: alt.X, unit: Unit, end: float) -> Iterator[alt.LayerChart]:
    one = timeline["flows"].get(flow, {})
    kinds: list[tuple[str, Sequence[float], str]] = [
        ("retransmissions", one.get("retransmissions", ()), "s2"),
        ("timeouts", one.get("timeouts", ()), "s4"),
    ]
    for place, queue in timeline["queues"].items():
        kinds.append((f"lost: {_place(place)}", queue["drops"], "bad"))
    kinds = [kind for kind in kinds if kind[1]]
    if not kinds:
        return
    rows = [{"t": unit.of(t), "kind": name} for name, times, _ in kinds for t in _thinned(times, end)]
    names = [name for name, _, _ in kinds]
    colour = alt.Color("kind:N").scale(domain=names, range=[theme.LIGHT[c] for _, _, c in kinds]).legend(None)
    y = alt.Y("kind:N").title(None).sort(names).axis(minExtent=_EXTENT, labelLimit=110)
    ticks = alt.Chart().mark_tick(thickness=1.2, size=16, opacity=1, clip=True)
    yield _panel([ticks.encode(x=time, y=y, color=colour)], rows, 24 * len(kinds))


def _thinned(times: Iterable[float], end: float) -> list[float]:
    """Times of which no two would be drawn at the same place."""
    bins = {min(_BINS, int(time / end * _BINS)): time for time in times} if end > 0 else {}
    return [bins[place] for place in sorted(bins)]


def _place(place: str) -> str:
    return place.replace("->", "\N{RIGHTWARDS ARROW}")


def _panel(layers: Sequence[alt.Chart], rows: list[dict[str, Any]], height: int) -> alt.LayerChart:
    data = alt.InlineData(values=rows)
    return alt.LayerChart(layer=list(layers), data=data, width=base.WIDTH, height=height)
