"""Writes text into HTML and JSON; all text of a testbed is treated as hostile and escaped."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec


class Swatch(msgspec.Struct, frozen=True):
    """An entry of a legend: the name of a colour in the theme, and its meaning."""

    colour: str
    text: str


def esc(text: object) -> str:
    """Text for an element's content or a quoted attribute."""
    return html.escape(str(text), quote=True)


def prose(text: object) -> str:
    """A sentence whose backticks become `code` elements; everything else is escaped."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", esc(text))


def embed_json(value: object) -> str:
    """JSON for inside a script element: no `<`, `>` or `&` as such, and no line separators of JavaScript.

    NaN and infinities are refused (`ValueError`): JSON has none.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    numeric: Iterable[int] = (),
    kind: Literal["plain", "tall", "cards"] = "plain",
) -> str:
    """A table that scrolls inside its own box, its caption above. Cells and heads are HTML already.

    `numeric` are the right-aligned columns. A `tall` table also scrolls vertically; in a table of `cards`
    each row becomes a card on a phone.
    """
    right = set(numeric)
    labels = [re.sub(r"<[^>]*>", " ", text).strip() for text in head]

    def cell(tag: str, index: int, content: str) -> str:
        style = ' class="number"' if index in right else ""
        more = ' scope="col"' if tag == "th" else f' data-label="{labels[index]}"' if kind == "cards" else ""
        return f"<{tag}{more}{style}>{content}</{tag}>"

    header = "".join(cell("th", i, text) for i, text in enumerate(head))
    body = "".join(
        "<tr>" + "".join(cell("td", i, text) for i, text in enumerate(row)) + "</tr>\n" for row in rows
    )
    name = re.sub(r"<[^>]*>", "", caption) or "Table"
    above = f'<p class="caption">{caption}</p>' if caption else ""
    return (
        f"{above}"
        f'<div class="scroll {kind}" role="region" tabindex="0" aria-label="{name}">'
        f'<table aria-label="{name}"><thead><tr>{header}</tr></thead><tbody>\n{body}</tbody></table></div>'
    )


def swatches(entries: Iterable[Swatch]) -> str:
    """A legend of coloured blocks."""
    items = "".join(f"<li>{_swatch(f'var(--{one.colour})')}{esc(one.text)}</li>" for one in entries)
    return f'<ul class="key">{items}</ul>' if items else ""


def _swatch(colour: str) -> str:
    inner = f'<rect x="4" y="1" width="12" height="12" fill="{colour}"/>'
    return f'<svg width="20" height="14" aria-hidden="true">{inner}</svg>'


def details(summary: str, body: str) -> str:
    """A part of the page that few readers need, folded under its summary; both are HTML already."""
    return f"<details><summary>{summary}</summary>{body}</details>" if body else ""


def chart_box(name: str, says: str, key: str = "", title: str = "") -> str:
    """The box of a chart: heading, legend and caption; the page draws the chart `name` into it."""
    heading = f"<h3>{esc(title)}</h3>" if title else ""
    label = f"{title}. {says}" if title else says
    return (
        f'<div class="figures"><figure class="whole" id="figure-{name}">{heading}{key}'
        f'<div class="chart" data-chart="{name}" role="img" aria-label="{esc(label)}"></div>'
        f"<figcaption>{esc(says)}</figcaption></figure></div>"
    )
