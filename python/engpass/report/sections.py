"""The sections of the page as HTML: text, tables and boxes for the figures.

Texts of testbeds and stores are escaped here.
"""

from collections.abc import Iterable, Mapping, Sequence

from engpass import formatting
from engpass.report import theme
from engpass.report.diagram import diagram
from engpass.report.figures import FIGURES, Figure
from engpass.report.figures.base import Block, Key
from engpass.report.summary_text import DONE_BY, Stretch, bottlenecks
from engpass.results import ledger
from engpass.results.above_limit import GENERATORS
from engpass.results.aggregate import Point, Table
from engpass.results.engine_difference import FAR
from engpass.results.frame import GOODPUT
from engpass.results.record import File, Run
from engpass.show.markup import esc, prose
from engpass.show.markup import table as html_table
from engpass.types.outcome import Bottleneck, Outcome
from engpass.types.plan import Drawing
from engpass.types.signals import Signal
from engpass.units import Unit, plain

MAX_TABLE = 160
MAX_STRETCHES = 40
MAX_LIMITED = 100
"""Approximate rows of the table of points; most stretches per list of bottlenecks; most flows with a list."""
MAX_FAR = 20
"""Points that a table of thinned points shows beside it, because they are farthest from their limit."""

Charts = Mapping[str, Mapping[str, object]]


def choices(table: Table, flows: Sequence[str]) -> str:
    """Menus to choose the flow, and one value of each axis beyond the second."""
    menus = []
    if len(flows) > 1:
        menus.append(f'<label>Flow <select id="flow">{_options(flows)}</select></label>')
    for index, choice in enumerate(table.choices):
        label = esc(choice.axis.label)
        menus.append(
            f'<label>{label} <select data-choice="choice{index}">{_options(choice.texts)}</select></label>'
        )
    return f'<div class="choices">{"".join(menus)}</div>' if menus else ""


def _options(texts: Iterable[str]) -> str:
    return "".join(f'<option value="{esc(text)}">{esc(text)}</option>' for text in texts)


def figure_box(name: str, table: Table, charts: Charts, whole: bool) -> str:
    """The box of a figure with heading, legend and caption; an empty text if no flow has the figure."""
    figure = next(figure for figure in FIGURES if figure.name == name)
    flow = next((flow for flow, drawn in charts.items() if name in drawn), None)
    if flow is None:
        return ""
    says = figure.says(table, flow)
    return (
        f'<figure{" class=whole" if whole else ""} id="figure-{name}"><h3>{esc(figure.title)}</h3>'
        f"{_figure_key(figure, table, flow)}"
        f'<div class="chart" data-chart="{name}" role="img" aria-label="{esc(figure.title)}. {esc(says)} '
        f'The table of points has the numbers."></div><figcaption>{esc(says)}</figcaption></figure>'
    )


def _figure_key(figure: Figure, table: Table, flow: str) -> str:
    if figure.blocks is None:
        return _key(figure.key(table), table)
    return block_key(figure.blocks(table, flow))


def block_key(blocks: Iterable[Block]) -> str:
    """A legend of coloured blocks."""
    items = "".join(f"<li>{_block(f'var(--{block.colour})')}{esc(block.text)}</li>" for block in blocks)
    return f'<ul class="key">{items}</ul>' if items else ""


def _block(colour: str) -> str:
    inner = f'<rect x="4" y="1" width="12" height="12" fill="{colour}"/>'
    return f'<svg width="20" height="14" aria-hidden="true">{inner}</svg>'


def _key(kind: Key, table: Table) -> str:
    """The legend of a figure: colours and markers of the series, dashes of the engines."""
    if kind == "none":
        return ""
    items = []
    if len(table.series) > 1:
        items += [(_swatch(kind, index), name) for index, name in enumerate(table.series)]
    if kind == "lines" and len(table.engines) > 1:
        for engine in table.engines:
            dash = ",".join(str(length) for length in theme.dash(engine))
            line = f'<path d="M1,7H33" stroke="var(--ink)" stroke-width="2" stroke-dasharray="{dash}"/>'
            items.append((f'<svg width="34" height="14" aria-hidden="true">{line}</svg>', engine))
    if not items:
        return ""
    return '<ul class="key">' + "".join(f"<li>{swatch}{esc(name)}</li>" for swatch, name in items) + "</ul>"


