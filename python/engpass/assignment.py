"""Splits arguments of the form `PATH=VALUE`."""

from __future__ import annotations

import re

# One part of a dotted TOML key: text in quotes, or bare text without quotes, dots and `=`.
_PART = r"""(?:\s*"(?:[^"\\]|\\.)*"\s*|\s*'[^']*'\s*|[^."'=]*)"""
_PATH = re.compile(rf"({_PART}(?:\.{_PART})*)=", re.DOTALL)


def split(text: str) -> tuple[str, str] | None:
    """The path and the value around the first `=` outside quotes; `None` if the text has no `=`."""
    found = _PATH.match(text)
    if found is not None:
        return found[1], text[found.end() :]
    # The text does not begin with a dotted key, so quotes have no meaning: split at the first `=`.
    path, equals, value = text.partition("=")
    return (path, value) if equals else None
