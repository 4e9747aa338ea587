"""The page about a host, with the results of `engpass probe`."""

from typing import TYPE_CHECKING

import altair as alt

from engpass.formatting import byte_rate, size
from engpass.report import theme
from engpass.report.figures import base
from engpass.report.figures.base import Drawing
from engpass.report.sections import line_key
from engpass.show import blocks as show
from engpass.show.html import blocks_html
from engpass.show.markup import Swatch, chart_box, esc, swatches
from engpass.types.probe import CacheLevel, Point, Report, Roofline
from engpass.views import probe as views
from engpass.views.probe import KERNELS, data_caches

if TYPE_CHECKING:
    from engpass.probe import Probed

_MEMORY = "memory"
_TOGETHER = "memory-together"
_PATHS = "paths"
_ROOFLINE = "roofline"

_PATHS_TITLE = "Upper limit of each data path"
_ROOFLINE_TITLE = "Roofline of the data paths, from memory"

_UNSURE = "predictions of the copy model from unsteady figures, so not upper bounds"

_FROM = (("from memory", "s1"), ("from the last-level cache", "s2"))


def figures(made: "Probed") -> dict[str, Drawing]:
    """The figures by name."""
    found: dict[str, Drawing] = {}
    points = made.data.memory.measured or []
    if points:
        found[_MEMORY] = _memory(made.data, 1)
    if _sweeps(points, all_cpus := _most_threads(points)):
        found[_TOGETHER] = _memory(made.data, all_cpus)
    if made.data.rooflines:
        found[_PATHS] = _paths(made.data)
        found[_ROOFLINE] = _roofline(made.data)
    return found


def _most_threads(points: list[Point]) -> int:
    return max((point.threads for point in points), default=1)


def _sweeps(points: list[Point], threads: int) -> bool:
    """Whether arrays of several sizes were measured with this number of threads, which is above one."""
    return threads > 1 and len({point.bytes for point in points if point.threads == threads}) > 1


def sections(made: "Probed") -> list[tuple[str, str, str]]:
    """Key, title and body of the sections; the page omits sections with an empty body."""
    data = made.data
    return [
        ("memory", "Memory", _memory_section(data)),
        ("paths", "Data paths", _paths_section(data)),
        ("model", "Model and sockets", blocks_html(_model_section(data))),
        ("rest", "Other results", blocks_html([views.rest(data), views.packets(data)])),
        ("host", "Host", blocks_html([views.host(data)])),
        ("table", "Table for a testbed", f"<pre tabindex=0><code>{esc(made.table)}</code></pre>"),
    ]


def _sharers(cache: CacheLevel, threads: int) -> int:
    """Threads that share a cache if each thread has its own CPU: at most the CPUs of the cache."""
    cpus = 0
    for part in cache.shared_by.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            cpus += int(last or first) - int(first) + 1
    return max(1, min(threads, cpus))


def _memory(data: Report, threads: int) -> Drawing:
    """Bandwidth over array size for a number of threads: best samples, with the caches as vertical lines."""
    names = dict(KERNELS)
    points = data.memory.measured or []
    points = [point for point in points if point.threads == threads and point.kernel in names]
    rows = [
        {
            "kernel": names[point.kernel],
            "kib": point.bytes / 1024,
            "rate": point.rate.best / 1e9,
            "label": f"{byte_rate(point.rate.best)} at {size(point.bytes)}, {_repeats(point)}",
            "sure": point.confirmed,
        }
        for point in points
    ]
    shown = _shown(points)
    ticks = sorted({point.bytes / 1024 for point in points})
    label = (
        "datum.value >= 1048576 ? datum.value / 1048576 + ' GiB' : "
        "datum.value >= 1024 ? datum.value / 1024 + ' MiB' : datum.value + ' KiB'"
    )
    x = (
        alt.X("kib:Q")
        .title("array size per thread (a copy uses two arrays)")
        .scale(type="log", base=2, nice=False)
        .axis(values=ticks, labelExpr=label, labelAngle=-40)
    )
    y = alt.Y("rate:Q").title("GB/s (each byte counted once)").scale(type="log", base=2).axis(format="~g")
    colour = (
        alt.Color("kernel:N")
        .scale(domain=shown, range=[theme.LIGHT[theme.colour(i)] for i in range(len(shown))])
        .legend(alt.Legend(title=None, symbolOpacity=1))
    )
    shape = (
        alt.Shape("kernel:N")
        .scale(domain=shown, range=[theme.shape(i) for i in range(len(shown))])
        .legend(alt.Legend(title=None, symbolOpacity=1))
    )
    own = alt.InlineData(values=rows)
    line = alt.Chart(own).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    marks = alt.Chart(own).mark_point(filled=True, size=46)
    marks = marks.encode(
        x=x,
        y=y,
        color=colour,
        shape=shape,
        opacity=alt.condition("datum.sure", alt.value(1), alt.value(0.5)),
        tooltip=[alt.Tooltip("kernel:N", title="what"), alt.Tooltip("label:N", title="rate")],
    )
    least, most = ticks[0], ticks[-1]
    parts = [(one.bytes / 1024 / _sharers(one, threads), f"L{one.level}") for one in data_caches(data)]
    caches = [{"kib": kib, "name": name} for kib, name in parts if least <= kib <= most]
    there = alt.InlineData(values=caches)
    rule = alt.Chart(there).mark_rule(style="reference").encode(x="kib:Q")
    name = alt.Chart(there).mark_text(
        align="left", dx=4, dy=-6, baseline="bottom", color=theme.LIGHT["muted"]
    )
    layers = [rule, name.encode(x="kib:Q", y=alt.value(0), text="name:N"), line, marks]
    heading = alt.TitleParams(_memory_title(threads), offset=22)
    return alt.layer(*layers).properties(width=base.WIDTH, height=base.HEIGHT, title=heading)


