"""Finds a value that a source prints in the text of the source.

The text is Markdown, with headings that begin with `#`, or plain text with headings such as `3.0 Results`.
Blanks are ignored, and characters are compared after Unicode NFKC normalisation, which turns full-width
letters and digits into the usual ones.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from engpass.error import EngpassError

_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)\.?\s+\S")
_HEADING = re.compile(r"\d+(?:\.\d+)+ \S.{0,60}")
_TEX_TEXT = re.compile(r"\\(?:text|mathrm|mbox)\{([^{}]*)\}")


class SourceTextError(EngpassError):
    """The text of a source, or a section of it, is missing."""


def source_text(directory: Path, title: str) -> str:
    """The text of the one file in a directory that contains this title; raises `SourceTextError`."""
    wanted = _squeezed(title)
    found = {
        path: text
        for path in sorted(directory.iterdir())
        if path.is_file() and wanted in _squeezed(text := path.read_text(encoding="utf-8", errors="replace"))
    }
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise SourceTextError(
            f"`{directory}` has {len(found)} files with the title `{title}`: {names}",
            "keep exactly one file with the text of the source there",
        )
    return next(iter(found.values()))


def section_of(text: str, section: str) -> str:
    """The text of a section, up to the next heading that is not inside the section; raises `SourceTextError`.

    A section is named by its number or by its title. Section `4.1` includes `4.1.2`.
    """
    lines = text.splitlines()
    headings = [(at, line.lstrip("#").strip()) for at, line in enumerate(lines) if line.startswith("#")]
    if not headings:
        headings = [(at, line.strip()) for at, line in enumerate(lines) if _HEADING.fullmatch(line.strip())]
    for position, (at, heading) in enumerate(headings):
        if section in (_number(heading), heading):
            after = (
                later
                for later, other in headings[position + 1 :]
                if not (_number(other) or "").startswith(f"{section}.")
            )
            return "\n".join(lines[at : next(after, len(lines))])
    known = ", ".join(_number(heading) or heading for _, heading in headings)
    raise SourceTextError(f"the source text has no section `{section}`", f"it has {known}")


def prints(text: str, printed: str) -> bool:
    """True if the text contains `printed`, not as a part of a longer number or word."""
    letters = "".join(_normal(printed).split())
    pattern = r"\s*".join(re.escape(letter) for letter in letters)
    before = r"(?<![0-9.,])" if letters[0].isdigit() else _edge(letters[0], r"(?<![A-Za-z])")
    after = _edge(letters[-1], r"(?![A-Za-z0-9/])")
    return re.search(before + pattern + after, _normal(text)) is not None


def _edge(letter: str, guard: str) -> str:
    """`guard` for an ASCII letter or digit, else nothing: other scripts have no blanks between words."""
    return guard if letter.isascii() and letter.isalnum() else ""


def _number(heading: str) -> str | None:
    match = _NUMBERED.match(heading)
    return match[1] if match else None


def _normal(text: str) -> str:
    return _TEX_TEXT.sub(r"\1", unicodedata.normalize("NFKC", text))


def _squeezed(text: str) -> str:
    return "".join(_normal(text).split())
