"""The sections of the page as HTML: text, tables and boxes for the figures.

Texts of testbeds and stores are escaped here.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from engpass.report import theme
from engpass.report.charts import Spec
from engpass.report.diagram import diagram
from engpass.report.figures import FIGURES, Figure
from engpass.report.figures.base import Key
from engpass.results.aggregate import Table
from engpass.results.engine_difference import FAR
from engpass.results.record import File, Run
from engpass.show.html import blocks_html
from engpass.show.markup import esc, prose, swatches
from engpass.types.plan import Drawing
from engpass.views.bottlenecks import bottlenecks
from engpass.views.points import Row, rows, summary

MAX_TABLE = 160
"""Approximate rows of the table of points."""
MAX_FAR = 20
"""Points that a table of thinned points shows beside it, because they are farthest from their limit."""

Charts = Mapping[str, Mapping[str, Spec]]


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
    return swatches(figure.blocks(table, flow))


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


def points_section(run: Run, table: Table, said: str, *, download: bool) -> str:
    """The aggregated points as a table, thinned out if long, and a button to download what is `said`."""
    if not table.points:
        return ""
    every = list(dict.fromkeys([*table.flows, *(point.flow for point in table.points)]))
    places = sorted({point.at for point in table.points})
    many = len({(point.flow, point.variant, point.at) for point in table.points})
    step = max(1, -(-many // MAX_TABLE))
    thinned = rows(table, every, set(places[::step]))
    shown = [summary(run, table, thinned[: 2 * MAX_TABLE])]
    if step > 1:
        shown[0] = replace(shown[0], title=f"{len(shown[0].rows)} rows of {many:,} points")
        far = [row for row in rows(table, every) if _distance(row) > FAR]
        far.sort(key=_distance, reverse=True)
        if far:
            found = summary(run, table, far[:MAX_FAR])
            shown.insert(0, replace(found, title="Points whose goodput is farthest from the fair share"))
    button = '<button id="download" type="button" hidden>Download CSV</button> ' if download else ""
    return f'{blocks_html(shown)}<p class="meta">{button}<span class="muted">{prose(said)}</span></p>'


def _distance(row: Row) -> float:
    """The difference of a goodput from its limit, as a share of the limit; 0 without a limit."""
    limit = row.limit.goodput.value if row.limit is not None else 0.0
    return abs(row.point.goodput.value / limit - 1) if limit and row.point.engine != "limit" else 0.0


def bottleneck_section(table: Table, charts: Charts) -> str:
    """The bottlenecks of each flow and variant over the sweep, for each engine that names them."""
    box = figure_box("waterfall", table, charts, True)
    return (f'<div class="figures">{box}</div>' if box else "") + blocks_html([bottlenecks(table)])


def ledger_section(table: Table, charts: Charts) -> str:
    """The figures of the ledger: over the sweep, and at the point furthest below its limit."""
    boxes = "".join(figure_box(name, table, charts, True) for name in ("ledger", "ledger-waterfall"))
    return f'<div class="figures">{boxes}</div>' if boxes else ""


def file_section(run: File) -> str:
    """The text of the testbed file, and the values that overrode it."""
    sets = ""
    if run.overrides:
        items = "".join(f"<li><code>{esc(path)} = {esc(value)}</code></li>" for path, value in run.overrides)
        sets = f"<p>Values that override the file:</p><ul>{items}</ul>"
    name = esc(run.source)
    text = f'<pre tabindex="0" aria-label="Text of {name}"><code>{esc(run.text)}</code></pre>'
    return f"<p><code>{name}</code></p>{sets}{text}"