def chart_box(name: str, says: str, key: str = "", title: str = "") -> str:
    """The box of a chart that no `Figure` describes: heading, legend and caption."""
    heading = f"<h3>{esc(title)}</h3>" if title else ""
    label = f"{title}. {says}" if title else says
    return (
        f'<div class="figures"><figure class="whole" id="figure-{name}">{heading}{key}'
        f'<div class="chart" data-chart="{name}" role="img" aria-label="{esc(label)}"></div>'
        f"<figcaption>{esc(says)}</figcaption></figure></div>"
    )


def line_key(names: Iterable[str]) -> str:
    """A legend of lines with markers, in the order of the series colours and shapes."""
    items = "".join(f"<li>{_swatch('lines', index)}{esc(name)}</li>" for index, name in enumerate(names))
    return f'<ul class="key">{items}</ul>'


def _swatch(kind: Key, index: int) -> str:
    colour = f"var(--{theme.colour(index)})"
    inner = f'<path d="{theme.shape(index)}" transform="translate(13 7) scale(4.4)" fill="{colour}"/>'
    if kind == "lines":
        inner = f'<path d="M1,7H25" stroke="{colour}" stroke-width="2"/>{inner}'
    return f'<svg width="26" height="14" aria-hidden="true">{inner}</svg>'


def testbed_section(run: Run) -> str:
    """The diagram of the testbed in both layouts; the style sheet shows the one that fits the width."""
    return drawing(run.topology)


def drawing(topology: Drawing) -> str:
    """A topology in both layouts, in a box that scrolls."""
    if not topology.nodes:
        return ""
    drawings = diagram(topology) + diagram(topology, narrow=True)
    label = "Diagram of the testbed"
    return f'<div class="drawing" tabindex="0" role="region" aria-label="{label}">{drawings}</div>'


