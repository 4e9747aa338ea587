"""The page about a search, or about a measured path."""

from engpass.report import theme
from engpass.report.figures.base import Drawing
from engpass.report.search import OUTCOMES, PATH_SERIES, figures, outcome, path_figures
from engpass.report.sections import file_section
from engpass.search.found import tried
from engpass.show.html import blocks_html
from engpass.show.markup import Swatch, chart_box, swatches
from engpass.store import RunRecord
from engpass.views.search import PATH, results, settings, trials
from engpass.views.stored import facts

_SAYS = {
    "loss": "Each mark is a trial; the line shows the loss over all trials of a load.",
    "received": "On the dashed line, the received rate equals the offered rate.",
    "steps": "Earlier trials decide the next load. Dashed lines are the results of the search.",
    "windows": "A window can fill the path if it is at least the bandwidth-delay product. The dashed line "
    "is the ideal TCP throughput: the bottleneck bandwidth without the headers of TCP and IP.",
}


def drawings(record: RunRecord) -> dict[str, Drawing]:
    """The figures by name."""
    if record.method == PATH:
        return path_figures(record)
    return figures([record]) if record.trials else {}


def sections(record: RunRecord) -> list[tuple[str, str, str]]:
    """Key, title and body of the sections; the page omits sections with an empty body."""
    first = _path_sections(record) if record.method == PATH else _search_sections(record)
    return [
        *first,
        ("asked", "Settings", blocks_html([facts(settings(record))])),
        ("environment", "Environment", blocks_html([facts(record.environment.items())])),
        ("file", "Testbed file", file_section(record)),
    ]


def _box(name: str, key: str = "") -> str:
    return chart_box(name, _SAYS[name], key)


def _search_sections(record: RunRecord) -> list[tuple[str, str, str]]:
    kinds = {outcome(trial) for trial in tried(record)}
    key = swatches(
        Swatch(theme.colour(place), name) for kind, (name, place) in OUTCOMES.items() if kind in kinds
    )
    return [
        ("found", "Results", blocks_html(results(record))),
        ("loss-against-load", "Loss against load", _box("loss") + _box("received") if record.trials else ""),
        ("steps", "Steps", (_box("steps", key) if record.trials else "") + blocks_html([trials(record)])),
    ]


def _path_sections(record: RunRecord) -> list[tuple[str, str, str]]:
    key = swatches(Swatch(theme.colour(place), name) for _, name, place in PATH_SERIES)
    figure = _box("windows", key) if record.result is not None else ""
    return [("found", "The path", blocks_html(results(record))), ("tcp", "TCP over the path", figure)]
