"""The type of JSON data whose structure another program defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A JSON value."""
