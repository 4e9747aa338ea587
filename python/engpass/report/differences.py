"""The goodputs of all engines side by side, and their differences."""

from collections.abc import Mapping

from engpass import formatting
from engpass.results.above_limit import GENERATORS
from engpass.results.aggregate import Point, Table
from engpass.results.engine_difference import FAR, Apart, apart, reference
from engpass.show.markup import esc
from engpass.show.markup import table as html_table
from engpass.units import plain

_MOST = 200
"""Most rows of the table; rows with large differences come first."""


def differences_section(table: Table) -> str:
    """A table with a row per flow and point: the goodput of every engine, with large differences marked."""
    if len(table.measured) < 2:
        return ""
    places: dict[tuple[str, tuple[int, ...], str], dict[str, Point]] = {}
    for point in table.points:
        if point.kind not in GENERATORS:
            places.setdefault((point.variant, point.at, point.flow), {})[point.engine] = point
    rows: list[tuple[bool, list[str]]] = []
    for (variant, at, flow), found in places.items():
        if len(found) < 2:
            continue
        values = [esc(axis.texts[i]) for axis, i in zip(table.axes, at, strict=True)]
        means = {engine: found[engine].goodput.mean for engine in table.engines if engine in found}
        distances = {one.engine: one for one in apart(means)}
        near = not any(one.far for one in distances.values())
        rows.append((near, [esc(variant), *values, esc(flow), *_cells(table, found, distances)]))
    if not rows:
        return ""
    rows.sort(key=lambda row: row[0])
    marked = sum(not near for near, _ in rows)
    head = ["Variant", *(esc(axis.label) for axis in table.axes), "Flow"]
    first = len(head)
    for engine in table.engines:
        head += [esc(engine)] if engine == _base(table) else [esc(engine), f"vs {esc(_base(table))}"]
    cells = [row for _, row in rows[:_MOST]]
    grid = html_table(_caption(table, len(rows)), head, cells, numeric=range(first, len(head)), kind="tall")
    said = f"{marked} of {len(rows)} rows are marked." if marked else "No row is marked."
    return f"<p>{said}</p>{grid}"


def _cells(table: Table, found: Mapping[str, Point], distances: Mapping[str, Apart]) -> list[str]:
    cells = []
    for engine in table.engines:
        one = distances.get(engine)
        is_base = engine == _base(table)
        if one is None:
            cells += [""] if is_base else ["", ""]
            continue
        bad = ' <span class="badge bad">invalid</span>' if found[engine].invalid is not None else ""
        said = "" if one.share is None else _signed(one.share)
        cells.append(plain(one.value / table.rate.factor) + bad)
        if not is_base:
            cells.append(f'<span class="mark">{said} ✗</span>' if one.far else said)
    return cells


def _base(table: Table) -> str:
    """The engine that the others are compared with."""
    return reference(dict.fromkeys(table.engines, 0.0)) or ""


def _caption(table: Table, rows: int) -> str:
    caption = (
        f"Goodput in {esc(table.rate.name)}, and its difference from <code>{esc(_base(table))}</code>;"
        f" ✗ marks more than {formatting.percent(FAR)}"
    )
    if "limit" in table.engines:
        caption += ". <code>limit</code> is a bound: a mark means that the goodput exceeds it"
    if rows > _MOST:
        caption += f"; {_MOST} of {rows} rows, marked ones first"
    return caption


def _signed(share: float) -> str:
    sign = "+" if share > 0 else "\N{MINUS SIGN}" if share < 0 else ""
    return f"{sign}{abs(share) * 100:.1f} %"


def invalid_points(table: Table) -> str:
    """A note about invalid points; empty if there are none."""
    bad = [point for point in table.points if point.invalid is not None and point.kind not in GENERATORS]
    if not bad:
        return ""
    points = {(point.variant, point.engine, point.at) for point in bad}
    what = "point is" if len(points) == 1 else "points are"
    first = f", the first one of variant <code>{esc(bad[0].variant)}</code>" if len(points) > 1 else ""
    return (
        f'<p><span class="badge bad">invalid</span> {len(points)} emulated {what} invalid{first}:'
        f" {esc(bad[0].invalid)}. The figures and tables include them, but they prove nothing;"
        " <code>--slow</code> gives the machine more time.</p>"
    )
