"""Arguments of the form `PATH=VALUE`."""

from __future__ import annotations

import re

# Parts of a dotted key of TOML: quoted, or bare without quotes, dots and `=`.
_PART = r"""(?:\s*"(?:[^"\\]|\\.)*"\s*|\s*'[^']*'\s*|[^."'=]*)"""
_PATH = re.compile(rf"({_PART}(?:\.{_PART})*)=", re.DOTALL)


def split(text: str) -> tuple[str, str] | None:
    """The path and the value around the first `=` outside quotes; `None` without one."""
    found = _PATH.match(text)
    if found is not None:
        return found[1], text[found.end() :]
    # It is no dotted key, so its quotes mean nothing.
    path, equals, value = text.partition("=")
    return (path, value) if equals else None
