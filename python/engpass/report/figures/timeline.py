"""The timeline of one run: windows, bytes in flight, goodput, loads, queues and events on one time axis."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import altair as alt

from engpass.report import theme
from engpass.report.figures import base
from engpass.report.figures.base import Block
from engpass.results.aggregate import Row
from engpass.timeline import busiest, loads, losses
from engpass.types.outcome import EngineLine, FlowLine, QueueLine, TcpLine, Timeline
from engpass.units import Unit, unit_for

_NO_TCP = TcpLine(
    congestion_window_bytes=[], receive_window_bytes=[], flight_bytes=[], retransmissions=[], timeouts=[]
)
_NO_FLOW = FlowLine(time_s=[], delivered_bytes=[])

_BINS = 1_500
"""Time bins; events of one kind in the same bin are drawn as one mark."""

_INTERVALS = 60
"""About as many intervals have a rate and a loss of their own."""

_EXTENT = 52
"""Pixels for the y axis of every panel; equal widths align the time axes."""


@dataclass(frozen=True)
class _Level:
    """A curve of the first panel: a window or the bytes in flight, over time."""

    name: str
    colour: str
    bytes: list[int]


def draw(timeline: Timeline, flow: str, title: str, subtitle: str) -> alt.VConcatChart:
    """The panels of one flow and of the queues in the timeline."""
    end = timeline.duration_s
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
    """The time axis below all panels."""
    rows: list[Row] = [{"t": 0}]
    return _panel([alt.Chart().mark_point(opacity=0).encode(x=time)], rows, 1)


def key_of(timeline: Timeline, flow: str) -> list[Block]:
    """The legend of the first panel."""
    one = timeline.flows.get(flow, _NO_FLOW)
    return [Block(level.colour, level.name) for level in _levels(one)]


def says(timeline: Timeline, flow: str) -> str:
    """The caption: the meaning of the panels."""
    one = timeline.flows.get(flow, _NO_FLOW)
    cut = one.truncated or any(queue.truncated for queue in timeline.queues.values())
    more = " Only the first of many events are shown." if cut else ""
    levels = _levels(one)
    windows = "Windows and data in flight, then " if levels else ""
    if levels and len(levels) < len(_all_levels(one)):
        more += " The receive window is not shown, because it is never the limit."
    first = "the received rate" if windows else "The received rate"
    if any(share for _, _, share in losses(one, _INTERVALS)):
        first += ", the loss as the receiver sees it"
    down = "links or tunnels were down, and when " if timeline.outages or timeline.tunnels_down else ""
    down += "receivers were members, and when " if timeline.memberships else ""
    below = f"below the times when {down}packets were lost or retransmitted"
    if busiest(timeline):
        first += ", the share of the time in which each CPU and forwarding engine is busy"
    return f"{windows}{first}, the queues on the path, and {below}.{more}"


def _panels(timeline: Timeline, flow: str, time: alt.X, unit: Unit) -> Iterator[alt.LayerChart]:
    one = timeline.flows.get(flow, _NO_FLOW)
    yield from _windows(one, time, unit)
    yield from _delivered(one, time, unit)
    yield from _lost(one, time, unit)
    for name, engine in busiest(timeline):
        yield _load(name, engine, time, unit)
    for place, queue in timeline.queues.items():
        if any(queue.length) or queue.drops:
            yield _queue(place, queue, time, unit)


def _windows(one: FlowLine, time: alt.X, unit: Unit) -> Iterator[alt.LayerChart]:
    levels = _levels(one)
    if not levels:
        return
    size = unit_for("B", [max(value for level in levels for value in level.bytes)])
    rows: list[Row] = [
        {"t": unit.of(time), "value": size.of(value), "name": level.name}
        for level in levels
        for time, value in zip(one.time_s, level.bytes, strict=True)
    ]
    colour = (
        alt.Color("name:N")
        .scale(domain=[level.name for level in levels], range=[theme.LIGHT[level.colour] for level in levels])
        .legend(alt.Legend(title=None, orient="top", symbolType="stroke"))
    )
    y = alt.Y("value:Q").title(f"window in {size.name}").axis(minExtent=_EXTENT)
    line = alt.Chart().mark_line(strokeWidth=1.5, interpolate="step-after", clip=True)
    yield _panel([line.encode(x=time, y=y, color=colour)], rows, 150)


def _all_levels(one: FlowLine) -> list[_Level]:
    """The windows and the bytes in flight, without curves that stay zero."""
    tcp = one.tcp or _NO_TCP
    found = [
        _Level("congestion window", "s1", tcp.congestion_window_bytes),
        _Level("receive window", "s3", tcp.receive_window_bytes),
        _Level("in flight", "s2", tcp.flight_bytes),
    ]
    return [level for level in found if any(level.bytes)]


def _levels(one: FlowLine) -> list[_Level]:
    """The curves to draw; a receive window far above the others is omitted, since it would flatten them."""
    found = _all_levels(one)
    receive = one.tcp.receive_window_bytes if one.tcp else []
    others = [level for level in found if level.bytes is not receive]
    most = max((value for level in others for value in level.bytes), default=0)
    far = most > 0 and min((value for value in receive if value), default=0) > 2 * most
    return others if far else found


def _delivered(one: FlowLine, time: alt.X, unit: Unit) -> Iterator[alt.LayerChart]:
    samples = list(zip(one.time_s, one.delivered_bytes, strict=True))
    # Between two samples only a few datagrams arrive, or none.
    step = max(1, len(samples) // _INTERVALS)
    coarse = samples[::step]
    rates = [
        (begin, end, 8 * (after - before) / (end - begin))
        for (begin, before), (end, after) in pairwise(coarse)
        if end > begin
    ]
    if not rates:
        return
    rate = unit_for("bit/s", [value for _, _, value in rates])
    rows: list[Row] = [{"t": unit.of(b), "end": unit.of(e), "value": rate.of(v)} for b, e, v in rates]
    y = alt.Y("value:Q").title(f"goodput in {rate.name}").axis(minExtent=_EXTENT)
    bars = alt.Chart().mark_rect(color=theme.LIGHT["delivered1"], clip=True)
    yield _panel([bars.encode(x=time, x2="end:Q", y=y, y2=alt.datum(0))], rows, 90)


def _lost(one: FlowLine, time: alt.X, unit: Unit) -> Iterator[alt.LayerChart]:
    found = losses(one, _INTERVALS)
    if not any(share for _, _, share in found):
        return
    rows: list[Row] = [{"t": unit.of(b), "end": unit.of(e), "value": 100 * share} for b, e, share in found]
    y = alt.Y("value:Q").title("loss in %").axis(minExtent=_EXTENT)
    bars = alt.Chart().mark_rect(color=theme.LIGHT["bad"], clip=True)
    yield _panel([bars.encode(x=time, x2="end:Q", y=y, y2=alt.datum(0))], rows, 60)


def _load(name: str, engine: EngineLine, time: alt.X, unit: Unit) -> alt.LayerChart:
    rows: list[Row] = [
        {"t": unit.of(begin), "end": unit.of(end), "value": 100 * share}
        for begin, end, share in loads(engine, _INTERVALS)
    ]
    y = alt.Y("value:Q").title([*name.split(": "), "load in %"]).scale(domain=[0, 100])
    y = y.axis(minExtent=_EXTENT, tickCount=3)
    bars = alt.Chart().mark_rect(color=theme.LIGHT["other1"], clip=True)
    return _panel([bars.encode(x=time, x2="end:Q", y=y, y2=alt.datum(0))], rows, 80)


def _queue(place: str, queue: QueueLine, time: alt.X, unit: Unit) -> alt.LayerChart:
    where = _place(place)
    rows: list[Row] = [{"t": unit.of(t), "value": v} for t, v in zip(queue.time_s, queue.length, strict=True)]
    y = alt.Y("value:Q").title([where, f"in {queue.unit}"]).axis(minExtent=_EXTENT)
    area = alt.Chart().mark_area(
        color=theme.LIGHT["idle2"],
        interpolate="step-after",
        clip=True,
        line={"color": theme.LIGHT["idle1"], "strokeWidth": 1},
    )
    layers = [area.encode(x=time, y=y)]
    if queue.capacity is not None:
        full = alt.Chart(alt.InlineData(values=[{"value": queue.capacity}]))
        layers.append(full.mark_rule(style="reference").encode(y=alt.Y("value:Q")))
    return _panel(layers, rows, 90)


def _events(timeline: Timeline, flow: str, time: alt.X, unit: Unit, end: float) -> Iterator[alt.LayerChart]:
    one = timeline.flows.get(flow, _NO_FLOW)
    kinds: list[tuple[str, Sequence[float], str]] = [
        ("retransmissions", (one.tcp or _NO_TCP).retransmissions, "s2"),
        ("timeouts", (one.tcp or _NO_TCP).timeouts, "s4"),
    ]
    for place, queue in timeline.queues.items():
        kinds.append((f"lost: {_place(place)}", queue.drops, "bad"))
    kinds = [kind for kind in kinds if kind[1]]
    spans = {f"down: {name}": times for name, times in (timeline.outages | timeline.tunnels_down).items()}
    spans |= {f"member: {receiver}": times for receiver, times in timeline.memberships.items()}
    if not kinds and not spans:
        return
    rows: list[Row] = [
        {"t": unit.of(t), "kind": name} for name, times, _ in kinds for t in _thinned(times, end)
    ]
    names = [*spans, *(name for name, _, _ in kinds)]
    colours = [*("mark" for _ in spans), *(colour for _, _, colour in kinds)]
    colour = alt.Color("kind:N").scale(domain=names, range=[theme.LIGHT[c] for c in colours]).legend(None)
    y = alt.Y("kind:N").title(None).sort(names).scale(domain=names).axis(minExtent=_EXTENT, labelLimit=110)
    ticks = alt.Chart().mark_tick(thickness=1.2, size=16, opacity=1, clip=True)
    layers = [ticks.encode(x=time, y=y, color=colour)]
    if spans:
        drawn: list[Row] = [
            {"t": unit.of(begin), "end": unit.of(until), "kind": name}
            for name, times in spans.items()
            for begin, until in times[:_BINS]
        ]
        bars = alt.Chart(alt.InlineData(values=drawn)).mark_bar(size=10, clip=True)
        layers.insert(0, bars.encode(x=time, x2="end:Q", y=y, color=colour))
    yield _panel(layers, rows, 24 * len(names))


def _thinned(times: Iterable[float], end: float) -> list[float]:
    """Keep one time per bin, so that marks do not cover each other."""
    bins = {min(_BINS, int(time / end * _BINS)): time for time in times} if end > 0 else {}
    return [bins[place] for place in sorted(bins)]


def _place(place: str) -> str:
    return place.replace("->", "\N{RIGHTWARDS ARROW}")


def _panel(layers: Sequence[alt.Chart], rows: list[Row], height: int) -> alt.LayerChart:
    data = alt.InlineData(values=rows)
    return alt.LayerChart(layer=list(layers), data=data, width=base.WIDTH, height=height)
