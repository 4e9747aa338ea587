"""What an outcome need not have, and has in a test."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """A value that is there."""
    assert value is not None
    return value
