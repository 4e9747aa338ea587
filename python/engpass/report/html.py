"""Text into HTML and JSON without a way out of either: everything a testbed says is taken as hostile."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any


def esc(text: object) -> str:
    """Text for an element's content or a quoted attribute."""
    return html.escape(str(text), quote=True)


def prose(text: object) -> str:
    """A sentence whose backticks become `code` elements; everything else is escaped."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", esc(text))


def embed_json(value: Any) -> str:
    """JSON for inside a script element: no `<`, `>` or `&` as such, and no line separators of JavaScript.

    NaN and infinities are refused (`ValueError`): JSON has none.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[int] = (), label: str = ""
) -> str:
    """A table that scrolls inside its own box. Cells and heads are HTML already; `numeric` are columns set right."""
    right = set(numeric)

    def cell(tag: str, index: int, content: str) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        style = ' class="number"' if index in right else ""
        return f"<{tag}{scope}{style}>{content}</{tag}>"

    header = "".join(cell("th", i, text) for i, text in enumerate(head))
    body = "".join("<tr>" + "".join(cell("td", i, text) for i, text in enumerate(row)) + "</tr>\n" for row in rows)
    name = esc(label or re.sub(r"<[^>]*>", "", caption))
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{name}">'
        f"<table><caption>{caption}</caption><thead><tr>{header}</tr></thead><tbody>\n{body}</tbody></table></div>"
    )
