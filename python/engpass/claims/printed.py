"""Looking a printed value up in the text of a source.

A text is Markdown: its headings begin with `#`. Blanks do not count, and characters are compared after
Unicode NFKC, so that letters and digits of double width are the usual ones.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from engpass.error import EngpassError

_NUMBERED = re.compile(r"(\d+(?:\.\d+)*)\.?\s+\S")
_TEX_TEXT = re.compile(r"\\(?:text|mathrm|mbox)\{([^{}]*)\}")


class SourceTextError(EngpassError):
    """A text, a section or a value that is not there."""


def source_text(directory: Path, title: str) -> str:
    """The text of the one file of a directory that contains a title; raises `SourceTextError`."""
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
            "put the text of the source there, once",
        )
    return next(iter(found.values()))


def section_of(text: str, section: str) -> str:
    """The text of a section up to the next heading that is not below it; raises `SourceTextError`.

    A section is named by its number, `4.1`, and has those numbered below it, `4.1.2`, or by its title.
    """
    lines = text.splitlines()
    headings = [(at, line.lstrip("#").strip()) for at, line in enumerate(lines) if line.startswith("#")]
    for position, (at, heading) in enumerate(headings):
        if section in (_number(heading), heading):
            after = (
                later
                for later, other in headings[position + 1 :]
                if not (_number(other) or "").startswith(f"{section}.")
            )
            return "\n".join(lines[at : next(after, len(lines))])
    known = ", ".join(_number(heading) or heading for _, heading in headings)
    raise SourceTextError(f"the text has no section `{section}`", f"it has {known}")


def prints(text: str, printed: str) -> bool:
    """Whether a text has a value, not as a part of a longer number or word."""
    letters = "".join(_normal(printed).split())
    pattern = r"\s*".join(re.escape(letter) for letter in letters)
    before = r"(?<![0-9.,])" if letters[0].isdigit() else _edge(letters[0], r"(?<![A-Za-z])")
    after = _edge(letters[-1], r"(?![A-Za-z0-9/])")
    return re.search(before + pattern + after, _normal(text)) is not None


def _edge(letter: str, guard: str) -> str:
    """A guard where a word ends at its blanks: other scripts write on."""
    return guard if letter.isascii() and letter.isalnum() else ""


def _number(heading: str) -> str | None:
    match = _NUMBERED.match(heading)
    return match[1] if match else None


def _normal(text: str) -> str:
    return _TEX_TEXT.sub(r"\1", unicodedata.normalize("NFKC", text))


def _squeezed(text: str) -> str:
    return "".join(_normal(text).split())
