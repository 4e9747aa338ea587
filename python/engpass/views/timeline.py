"""The timeline of one run: windows, bytes in flight, rate, loss, loads, queues and events on one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from engpass.show.blocks import Curve, Marks, OverTime, Panel
from engpass.timeline import busiest, loads, losses, thinned
from engpass.types.outcome import FlowLine, Timeline

_INTERVALS = 60
"""About as many intervals have a rate, a loss and a load of their own."""

_NO_FLOW = FlowLine(time_s=[], delivered_bytes=[])


def view(timeline: Timeline, flow: str, place: str = "") -> OverTime:
    """The curves and events of one flow, and of all queues and engines in the timeline.

    `place` has the swept values in words.
    """
    one = timeline.flows.get(flow, _NO_FLOW)
    windows = _windows(one)
    near = _near(windows)
    panels = [Panel(["window"], "B", near)] if near else []
    panels += [*_bars(one), *_loads(timeline)]
    panels += [
        Panel(
            [_arrow(port), "queue"],
            "B" if queue.unit == "bytes" else queue.unit,
            [Curve(f"queue {_arrow(port)}", queue.time_s, queue.length, colour="idle1")],
            queue.capacity,
        )
        for port, queue in timeline.queues.items()
        if any(queue.length) or queue.drops
    ]
    notes = []
    if one.truncated or any(queue.truncated for queue in timeline.queues.values()):
        notes.append("Only the first of many events are shown.")
    if len(near) < len(windows):
        notes.append("The receive window is not shown, because it is never the limit.")
    return OverTime(
        "timeline",
        f"Timeline of {flow}",
        ", ".join(filter(None, (place, "one repeat"))),
        timeline.duration_s,
        panels,
        list(_marks(timeline, one)),
        _caption(timeline, [panel.title[-1] for panel in panels]),
        notes,
    )


def _windows(one: FlowLine) -> list[Curve]:
    """The windows and the bytes in flight of a TCP flow, without curves that stay zero."""
    if one.tcp is None:
        return []
    curves = [
        Curve("congestion window", one.time_s, one.tcp.congestion_window_bytes, colour="s1"),
        Curve("receive window", one.time_s, one.tcp.receive_window_bytes, colour="s3"),
        Curve("in flight", one.time_s, one.tcp.flight_bytes, colour="s2"),
    ]
    return [curve for curve in curves if any(curve.values)]


def _near(windows: Sequence[Curve]) -> Sequence[Curve]:
    """The curves to draw; a receive window far above the others is omitted, since it would flatten them."""
    others = [curve for curve in windows if curve.name != "receive window"]
    most = max((value for curve in others for value in curve.values), default=0)
    receive = [value for curve in windows if curve not in others for value in curve.values if value]
    return others if most > 0 and min(receive, default=0) > 2 * most else windows


def _bars(one: FlowLine) -> Iterator[Panel]:
    """The received rate, and the loss as the receiver sees it, in intervals."""
    samples = list(zip(one.time_s, one.delivered_bytes, strict=True))
    # Between two samples only a few datagrams arrive, or none.
    rates = [
        (begin, end, 8 * (after - before) / (end - begin))
        for (begin, before), (end, after) in pairwise(thinned(samples, _INTERVALS))
        if end > begin
    ]
    if rates:
        yield Panel(["goodput"], "bit/s", [_bar("delivered", rates, "delivered1")])
    found = losses(one, _INTERVALS)
    if any(share for _, _, share in found):
        yield Panel(["loss"], "", [_bar("loss", found, "bad")])


def _loads(timeline: Timeline) -> list[Panel]:
    return [
        Panel([*name.split(": "), "load"], "", [_bar(f"load {name}", loads(engine, _INTERVALS), "other1")], 1)
        for name, engine in busiest(timeline)
    ]


def _bar(name: str, parts: Sequence[tuple[float, float, float]], colour: str) -> Curve:
    begins, ends, values = ([part[place] for part in parts] for place in range(3))
    return Curve(name, begins, values, ends, colour)


def _marks(timeline: Timeline, one: FlowLine) -> Iterator[Marks]:
    """Outages and memberships, then retransmissions, timeouts and losses."""
    for prefix, spans in (
        ("link down", timeline.outages),
        ("tunnel down", timeline.tunnels_down),
        ("member", timeline.memberships),
    ):
        for name, times in spans.items():
            yield Marks(f"{prefix}: {name}", "mark", spans_s=times)
    kinds: list[tuple[str, str, Sequence[float]]] = []
    if one.tcp is not None:
        kinds = [("retransmissions", "s2", one.tcp.retransmissions), ("timeouts", "s4", one.tcp.timeouts)]
    kinds += [(f"lost: {_arrow(port)}", "bad", queue.drops) for port, queue in timeline.queues.items()]
    for name, colour, instants in kinds:
        if instants:
            yield Marks(name, colour, instants)


def _caption(timeline: Timeline, shown: Sequence[str]) -> str:
    first = "Windows and data in flight, then the" if "window" in shown else "The"
    loss = ", the loss as the receiver sees it" if "loss" in shown else ""
    busy = (
        ", the share of the time in which each CPU and forwarding engine is busy" if "load" in shown else ""
    )
    down = "links or tunnels were down, and when " if timeline.outages or timeline.tunnels_down else ""
    down += "receivers were members, and when " if timeline.memberships else ""
    return (
        f"{first} received rate{loss}{busy}, the queues on the path, and below the times when {down}packets "
        "were lost or retransmitted."
    )


def _arrow(port: str) -> str:
    return port.replace("->", "\N{RIGHTWARDS ARROW}")
