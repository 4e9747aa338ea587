"""Compares the goodputs that engines give for a flow. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

FAR = 0.05
"""A difference of more than this share of the reference is marked in tables."""

LITTLE = 0.01
"""A difference of less than this share of the greatest goodput is not marked: one datagram against none."""

_REFERENCES = ("simulate", "emulate", "measure", "limit")


class Apart(msgspec.Struct, frozen=True):
    """The goodput according to one engine, compared with the reference."""

    engine: str
    value: float
    share: float | None
    """Excess over the reference as a share of it; `None` for the reference, or if only the reference is 0."""
    far: bool
    """True if the difference is marked. A limit is only a bound: it is marked if the reference exceeds it."""


def reference(engines: Mapping[str, float]) -> str | None:
    """The engine with which the others are compared: the first of `_REFERENCES` that has a goodput."""
    return next((name for name in _REFERENCES if name in engines), None)


def apart(goodput: Mapping[str, float]) -> list[Apart]:
    """The goodput according to each engine, compared with the reference."""
    base = reference(goodput)
    if base is None:
        return []
    of, little = goodput[base], LITTLE * max(goodput.values())
    found = []
    for engine, value in goodput.items():
        share = None if engine == base else 0.0 if value == of else (value - of) / of if of else None
        more = of - value if engine == "limit" else abs(value - of)
        found.append(Apart(engine, value, share, more > max(FAR * of, little)))
    return found
