"""The ledger over the swept axis: the accounts of the line, stacked to 100 %."""

from collections.abc import Mapping, Sequence

import altair as alt

from engpass.report import theme
from engpass.report.figures import base
from engpass.results import ledger
from engpass.results.aggregate import Row, Table
from engpass.results.ledger_series import Line
from engpass.show.markup import Swatch

_MOST = 64
"""Maximum number of values of the axis that are all drawn; of more, every second or third and so on."""


def applies(table: Table, flow: str) -> bool:
    """Whether something is swept and an engine kept a ledger of the flow's line."""
    return table.x is not None and flow in table.lines


def draw(table: Table, flow: str) -> base.Drawing:
    """The figure about one flow."""
    line = table.lines[flow]
    accounts = _accounts(line)
    panels = _panels(table, line)
    rows = _rows(table, line, accounts, panels)
    colours = [theme.LIGHT[name] for name in theme.account_colours(accounts)]
    titles = [_title(account) for account in accounts]
    legend = alt.Legend(title=None, columns=3, symbolType="square")
    colour = alt.Color("account:N").scale(domain=titles, range=colours).legend(legend).sort(titles)
    y = alt.Y("share:Q").title("share of the line in %").stack("zero").scale(domain=[0, 100], nice=False)
    numeric = table.x is not None and table.x.numbers is not None
    x = base.x_quantity(table) if numeric else base.x_words(table)
    if numeric:
        x = x.scale(padding=0, nice=False, zero=False, type="log" if table.x and table.x.log else "linear")
    paper = theme.LIGHT["paper"]
    chart = alt.Chart()
    if numeric:
        chart = chart.mark_area(stroke=paper, strokeWidth=0.6)
    else:
        chart = chart.mark_bar(stroke=paper, strokeWidth=0.6)
    marks = chart.encode(
        x=x,
        y=y,
        color=colour,
        order=alt.Order("order:Q"),
        tooltip=[alt.Tooltip("account:N", title="account"), alt.Tooltip("family:N", title="family")],
    )
    stacked = alt.layer(marks, data=alt.InlineData(values=rows))
    heading = alt.TitleParams(f"Use of the line, {flow}", subtitle=[line.name])
    if len(panels) == 1:
        return stacked.properties(width=base.WIDTH, height=base.HEIGHT, title=heading)
    # A column for each engine, so that their ledgers stand side by side.
    columns = max(2, len(_engines(table, line)))
    facet = alt.Facet("panel:N").title(None).sort(list(panels.values()))
    drawn = stacked.properties(width=base.WIDTH // columns - 30, height=base.HEIGHT * 2 // 3)
    facets = drawn.facet(facet, columns=columns)
    return base.own_axes(facets, len(panels), columns).properties(title=heading)


def says(table: Table, flow: str) -> str:
    """The caption: the meaning of the stack."""
    line = table.lines[flow]
    fixed = _fixed(table, line)
    at = f", at {fixed}" if fixed else ""
    shown, every = len(_panels(table, line)), len({place[:2] for place in line.books})
    more = f" The first {shown} of {every} panels." if shown < every else ""
    return (
        f"Use of all bits of {line.name}{at}: headers at the bottom, then delivered payload"
        f"{' of all flows' if line.own else ''}, wasted bits, other traffic, and on top the idle time by"
        f" reason.{more}"
    )


def blocks(table: Table, flow: str) -> Sequence[Swatch]:
    """The legend of the accounts, in the order of the stack."""
    accounts = _accounts(table.lines[flow])
    colours = theme.account_colours(accounts)
    return [Swatch(name, _title(a)) for name, a in zip(colours, accounts, strict=True)]


def _title(account: str) -> str:
    return ledger.title(account).replace("`", "")


def _accounts(line: Line) -> list[str]:
    return ledger.ordered(name for books in line.books.values() for name in books.names)


def _engines(table: Table, line: Line) -> list[str]:
    there = {place[1] for place in line.books}
    return [name for name in table.engines if name in there]


def _panels(table: Table, line: Line) -> dict[tuple[str, str], str]:
    """A panel for each variant and engine that has a ledger, with its heading."""
    there = {place[:2] for place in line.books}
    engines = _engines(table, line)
    found = {}
    for variant in table.variants:
        for engine in engines:
            if (variant, engine) in there:
                words = [variant] if len(table.variants) > 1 else []
                words += [engine] if len(engines) > 1 or not words else []
                found[variant, engine] = ", ".join(words)
    return dict(list(found.items())[: base.MAX_FACETS])


def _rows(
    table: Table, line: Line, accounts: Sequence[str], panels: Mapping[tuple[str, str], str]
) -> list[Row]:
    axis = table.x
    if axis is None:
        raise AssertionError("internal error: the ledger over the sweep needs a swept axis")
    rest = min(place[2][1:] for place in line.books)
    places = sorted((place for place in line.books if place[2][1:] == rest), key=lambda place: place[2][0])
    step = -(-len(axis.texts) // _MOST)
    rows: list[Row] = []
    for place in places:
        variant, engine, at = place
        index = at[0]
        if (variant, engine) not in panels or (index % step and index != len(axis.texts) - 1):
            continue
        books = line.books[place]
        for order, account in enumerate(accounts):
            # Every account has a row at every value, since an area would bridge a gap.
            row: Row = {
                "panel": panels[variant, engine],
                "where": axis.texts[index],
                "account": _title(account),
                "family": ledger.family(account).title,
                "share": float(f"{100 * books.share(account):.5g}"),
                "order": order,
            }
            if axis.numbers is not None:
                row["x"] = axis.unit.of(axis.numbers[index])
            rows.append(row)
    return rows


def _fixed(table: Table, line: Line) -> str:
    """Text with the fixed values of all axes but the first."""
    rest = min(place[2][1:] for place in line.books)
    pairs = zip(table.axes[1:], rest, strict=True)
    return ", ".join(f"{axis.label} {axis.texts[index]}" for axis, index in pairs)


FIGURE = base.Figure("ledger", "The ledger over the sweep", applies, draw, says, lambda _: "none", blocks)
