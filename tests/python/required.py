"""Optional values of an outcome that are present in a test."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return a value that must not be `None`."""
    assert value is not None
    return value
