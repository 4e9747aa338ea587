"""Errors that a user can cause. A message states the cause first, then the cure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict


class Diagnostic(TypedDict):
    """One error or warning about a testbed, with its place in the file."""

    code: str
    severity: str
    path: str | None
    file: str
    line: int | None
    column: int | None
    message: str
    help: str | None


class EngpassError(Exception):
    """An error that the user can fix.

    `message` names the cause, `help` the cure; neither ends with a full stop.
    """

    def __init__(self, message: str, help: str | None = None) -> None:  # noqa: A002 (the field's name)
        super().__init__(message)
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return self.message if self.help is None else f"{self.message}\nhelp: {self.help}"


class SourceError(EngpassError):
    """A testbed file that cannot be read."""


class StoreError(EngpassError):
    """A store that cannot be opened, read or written."""


class ChoiceError(EngpassError):
    """An unknown name of a variant, flow, run or other thing that a user may choose."""


class NeedsMemoryError(EngpassError):
    """A run needs more memory than is allowed: about `bytes`."""

    def __init__(self, message: str, help: str, bytes: int) -> None:  # noqa: A002 (the fields' names)
        super().__init__(message, help)
        self.bytes = bytes


def nearest(name: str, known: Iterable[str]) -> str:
    """The cure for an unknown name: a hint at the nearest known name, or a list of all known names."""
    import difflib

    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    if not names:
        return "none is defined"
    shown = ", ".join(f"`{n}`" for n in names[:12])
    return f"use one of {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")
