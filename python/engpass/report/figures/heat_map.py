"""A signal over two swept axes if the second has more values than there are panels: a cell for each pair."""

from collections.abc import Mapping

import altair as alt

from engpass.report.figures import base
from engpass.results.aggregate import Point, Row, Table
from engpass.results.axes import Axis
from engpass.results.samples import DELAY_P99, GOODPUT, LOSS
from engpass.types.signals import Signal

_SIGNALS = (GOODPUT, LOSS, DELAY_P99)
_ACROSS, _DOWN = 120, 60
"""Maximum number of cells of a map along the first and the second axis."""
_MAX_CELLS = 24_000
"""About the most cells of a page."""
_MAX_VARIANTS = 4


def is_wide(table: Table) -> bool:
    """Whether a run sweeps two axes, and the second has more values than the figures have panels."""
    return len(table.axes) == 2 and 0 < len(table.panels) < len(table.axes[1].texts)


def cells(table: Table, flow: str) -> list[Row]:
    """The cells of a flow's maps with the means of their points: few, however many values are swept."""
    across, down = _grid(table)
    found: dict[tuple[str, str, str], list[Point]] = {}
    for point in _points(table, flow):
        found.setdefault((point.variant, across[point.at[0]], down[point.at[1]]), []).append(point)
    return [_cell(table, *key, points) for key, points in found.items()]


def _points(table: Table, flow: str) -> list[Point]:
    engine = _engine(table)
    shown = table.variants[:_MAX_VARIANTS]
    return [point for name in shown for point in table.of(flow, name) if point.engine == engine]


def _engine(table: Table) -> str:
    """The engine that the maps show: the first that counts datagrams, else `limit`."""
    return next(iter(table.measured), table.engines[0])


def _grid(table: Table) -> tuple[Mapping[int, str], Mapping[int, str]]:
    """For each axis the text of the cell of each position, in the order of the map."""
    maps = max(1, len(table.flows)) * min(_MAX_VARIANTS, len(table.variants))
    scale = min(1.0, (_MAX_CELLS / maps / (_ACROSS * _DOWN)) ** 0.5)
    first, second = table.axes
    return _groups(first, int(_ACROSS * scale)), _groups(second, int(_DOWN * scale))


def _groups(axis: Axis, most: int) -> Mapping[int, str]:
    """By position the text of its value, or of the first of its neighbours if there are too many values."""
    numbers = axis.numbers
    places = sorted(range(len(axis.texts)), key=lambda place: place if numbers is None else numbers[place])
    size = -(-len(places) // max(8, most))
    return {place: axis.texts[places[rank - rank % size]] for rank, place in enumerate(places)}


def _cell(table: Table, variant: str, x: str, y: str, points: list[Point]) -> Row:
    row: Row = {"series": variant, "x": x, "y": y}
    for signal in _SIGNALS:
        means = [spread.value for point in points if (spread := point.spread(signal)) is not None]
        if means:
            row[signal.name] = table.signals[signal].of(sum(means) / len(means))
    return row


def _figure(name: str, signal: Signal) -> base.Figure:
    def applies(table: Table, flow: str) -> bool:
        return is_wide(table) and any(point.spread(signal) is not None for point in _points(table, flow))

    def draw(table: Table, flow: str) -> base.Drawing:
        unit = table.signals[signal].name
        chart = alt.Chart(alt.NamedData(name=base.CELLS)).mark_rect()
        first, second = table.axes
        across, down = (list(dict.fromkeys(groups.values())) for groups in _grid(table))
        x = alt.X("x:O").title(first.label).sort(across)
        y = alt.Y("y:O").title(second.label).sort(down[::-1])
        # Cells of one size, not a scale of numbers: the steps of a sweep need not be equal.
        chart = chart.encode(
            x=x.axis(labelAngle=0, labelOverlap="greedy", labelSeparation=8),
            y=y.axis(labelOverlap="greedy"),
            color=alt.Color(f"{signal.name}:Q").scale(scheme="viridis").legend(alt.Legend(title=unit)),
            tooltip=[
                alt.Tooltip("x:N", title=first.label),
                alt.Tooltip("y:N", title=second.label),
                *(
                    alt.Tooltip(f"{one.name}:Q", title=f"{one.title.lower()}, {said.name}", format=".4~r")
                    for one, said in table.signals.items()
                    if one in _SIGNALS
                ),
            ],
        )
        title = alt.TitleParams(f"{signal.title} of {flow}")
        drawn: base.Drawing = chart.properties(width=base.WIDTH, height=base.HEIGHT, title=title)
        if len(table.variants) > 1:
            small = chart.properties(width=base.WIDTH // 2 - 30, height=base.HEIGHT * 2 // 3)
            facet = alt.Facet("series:N").title("variant").sort(list(table.variants))
            drawn = base.own_axes(small.facet(facet, columns=2), len(table.variants)).properties(title=title)
        return drawn

    def says(table: Table, _flow: str) -> str:
        across, down = _grid(table)
        grouped = [
            f"the {len(groups)} values of the {axis.label} are in {len(set(groups.values()))} groups"
            for groups, axis in zip((across, down), table.axes, strict=True)
            if len(set(groups.values())) < len(groups)
        ]
        means = f" A cell is the mean of its points: {' and '.join(grouped)}." if grouped else ""
        left_out = len(table.variants) - _MAX_VARIANTS
        some = f" {left_out} more variants are not shown." if left_out > 0 else ""
        return f"{signal.title} of every swept value, by {_engine(table)}: mean of the repeats.{means}{some}"

    return base.Figure(name, f"{signal.title} over both axes", applies, draw, says, _no_key)


def _no_key(_table: Table) -> base.Key:
    return "none"


FIGURES = (
    _figure("goodput-map", GOODPUT),
    _figure("loss-map", LOSS),
    _figure("delay-map", DELAY_P99),
)
"""The maps of goodput, loss and delay."""