def _memory_title(threads: int) -> str:
    who = "one thread" if threads == 1 else f"{threads} threads together"
    return f"Memory over the working set, {who}"


def _shown(points: list[Point]) -> list[str]:
    """The labels of the `KERNELS` that were measured."""
    there = {point.kernel for point in points}
    return [name for kernel, name in KERNELS if kernel in there]


def _repeats(point: Point) -> str:
    return f"confirmed in {point.visits} measurements" if point.confirmed else "not confirmed"


def _paths(data: Report) -> Drawing:
    """The upper bound of each data path, over the first known bus, else over memory alone."""
    roofline = data.rooflines[:2][-1]
    names = [name for name, _ in _FROM]
    bars = [
        (ceiling.path, name, rate)
        for ceiling in roofline.ceilings
        for name, rate in zip(names, (ceiling.from_memory, ceiling.from_cache), strict=True)
        if rate is not None
    ]
    rows = [
        {"path": path, "from": name, "rate": rate / 1e9, "label": byte_rate(rate)}
        for path, name, rate in bars
    ]
    order = list(dict.fromkeys(path for path, _, _ in bars))
    y = alt.Y("path:N").title(None).sort(order).axis(labelLimit=170)
    x = alt.X("rate:Q").title("limit in GB/s of payload").scale(zero=True).axis(tickCount=8)
    colour = (
        alt.Color("from:N")
        .scale(domain=names, range=[theme.LIGHT[colour] for _, colour in _FROM])
        .legend(alt.Legend(title=None))
    )
    tips = [alt.Tooltip(f"{field}:N", title=field) for field in ("path", "from")]
    tips.append(alt.Tooltip("label:N", title="limit"))
    layers: list[alt.Chart] = [
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(y=y, x=x, color=colour, yOffset=alt.YOffset("from:N").scale(domain=names), tooltip=tips)
    ]
    reached = _reached(data)
    if reached:
        there = alt.InlineData(values=reached)
        marks = alt.Chart(there).mark_point(
            shape=theme.shape(3), filled=True, size=110, opacity=1, color=theme.LIGHT["ink"]
        )
        layers.append(
            marks.encode(
                y=y,
                x=alt.X("rate:Q"),
                tooltip=[alt.Tooltip("path:N"), alt.Tooltip("label:N", title="measured with sockets")],
            )
        )
    heading = alt.TitleParams(_PATHS_TITLE, subtitle=[_over(roofline)])
    height = 30 * len(order)
    return alt.layer(*layers).properties(width=base.WIDTH, height=height, title=heading)


def _over(roofline: Roofline) -> str:
    """Text with the bus that the data paths use."""
    return "memory only" if roofline.device is None else f"over the bus of {roofline.device}"


