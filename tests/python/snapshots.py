"""Snapshot files of outputs in `snapshots/`: tests compare them, and `UPDATE=1 pytest` rewrites them."""

from __future__ import annotations

import difflib
import os
from html.parser import HTMLParser
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).parent / "snapshots"


def check_snapshots(texts: dict[str, str]) -> None:
    """Compare texts with their snapshot files by name, or write the files if `UPDATE` is set.

    Fails with a unified diff of all that differ.
    """
    diffs: list[str] = []
    for name, obtained in texts.items():
        path = DIRECTORY / name
        # Trailing blanks of a table have no meaning, and editors remove them.
        text = "".join(f"{line.rstrip()}\n" for line in obtained.splitlines())
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if os.environ.get("UPDATE"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            lines = before.splitlines(), text.splitlines()
            diffs += difflib.unified_diff(*lines, f"snapshots/{name}", "obtained", lineterm="")
    if diffs:
        pytest.fail("\n".join([*diffs, "UPDATE=1 writes the snapshots anew"]), pytrace=False)


def stray_snapshots(names: set[str]) -> list[str]:
    """The snapshot files that are not in `names`, so that no test compares them."""
    files = (path for path in DIRECTORY.rglob("*") if path.is_file())
    return sorted({str(path.relative_to(DIRECTORY)) for path in files} - names)


_HIDDEN = ("script", "style", "head")
_INLINE = ("a", "b", "button", "code", "em", "span", "small", "strong", "sub", "sup", "tspan")


class _Text(HTMLParser):
    """Collects the text of a page, a line for each block element and row of a table."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line = ""
        self._hidden = 0
        self._verbatim = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._verbatim |= tag == "pre"
        if tag in ("td", "th", "dd"):
            self._line += " | " if self._line.strip() else ""
        elif tag not in _INLINE:
            self._break()

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in _HIDDEN
        if tag not in (*_INLINE, "td", "th", "dt"):
            self._break()
        self._verbatim &= tag != "pre"

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._line += data

    def _break(self) -> None:
        parts = self._line.splitlines() if self._verbatim else [" ".join(self._line.split())]
        self.lines += [part for part in parts if part.strip()]
        self._line = ""


def page_text(page: str) -> str:
    """The text of an HTML page: no markup, no scripts, a line for each block element."""
    parser = _Text()
    parser.feed(page)
    parser.close()
    return "\n".join(parser.lines)
