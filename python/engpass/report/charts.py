"""The figures of a run: as Altair charts, as the page's specifications, as files."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypedDict

import vl_convert
from altair.utils.schemapi import debug_mode

from engpass.jsondata import Json
from engpass.report import theme
from engpass.report.diagram import diagram
from engpass.report.figures import FIGURES, Drawing, goodput_resources, heat_map
from engpass.report.figures.base import CELLS, HEIGHT, ROWS, TOGETHER, Figure
from engpass.results.aggregate import Row, Table, tabulate
from engpass.results.record import Run
from engpass.results.samples import TRANSFER_TIME
from engpass.types.outcome import Outcome

Spec: TypeAlias = dict[str, Json]
"""A specification of Vega-Lite, as JSON data."""


class Columns(TypedDict):
    """Rows for the page, with the names of the columns written only once."""

    columns: list[str]
    rows: list[list[float | str | None]]


_Data: TypeAlias = dict[str, list[Row]]

_PICTURE = theme.config(theme.LIGHT, theme.PICTURE_FONT, legend=True)

MAX_FLOWS = 12
"""Maximum number of flows that get their own figures."""


def figures(run: Run, outcomes: Iterable[Outcome]) -> dict[str, Drawing]:
    """The charts by name, such as `goodput`; with several flows one per flow, such as `goodput-stream`."""
    made = {}
    for name, chart, data in _drawn(tabulate(run, outcomes)):
        # Set as attributes: the methods of Altair would copy and validate all rows each time.
        chart.config = _PICTURE
        chart.datasets = data
        made[name] = chart
    return made


def export_figures(run: Run, outcomes: Iterable[Outcome], directory: Path) -> list[Path]:
    """Write every figure and the testbed's diagram as SVG and PNG; return the files.

    Creates the directory; raises `OSError` if it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, chart, data in _drawn(tabulate(run, outcomes)):
        written += _picture(directory / name, chart, data)
    if run.topology.nodes:
        written += _write(
            directory / "testbed", diagram(run.topology, palette=theme.LIGHT, font=theme.PICTURE_FONT)
        )
    return written


def export(charts: Mapping[str, Drawing], directory: Path) -> list[Path]:
    """Write charts that contain their data as SVG and PNG; create the directory and return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    return [file for name, chart in charts.items() for file in _picture(directory / name, chart, {})]


def _picture(stem: Path, chart: Drawing, data: _Data) -> list[Path]:
    spec = _spec(chart)
    spec["config"] = _PICTURE
    spec["padding"] = 16
    own = spec.get("datasets")
    spec["datasets"] = {**(own if isinstance(own, dict) else {}), **data}
    _drop_menus(spec)
    _drop_hovering(spec)
    return _write(stem, vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[]))


def _drawn(table: Table) -> Iterator[tuple[str, Drawing, _Data]]:
    """Names, charts and their data; the figures of one flow share the data."""
    taken: set[str] = set()
    together = _together(table)
    for flow in _flows(table):
        data = {**_data(table, flow), **together}
        for figure in FIGURES:
            if figure.applies(table, flow):
                name = figure.name if len(table.flows) == 1 else f"{figure.name}-{_file_name(flow)}"
                yield _unused(name, taken), _draw(figure, table, flow), data


def _flows(table: Table) -> Sequence[str]:
    """The flows with figures of their own, at most `MAX_FLOWS`.

    If transfers end, those that do not come first, then the slowest.
    """
    times: dict[str, list[float]] = {}
    for point in table.points:
        if point.engine != "limit":
            time = point.samples.folded(TRANSFER_TIME)
            times.setdefault(point.flow, []).append(math.inf if time is None else time)
    if any(math.isfinite(time) for found in times.values() for time in found):
        return sorted(table.flows, key=lambda flow: -max(times.get(flow, [0.0])))[:MAX_FLOWS]
    return table.flows[:MAX_FLOWS]


def _draw(figure: Figure, table: Table, flow: str) -> Drawing:
    """Draw a figure without Altair's checks of each part, which take as long as everything else."""
    with debug_mode(False):
        return figure.draw(table, flow)


def _spec(chart: Drawing) -> Spec:
    """The specification of a chart. Tests check all figures against the schema of Vega-Lite."""
    with debug_mode(False):
        spec: Spec = chart.to_dict(validate=False)
    return spec


