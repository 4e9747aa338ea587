"""How far the engines' answers lie apart: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FAR = 0.05
"""A difference beyond this share is marked: it has a reason that somebody should know."""

_REFERENCES = ("simulate", "emulate", "measure", "limit")


@dataclass(frozen=True)
class Apart:
    """What an engine found, against another one."""

    engine: str
    value: float
    share: float | None
    """By how much it is more than the reference, as a share of that; `None` for that itself, or of zero."""
    far: bool
    """Whether it is marked. A limit is only a bound: it is far off where another engine exceeds it."""


def reference(engines: Mapping[str, float]) -> str | None:
    """The engine that the others are held against: `simulate` if it is there."""
    return next((name for name in _REFERENCES if name in engines), None)


def apart(goodput: Mapping[str, float]) -> list[Apart]:
    """The goodput that each engine found, against that of the reference."""
    base = reference(goodput)
    if base is None:
        return []
    of = goodput[base]
    found = []
    for engine, value in goodput.items():
        share = None if engine == base else 0.0 if value == of else (value - of) / of if of else None
        if share is None:
            far = engine != base
        elif engine == "limit":
            far = share < -FAR
        else:
            far = abs(share) > FAR
        found.append(Apart(engine, value, share, far))
    return found
