"""The ledger of one point as a waterfall: from line rate to the delivered bits, a bar per account."""

from collections.abc import Sequence

import altair as alt

from engpass import formatting
from engpass.report import theme
from engpass.report.figures import base
from engpass.results import ledger
from engpass.results.aggregate import Row, Table
from engpass.results.ledger import Books
from engpass.results.ledger_series import Place
from engpass.show.markup import Swatch
from engpass.units import PERCENT, unit_for


def chart(
    books: Books, line_rate: float | None, title: str, subtitle: str, own: float | None = None
) -> alt.LayerChart:
    """The waterfall of a ledger, in bit/s if the line rate is known, else in per cent of the line.

    `own` is the delivered share of one flow, if several flows use the line.
    """
    steps = ledger.waterfall(books, own)
    unit = PERCENT if line_rate is None else unit_for("bit/s", [line_rate])
    whole = 1.0 if line_rate is None else line_rate
    rows: list[Row] = []
    for step in steps:
        ends = not step.taken
        low = 0.0 if ends else step.left
        high = step.left if ends else step.left + step.taken
        amount = high - low
        rows.append(
            {
                "step": _name(step),
                "family": _family_title(step.family),
                "low": unit.of(low * whole),
                "high": unit.of(high * whole),
                "label": _label(amount, line_rate),
            }
        )
    order = [_name(step) for step in steps]
    present = list(dict.fromkeys(step.family for step in steps))
    domain = [_family_title(key) for key in present]
    colours = [theme.LIGHT[_colour(key)] for key in present]
    y = alt.Y("step:N").title(None).sort(order).axis(labelLimit=190)
    scale = alt.Scale(domain=[0, unit.of(whole)], nice=False)
    x = alt.X("low:Q").title(f"share of the line in {unit.name}").scale(scale).axis(tickCount=8)
    colour = alt.Color("family:N").scale(domain=domain, range=colours)
    bars = (
        alt.Chart()
        .mark_bar()
        .encode(
            y=y,
            x=x,
            x2="high:Q",
            color=colour.legend(alt.Legend(title=None, symbolType="square")),
            tooltip=[
                alt.Tooltip("step:N", title="account"),
                alt.Tooltip("family:N", title="family"),
                alt.Tooltip("label:N", title="use"),
            ],
        )
    )
    # Thin bars are hard to read, so every bar has a label, on the side with enough room.
    right = f"datum.high < {unit.of(whole * 0.6)}"
    beside = f"!({right}) && datum.low > {unit.of(whole * 0.4)}"
    inside = f"!({right}) && datum.low <= {unit.of(whole * 0.4)}"
    muted = theme.LIGHT["muted"]
    text = alt.Chart().mark_text(align="left", dx=5, baseline="middle", color=muted, fontSize=11)
    left = alt.Chart().mark_text(align="right", dx=-5, baseline="middle", color=muted, fontSize=11)
    labels = [
        text.transform_filter(right).encode(y=y, x=alt.X("high:Q"), text="label:N"),
        left.transform_filter(beside).encode(y=y, x="low:Q", text="label:N"),
        alt.Chart()
        .mark_text(align="right", dx=-6, baseline="middle", color=theme.LIGHT["paper"], fontSize=11)
        .transform_filter(inside)
        .encode(y=y, x=alt.X("high:Q"), text="label:N"),
    ]
    return alt.LayerChart(
        layer=[bars, *labels],
        data=alt.InlineData(values=rows),
        width=base.WIDTH,
        height=max(160, 22 * len(rows)),
        title=alt.TitleParams(title, subtitle=[subtitle]),
    )


def _name(step: ledger.Step) -> str:
    return step.name.replace("`", "")


def key_of(books: Books) -> list[Swatch]:
    """The legend of the families in the waterfall of a ledger."""
    present = dict.fromkeys(step.family for step in ledger.waterfall(books))
    return [Swatch(_colour(family), _family_title(family)) for family in present]


def _label(share: float, line_rate: float | None) -> str:
    said = formatting.percent(share)
    return said if line_rate is None else f"{formatting.rate(share * line_rate)}, {said}"


def _family_title(key: str) -> str:
    return next((family.title for family in ledger.FAMILIES if family.key == key), "line rate")


def _colour(key: str) -> str:
    return f"{key}1" if key else "ink"


def applies(table: Table, flow: str) -> bool:
    """Whether an engine kept a ledger of the flow's line."""
    return flow in table.lines


def draw(table: Table, flow: str) -> base.Drawing:
    """The figure about one flow."""
    line, places = table.lines[flow], _places(table, flow)
    title = f"From line rate to delivered payload, {flow}"
    where = f"{line.name}; {_where(table, places[0])}"
    if len(places) == 1:
        return chart(line.books[places[0]], None, title, where, line.own.get(places[0]))
    drawn = [
        chart(line.books[place], None, title, f"{where}; {place[1]}", line.own.get(place)) for place in places
    ]
    below: base.Drawing = alt.vconcat(*drawn).resolve_scale(
        color="independent", x="independent", y="independent"
    )
    return below


def says(table: Table, flow: str) -> str:
    """The caption: the meaning of the bars."""
    line, places = table.lines[flow], _places(table, flow)
    missing = _missing(table, flow)
    why = "the first point"
    if missing:
        below = any(missing.get(place, 0.0) > 0 for place in places)
        why = "the point furthest below its limit" if below else "no point is below its limit"
    by = f", by the ledgers of {' and '.join(place[1] for place in places)}" if len(places) > 1 else ""
    others = ""
    if any(place in line.own for place in places):
        others = " Payload that is delivered to others counts as `other flows`."
    return f"Use of the line, {line.name}, at {_where(table, places[0])}: {why}{by}.{others}"


def blocks(table: Table, flow: str) -> Sequence[Swatch]:
    """The legend of the families."""
    books = table.lines[flow].books
    found = {block.text: block for place in _places(table, flow) for block in key_of(books[place])}
    return list(found.values())


def _places(table: Table, flow: str) -> list[Place]:
    """The shown point, once for each engine that has a ledger there."""
    books = table.lines[flow].books
    variant, _, at = _place(table, flow)
    return [(variant, name, at) for name in table.engines if (variant, name, at) in books]


def _place(table: Table, flow: str) -> Place:
    """The point furthest below its limit or least above it, or the first point if no limits are known."""
    missing = _missing(table, flow)
    books = table.lines[flow].books
    there = [place for place in missing if place in books]
    return max(there, key=lambda place: missing[place]) if there else next(iter(books))


def _missing(table: Table, flow: str) -> dict[Place, float]:
    points = [point for point in table.points if point.flow == flow]
    limits = {(p.variant, p.at): p.goodput.value for p in points if p.engine == "limit"}
    return {
        (p.variant, p.engine, p.at): limits[p.variant, p.at] - p.goodput.value
        for p in points
        if p.engine != "limit" and (p.variant, p.at) in limits
    }


def _where(table: Table, place: Place) -> str:
    variant, _, at = place
    parts = [f"variant {variant}"] if len(table.variants) > 1 else []
    parts += [f"{axis.label} {axis.texts[index]}" for axis, index in zip(table.axes, at, strict=True)]
    return ", ".join(parts) or "the only point"


FIGURE = base.Figure(
    "ledger-waterfall",
    "From line rate to delivered payload",
    applies,
    draw,
    says,
    lambda _: "none",
    blocks,
)