def points_section(table: Table, said: str, *, download: bool) -> str:
    """The aggregated points as a table, thinned out if long, and a button to download what is `said`."""
    if not table.points:
        return ""
    groups: dict[tuple[bool, int, int, tuple[int, ...]], list[Point]] = {}
    order = {name: index for index, name in enumerate(table.variants)}
    # Flows keep the order of the file; sorted by name, `f10` would follow `f1`.
    flows = {name: index for index, name in enumerate(dict.fromkeys(point.flow for point in table.points))}
    for point in table.points:
        key = (point.kind in GENERATORS, flows[point.flow], order[point.variant], point.at)
        groups.setdefault(key, []).append(point)
    keys = sorted(groups)
    places = sorted({key[3] for key in keys})
    step = max(1, -(-len(keys) // MAX_TABLE))
    kept = set(places[::step])
    shown = [key for key in keys if key[3] in kept][: 2 * MAX_TABLE]
    caption = "Mean of the repeats, with minimum and maximum"
    if len(shown) < len(keys):
        thinned = len(kept) < len(places)
        which = f"every {_ordinal(step)} swept value" if thinned else "only the first flows"
        caption += f"; {len(shown)} of {len(keys)} points, {which}"
    engine = ["Engine"] if len(table.measured) > 1 else []
    head = ["Flow", "Variant", *(esc(axis.label) for axis in table.axes), *engine]
    unit = f'<span class="unit">{esc(table.rate.name)}</span>'
    goodput = [f"{name} {unit}" for name in ("Goodput", "Min", "Max")]
    others = [
        f'{esc(signal.title)} <span class="unit">{esc(unit.name)}</span>'
        if signal.unit
        else esc(signal.title)
        for signal, unit in _other_signals(table)
    ]
    numbers = [*goodput, *others, "Repeats"] if table.measured else []
    limit = [f"{name} {unit}" for name in table.limits]
    rows = [row for key in shown for row in _point_rows(table, groups[key])]
    right = [*range(2, 2 + len(table.axes)), *range(len(head), len(head) + len(limit) + len(numbers))]
    grid = html_table(caption, [*head, *limit, *numbers], rows, numeric=right, kind="tall")
    if len(shown) < len(keys):
        far = sorted(groups.values(), key=_distance, reverse=True)[:MAX_FAR]
        far_rows = [row for points in far if _distance(points) > FAR for row in _point_rows(table, points)]
        caption = "Points whose goodput is farthest from the fair share"
        if far_rows:
            grid = html_table(caption, [*head, *limit, *numbers], far_rows, numeric=right, kind="tall") + grid
    above = "".join(f"<p>{prose(note)}.</p>" for note in table.above)
    button = '<button id="download" type="button" hidden>Download CSV</button> ' if download else ""
    return f'{above}{grid}<p class="meta">{button}<span class="muted">{prose(said)}</span></p>'


def _distance(points: Sequence[Point]) -> float:
    """The greatest difference of a goodput from its limit, as a share of the limit; 0 without a limit."""
    limits = [point.goodput.mean for point in points if point.engine == "limit"]
    if not limits or not limits[0]:
        return 0.0
    means = (point.goodput.mean for point in points if point.engine != "limit")
    return max((abs(mean / limits[0] - 1) for mean in means), default=0.0)


def _point_rows(table: Table, points: Sequence[Point]) -> list[list[str]]:
    """One row per engine other than `limit`, with the limit as a column; else one row of the limit alone."""
    limit = next((point for point in points if point.engine == "limit"), None)
    measured = [point for point in points if point.engine != "limit"]
    blank = '<span class="muted">&ndash;</span>'

    def rate(bit_per_s: float) -> str:
        return plain(bit_per_s / table.rate.factor)

    rows = []
    for point in measured or points[:1]:
        row = [esc(point.flow), esc(point.variant)]
        row += [esc(axis.texts[at]) for axis, at in zip(table.axes, point.at, strict=True)]
        if len(table.measured) > 1:
            row.append(esc(point.engine))
        if table.limits:
            fair, bound = (limit.goodput.mean, limit.bound) if limit else (None, None)
            row += [blank if one is None else rate(one) for one in (fair, bound)[: len(table.limits)]]
        if table.measured and point.engine == "limit":
            row += [blank] * (4 + len(_other_signals(table)))
        elif table.measured:
            row += [rate(value) for value in (point.goodput.mean, point.goodput.low, point.goodput.high)]
            if point.invalid is not None:
                row[-3] += ' <span class="badge bad">invalid</span>'
            row += [
                *(_signal_cell(point, signal, unit) or blank for signal, unit in _other_signals(table)),
                str(point.repeats),
            ]
        rows.append(row)
    return rows


def _signal_cell(point: Point, signal: Signal, unit: Unit) -> str:
    """The folded value of a signal as text; empty without a value."""
    found = point.samples.folded(signal)
    if found is None:
        return ""
    return plain(found / unit.factor) if signal.unit else formatting.percent(found)


def _other_signals(table: Table) -> list[tuple[Signal, Unit]]:
    """The signals of the table of points other than the goodput, with their units."""
    return [(signal, unit) for signal, unit in table.signals.items() if signal is not GOODPUT]


def _ordinal(number: int) -> str:
    tens = number % 100
    suffix = "th" if 10 < tens < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def bottleneck_section(table: Table, charts: Charts) -> str:
    """The bottlenecks of each flow and variant over the sweep, for each engine that names them."""
    parts = (
        [f'<div class="figures">{box}</div>'] if (box := figure_box("waterfall", table, charts, True)) else []
    )
    for flow in table.flows[:MAX_LIMITED]:
        for variant in table.variants:
            names = [f"<code>{esc(variant)}</code>"] if len(table.variants) > 1 else []
            names += [f"<code>{esc(flow)}</code>"] if len(table.flows) > 1 or not names else []
            for engine in table.engines:
                if stretches := bottlenecks(table, flow, variant, engine):
                    said = names if engine == "limit" else [*names, DONE_BY.get(engine, esc(engine))]
                    parts.append(f"<h3>{', '.join(said)}</h3>{_stretches(stretches)}")
    if len(table.flows) > MAX_LIMITED:
        parts.append(f"<p>{MAX_LIMITED} of {len(table.flows):,} flows are listed here.</p>")
    return "\n".join(parts)


def ledger_section(table: Table, charts: Charts) -> str:
    """The figures of the ledger: over the sweep, and at the point furthest below its limit."""
    boxes = "".join(figure_box(name, table, charts, True) for name in ("ledger", "ledger-waterfall"))
    return f'<div class="figures">{boxes}</div>' if boxes else ""


def _stretches(stretches: Sequence[Stretch]) -> str:
    """The stretches as a list; a long list is folded under a summary of how often each bottleneck occurs."""
    items = "".join(f"<li>{_stretch(stretch)}</li>" for stretch in stretches[:MAX_STRETCHES])
    if len(stretches) > MAX_STRETCHES:
        items += f"<li>and {len(stretches) - MAX_STRETCHES} more ranges</li>"
    shown = f'<ul class="stretches">{items}</ul>'
    if len(stretches) <= 4:
        return shown
    points: dict[Bottleneck | None, int] = {}
    for stretch in stretches:
        points[stretch.bottleneck] = points.get(stretch.bottleneck, 0) + stretch.points
    total = sum(points.values())
    often = sorted(points.items(), key=lambda item: -item[1])
    said = "; ".join(
        f"{prose('' if bottleneck is None else bottleneck.title)} at {count} of {total} points"
        for bottleneck, count in often[:6]
    )
    return f"<details><summary>{said}</summary>{shown}</details>"


def _stretch(stretch: Stretch) -> str:
    """The text of one stretch of the sweep: the engine's summary of its last point.

    If it has several points, their bottleneck and goodput come first.
    """
    if stretch.points == 1 or stretch.bottleneck is None:
        return f"{esc(stretch.where)}: {prose(stretch.summary)}" if stretch.where else prose(stretch.summary)
    after = f"; next is {prose(stretch.next.title)}" if stretch.next else ""
    text = f"{esc(stretch.where)}: {prose(stretch.bottleneck.title)}, {esc(stretch.goodput)}{after}"
    said = f"At {esc(stretch.end)}: {prose(stretch.summary)}" if stretch.summary else ""
    return f'{text}<br><span class="muted">{said}</span>' if said else text


def drops_section(table: Table, outcomes: Iterable[Outcome]) -> str:
    """Table of drops by place, cause and flow, summed over all points of a variant and engine."""
    lost: dict[tuple[str, str, str, str, str], list[int]] = {}
    for outcome in outcomes:
        parallel = ledger.parallel(outcome) if outcome.drops else ()
        for drop in outcome.drops:
            place = formatting.place_name(drop.place, parallel)
            key = (outcome.variant, outcome.engine, place, drop.cause, drop.flow)
            sums = lost.setdefault(key, [0, 0])
            sums[0] += drop.cells
            sums[1] += drop.datagrams
    found = [(key, sums) for key, sums in lost.items() if any(sums)]
    if not found:
        return ""
    told = len({key[1] for key, _ in found}) > 1
    # If every lost datagram was one frame, both columns would be equal.
    in_cells = any(cells != datagrams for _, (cells, datagrams) in found)
    order = {name: index for index, name in enumerate(table.variants)}
    found.sort(key=lambda item: (order.get(item[0][0], len(order)), -item[1][1], -item[1][0]))
    most = 60
    rows = [
        [
            *(esc(text) for text in (key if told else (key[0], *key[2:]))),
            *(f"{count:,}".replace(",", "\u202f") for count in (sums if in_cells else sums[1:])),
        ]
        for key, sums in found[:most]
    ]
    caption = "Losses by place, summed over all points and repeats of a variant"
    if len(found) > most:
        caption += f"; the first {most} of {len(found)} rows"
    counted = ["Cells, frames", "Datagrams"] if in_cells else ["Datagrams"]
    head = ["Variant", *(["Engine"] if told else []), "Place", "Cause", "Flow"]
    return html_table(caption, head + counted, rows, numeric=range(len(head), len(head) + len(counted)))


def file_section(run: File) -> str:
    """The text of the testbed file, and the values that overrode it."""
    sets = ""
    if run.overrides:
        items = "".join(f"<li><code>{esc(path)} = {esc(value)}</code></li>" for path, value in run.overrides)
        sets = f"<p>Values that override the file:</p><ul>{items}</ul>"
    name = esc(run.source)
    text = f'<pre tabindex="0" aria-label="Text of {name}"><code>{esc(run.text)}</code></pre>'
    return f"<p><code>{name}</code></p>{sets}{text}"