def _roofline(data: Report) -> Drawing:
    """The upper bound of each data path from memory, over the rate of the I/O bus.

    Up to its knee a curve is bounded by the bus. Vertical lines are the known buses of devices.
    """
    points = [
        (ceiling.path, over.bus, ceiling.from_memory)
        for over in data.over_buses
        for ceiling in over.ceilings
        if over.bus is not None and ceiling.from_memory is not None
    ]
    own = [
        {
            "path": path,
            "bus": bus / 1e9,
            "rate": rate / 1e9,
            "label": f"{byte_rate(rate)} over a bus of {byte_rate(bus)}",
        }
        for path, bus, rate in points
    ]
    shown = list(dict.fromkeys(path for path, _, _ in points))
    slow, fast = (end(bus / 1e9 for _, bus, _ in points) for end in (min, max))
    x = (
        alt.X("bus:Q")
        .title("I/O bus in GB/s")
        .scale(type="log", base=2, nice=False, domain=[slow, fast])
        .axis(values=[0.25 * 2**step for step in range(10)], format="~g")
    )
    y = alt.Y("rate:Q").title("limit in GB/s of payload").scale(type="log", base=2).axis(format="~g")
    colour = (
        alt.Color("path:N")
        .scale(domain=shown, range=[theme.LIGHT[theme.colour(i)] for i in range(len(shown))])
        .legend(alt.Legend(title=None, symbolOpacity=1))
    )
    shape = (
        alt.Shape("path:N")
        .scale(domain=shown, range=[theme.shape(i) for i in range(len(shown))])
        .legend(alt.Legend(title=None, symbolOpacity=1))
    )
    values = alt.InlineData(values=own)
    line = alt.Chart(values).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    marks = alt.Chart(values).mark_point(filled=True, size=46, opacity=1)
    tips = [alt.Tooltip("path:N", title="path"), alt.Tooltip("label:N", title="limit")]
    marks = marks.encode(x=x, y=y, color=colour, shape=shape, tooltip=tips)
    least = min(rate / 1e9 for _, _, rate in points)
    buses = [{"bus": bus, "name": name, "foot": least} for bus, name in _buses(data) if slow <= bus <= fast]
    there = alt.InlineData(values=buses)
    rule = alt.Chart(there).mark_rule(style="reference").encode(x="bus:Q")
    # Names run along the lines, since two buses may be close to each other.
    name = alt.Chart(there).mark_text(
        angle=270, align="left", baseline="bottom", dx=6, dy=-3, color=theme.LIGHT["muted"]
    )
    name = name.encode(x="bus:Q", y="foot:Q", text="name:N")
    heading = alt.TitleParams(_ROOFLINE_TITLE)
    layers = [rule, name, line, marks]
    return alt.layer(*layers).properties(width=base.WIDTH, height=base.HEIGHT, title=heading)


def _buses(data: Report) -> list[tuple[float, str]]:
    """Rates in GB/s and labels of the buses of devices; devices with equal rates share a label."""
    found: dict[float, list[str]] = {}
    for device in data.devices:
        if device.link is not None:
            found.setdefault(device.link.payload_per_s / 1e9, []).append(device.name)
    more = {bus: f" and {len(names) - 1} more" if len(names) > 1 else "" for bus, names in found.items()}
    return [(bus, names[0] + more[bus]) for bus, names in sorted(found.items())]


def _reached(data: Report) -> list[dict[str, str | float]]:
    """The rates that loopback sockets reached, each with the data path that it is compared with."""
    paths = {"copy": "one-copy-pipelined", "sendfile": "sendfile", "zerocopy": "msg-zerocopy"}
    return [
        {
            "path": paths[one.sending],
            "rate": one.rate.median / 1e9,
            "label": byte_rate(one.rate.median),
        }
        for one in data.sockets.measured or []
        if one.receiving == "copy"
    ]


def _memory_section(data: Report) -> str:
    points = data.memory.measured
    if points is None:
        return f"<p>Not measured: {esc(data.memory.not_measured)}.</p>"

    def key(threads: int) -> str:
        return line_key(_shown([point for point in points if point.threads == threads]))

    says = (
        "One thread, the best of all samples without interruptions of its CPU; vertical lines are the "
        "caches. Larger arrays are in memory. A mark is pale if no second measurement "
        "was within 3 % of the best: the real rate may be higher. Both axes are logarithmic."
    )
    drawn = chart_box(_MEMORY, says, key(1), _memory_title(1))
    if _sweeps(points, most := _most_threads(points)):
        says = f"{most} threads together, each with its own CPU and arrays; the best of all samples. "
        says += "The line of a shared cache is at the part of one thread."
        drawn += chart_box(_TOGETHER, says, key(most), _memory_title(most))
    return drawn + blocks_html([views.figures(data), views.points(data)])


def _paths_section(data: Report) -> str:
    if not data.rooflines:
        return ""
    key = swatches([Swatch(colour, name) for name, colour in _FROM])
    says = (
        f"Bars are {'upper bounds of the copy model' if data.steady else _UNSURE}; "
        "diamonds are rates of TCP over loopback (without a bus) whose receiver copies; with "
        "sendfile one end copies, otherwise both. The encryption rate of this host is not measured."
    )
    drawn = chart_box(_PATHS, says, key, f"{_PATHS_TITLE}, {_over(data.rooflines[:2][-1])}")
    paths = [ceiling.path for ceiling in data.over_buses[0].ceilings]
    key = line_key(paths)
    says = (
        "Up to its knee, the bus limits a path; then memory or the CPU's copies limit it. One copy without "
        "overlap with DMA never reaches either limit."
    )
    if _buses(data):
        says += " Vertical lines are the buses of devices that report them."
    return drawn + chart_box(_ROOFLINE, says, key, _ROOFLINE_TITLE)


def _model_section(data: Report) -> list[show.Block]:
    spread = (
        "Rates in the first table are of the best round, in the other one of the median round. "
        "A difference is the median over neighbouring rounds, with its 95 % confidence interval in "
        "parentheses; if the interval crosses the limit of the rule, the verdict is undecided."
    )
    return [*views.verdicts(data), *([show.Prose(spread)] if data.verdicts else []), views.streams(data)]
