"""From line rate to goodput: the rate that remains after each layer and host.

The figure shows the point of the sweep with the highest limit.
"""

from collections.abc import Sequence

import altair as alt

from engpass.report import theme
from engpass.report.figures import base
from engpass.results.aggregate import Point, Row, Table
from engpass.show.markup import Swatch
from engpass.units import unit_for

MAX_VARIANTS = theme.SERIES
"""Maximum number of bars per stage: one per series colour, by which the variant is known."""

NAMED = 8
"""Maximum number of variants that the caption names as left out."""


def applies(table: Table, flow: str) -> bool:
    """Whether the limit engine gave stages for the flow."""
    return bool(_points(table, flow))


def draw(table: Table, flow: str) -> base.Drawing:
    """The figure about one flow."""
    chosen = _points(table, flow)
    rate = unit_for("bit/s", [bit_per_s for point in chosen for _, bit_per_s in point.stages])
    order = _merged([[name for name, _ in point.stages] for point in chosen])
    rows: list[Row] = []
    for point in chosen:
        left = dict(point.stages)
        bit_per_s = point.stages[0][1]
        for name in order:
            # A stage that a variant lacks takes nothing from its rate.
            bit_per_s = left.get(name, bit_per_s)
            value = rate.of(bit_per_s)
            rows.append({"series": point.variant, "stage": name, "rate": value, "label": rate.say(bit_per_s)})
    domain = [point.variant for point in chosen]
    y = alt.Y("stage:N").title(None).sort(order).axis(labelLimit=170)
    x = alt.X("rate:Q").title(f"remaining rate in {rate.name}").scale(zero=True).axis(tickCount=8)
    colour = (
        alt.Color("series:N")
        .scale(domain=domain)
        .legend(alt.Legend(title="variant") if len(domain) > 1 else None)
    )
    bars = (
        alt.Chart()
        .mark_bar()
        .encode(
            y=y,
            x=x,
            color=colour,
            tooltip=[
                alt.Tooltip("series:N", title="variant"),
                alt.Tooltip("stage:N", title="after"),
                alt.Tooltip("label:N", title="remaining"),
            ],
        )
    )
    if len(domain) > 1:
        bars = bars.encode(yOffset=alt.YOffset("series:N").scale(domain=domain))
    height = max(160, len(order) * (14 + 8 * len(domain)))
    subtitle = [_where(table, chosen[0])]
    if len(chosen) < (every := len(_together(table, flow))):
        subtitle.append(f"{len(chosen)} of {every} variants")
    heading = alt.TitleParams(f"From line rate to goodput, {flow}", subtitle=subtitle)
    return alt.layer(bars, data=alt.InlineData(values=rows)).properties(
        width=base.WIDTH, height=height, title=heading
    )


def says(table: Table, flow: str) -> str:
    """The caption: the meaning of the bars."""
    chosen, every = _points(table, flow), _together(table, flow)
    at = f" The bars are for {_where(table, chosen[0])}." if table.axes else ""
    if left := [point.variant for point in every[len(chosen) :]]:
        names = [*left[:NAMED], *([f"{len(left) - NAMED:,} more"] if len(left) > NAMED else [])]
        at += f" The first {len(chosen)} of {len(every)} variants; the table of points also has"
        at += f" {', '.join(names)}."
    return f"Rate that remains after each layer, other traffic, the shaper and the hosts.{at}"


def blocks(table: Table, flow: str) -> list[Swatch]:
    """The legend of the drawn variants; empty for one variant."""
    chosen = _points(table, flow)
    return [Swatch(theme.colour(at), one.variant) for at, one in enumerate(chosen)] if chosen[1:] else []


def _points(table: Table, flow: str) -> list[Point]:
    """The points to draw, at most `MAX_VARIANTS`."""
    return _together(table, flow)[:MAX_VARIANTS]


def _together(table: Table, flow: str) -> list[Point]:
    """The points of the limit engine at one point of the sweep, one per variant.

    It is the point at which the first variant has its highest limit.
    """
    staged = [p for p in table.points if p.flow == flow and p.engine == "limit" and p.stages]
    if not staged:
        return []
    first = next(name for name in table.variants if any(point.variant == name for point in staged))
    best = max((p for p in staged if p.variant == first), key=lambda p: p.goodput.value)
    there = {point.variant: point for point in staged if point.at == best.at}
    return [there[name] for name in table.variants if name in there]


def _merged(lists: Sequence[Sequence[str]]) -> list[str]:
    """All names once; each new name follows its predecessor in the list that introduces it."""
    order: list[str] = []
    for names in lists:
        at = 0
        for name in names:
            if name not in order:
                order.insert(at, name)
            at = order.index(name) + 1
    return order


def _where(table: Table, point: Point) -> str:
    parts = [f"{axis.label} {axis.texts[at]}" for axis, at in zip(table.axes, point.at, strict=True)]
    return ", ".join(parts) if parts else "one point per variant"


FIGURE = base.Figure("waterfall", "From line rate to goodput", applies, draw, says, lambda _: "none", blocks)