def _data(table: Table, flow: str) -> _Data:
    """The data sets of a flow's figures by name."""
    maps = {CELLS: heat_map.cells(table, flow)} if heat_map.is_wide(table) else {}
    return {ROWS: table.rows(flow), **maps}


def _together(table: Table) -> _Data:
    """The data sets that the figures of all flows share."""
    return {TOGETHER: goodput_resources.rows(table)} if goodput_resources.applies(table, "") else {}


def _write(stem: Path, svg: str) -> list[Path]:
    files = [stem.with_name(stem.name + suffix) for suffix in (".svg", ".png")]
    files[0].write_text(svg, encoding="utf-8", errors="xmlcharrefreplace")
    files[1].write_bytes(vl_convert.svg_to_png(svg, scale=2))
    return files


def _file_name(text: str) -> str:
    """A flow's name as part of a file name: nothing in it can leave the directory."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:60] or "flow"


def _unused(name: str, taken: set[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    taken.add(free)
    return free


def page_charts(table: Table) -> tuple[dict[str, dict[str, Spec]], dict[str, Columns]]:
    """The specifications for the page, by flow and figure, and the rows they share, by flow."""
    charts: dict[str, dict[str, Spec]] = {}
    datasets = {name: _columns(rows) for name, rows in _together(table).items()}
    for number, flow in enumerate(_flows(table)):
        for figure in FIGURES:
            if figure.applies(table, flow):
                spec = _spec(_draw(figure, table, flow))
                spec["description"] = f"{figure.title}. {figure.says(table, flow)}"
                charts.setdefault(flow, {})[figure.name] = for_page(spec, str(number))
        datasets |= {f"{name}{number}": _columns(rows) for name, rows in _data(table, flow).items()}
    return charts, datasets


def own_charts(drawings: Mapping[str, Drawing]) -> dict[str, Spec]:
    """Charts that contain their data as specifications for the page, by name."""
    return {name: for_page(_spec(chart)) for name, chart in drawings.items()}


def for_page(spec: Spec, flow: str = "") -> Spec:
    """Remove the parts that the page adds itself: configuration, data, title, legends, menus.

    On the page the names of data sets end with the number of their `flow`.
    """
    for key in ("config", "title"):
        spec.pop(key, None)
    data = spec.get("data")
    if isinstance(data, dict) and data.get("name") in (ROWS, CELLS):
        spec["data"] = {"name": f"{data['name']}{flow}"}
    _drop_menus(spec)
    _drop_legends(spec)
    spec = {
        key: value if key in ("data", "datasets") else theme.on_page(value) for key, value in spec.items()
    }
    if "facet" not in spec and "vconcat" not in spec:
        spec["autosize"] = {"type": "fit-x", "contains": "padding"}
        spec["usermeta"] = {"fluid": spec.get("height") == HEIGHT}
    return spec


def _drop_menus(spec: Spec) -> None:
    """Remove the menus: pictures have none, and the page has menus for all figures together."""
    parameters = spec.get("params")
    for parameter in parameters if isinstance(parameters, list) else []:
        parameter.pop("bind", None)


def _drop_hovering(spec: Spec) -> None:
    """Remove the invisible layers, which exist only for tooltips."""
    for part in (spec, spec.get("spec")):
        if isinstance(part, dict) and isinstance(layers := part.get("layer"), list):
            part["layer"] = [layer for layer in layers if _is_seen(layer)]


def _is_seen(layer: Spec) -> bool:
    mark = layer["mark"]
    return not isinstance(mark, dict) or mark.get("opacity") != 0


def _drop_legends(node: object) -> None:
    """Remove the legends but those of scales: the page has them in HTML, which wraps on a phone."""
    if isinstance(node, list):
        for value in node:
            _drop_legends(value)
    if isinstance(node, dict):
        for channel in node.get("encoding", {}).values():
            if isinstance(channel, dict) and "legend" in channel and channel.get("type") != "quantitative":
                channel["legend"] = None
        for value in node.values():
            _drop_legends(value)


def _columns(rows: Sequence[Row]) -> Columns:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return {"columns": columns, "rows": [[row.get(column) for column in columns] for row in rows]}
