"""The figures of a run: as Altair charts, as the page's specifications, as files."""

import copy
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from engpass.report import theme
from engpass.report.aggregate import Table, tabulate
from engpass.report.diagram import diagram
from engpass.report.figures import FIGURES, Drawing
from engpass.report.figures.base import HEIGHT
from engpass.report.record import Outcome, Run

MAX_FLOWS = 12
"""Flows that get figures of their own at most."""


def figures(run: Run, outcomes: Iterable[Outcome]) -> dict[str, Drawing]:
    """The charts by name, such as `goodput`; with several flows one of each per flow, such as `goodput-stream`."""
    table = tabulate(run, outcomes)
    drawn: dict[str, Drawing] = {}
    for flow in table.flows[:MAX_FLOWS]:
        for figure in FIGURES:
            if figure.applies(table, flow):
                name = (
                    figure.name
                    if len(table.flows) == 1
                    else _unused(f"{figure.name}-{_file_name(flow)}", drawn)
                )
                drawn[name] = figure.draw(table, flow).configure(
                    **theme.config(theme.LIGHT, theme.PICTURE_FONT, True)
                )
    return drawn


def export_figures(run: Run, outcomes: Iterable[Outcome], directory: Path) -> list[Path]:
    """Writes every figure and the testbed's diagram as SVG and PNG; makes the directory. Returns the files.

    Raises `OSError` where the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, chart in figures(run, outcomes).items():
        spec = chart.to_dict()
        spec["padding"] = 16
        for parameter in spec.get("params", []):
            parameter.pop("bind", None)  # a picture has no menus
        source = json.dumps(spec)
        svg = vl_convert.vegalite_to_svg(source, allowed_base_urls=[])
        written += _write(directory / name, svg)
    if run.topology.get("nodes"):
        written += _write(
            directory / "testbed", diagram(run.topology, palette=theme.LIGHT, font=theme.PICTURE_FONT)
        )
    return written


def _write(stem: Path, svg: str) -> list[Path]:
    files = [stem.with_name(stem.name + suffix) for suffix in (".svg", ".png")]
    files[0].write_text(svg, encoding="utf-8", errors="xmlcharrefreplace")
    files[1].write_bytes(vl_convert.svg_to_png(svg, scale=2))
    return files


def _file_name(text: str) -> str:
    """A flow's name as part of a file name: nothing in it can leave the directory."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:60] or "flow"


def _unused(name: str, taken: dict[str, Drawing]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def page_charts(table: Table) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The specifications for the page, by flow and figure, and their data: each set once, as columns and rows."""
    datasets: dict[str, Any] = {}
    charts: dict[str, dict[str, Any]] = {}
    for flow in table.flows[:MAX_FLOWS]:
        for figure in FIGURES:
            if figure.applies(table, flow):
                chart = figure.draw(table, flow)
                charts.setdefault(flow, {})[figure.name] = _for_page(
                    chart, f"{figure.title}. {figure.says(table, flow)}", datasets
                )
    return charts, {name: _columns(rows) for name, rows in datasets.items()}


def _for_page(chart: Drawing, description: str, datasets: dict[str, Any]) -> dict[str, Any]:
    with alt.data_transformers.enable("default", consolidate_datasets=False):
        spec = copy.deepcopy(chart.to_dict())
    spec.pop("config", None)
    spec.pop("title", None)  # the page has a heading of its own
    spec["description"] = description
    _detach(spec, datasets)
    for parameter in spec.get("params", []):
        parameter.pop("bind", None)  # the page has menus of its own, for all figures at once
    if "facet" not in spec:
        spec["autosize"] = {"type": "fit-x", "contains": "padding"}
        spec["usermeta"] = {"fluid": spec.get("height") == HEIGHT}
    return spec


def _detach(node: Any, datasets: dict[str, Any]) -> None:
    """Moves inline data out of a specification (figures about one flow share theirs) and takes the legends off (the page has
    keys in HTML, which wrap on a phone)."""
    if isinstance(node, list):
        for value in node:
            _detach(value, datasets)
    if not isinstance(node, dict):
        return
    data = node.get("data")
    if isinstance(data, dict) and "values" in data:
        rows = data["values"]
        name = next((name for name, known in datasets.items() if known == rows), f"data{len(datasets)}")
        datasets[name] = rows
        node["data"] = {"name": name}
    for channel in node.get("encoding", {}).values():
        if isinstance(channel, dict) and "legend" in channel:
            channel["legend"] = None
    for value in node.values():
        _detach(value, datasets)


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return {"columns": columns, "rows": [[row.get(column) for column in columns] for row in rows]}
