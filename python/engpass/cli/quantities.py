"""Quantities on the command line: a number and a unit, as in a testbed file."""

from __future__ import annotations

from decimal import Decimal

from engpass.error import EngpassError
from engpass.settings import Amount
from engpass.types.units import UNITS


def _units(base: str) -> dict[str, Decimal]:
    return {name: factor for name, (of, factor) in UNITS.items() if of == base}


def rate(option: str, text: str | None) -> int | None:
    """Parse a rate into bit/s; raises `EngpassError`."""
    found = _read(option, text, _units("bit/s"), "100 Mbit/s")
    return None if found is None else int(found)


def seconds(option: str, text: str | None) -> float | None:
    """Parse a time into seconds; raises `EngpassError`."""
    found = _read(option, text, _units("s") | {"h": Decimal(3600)}, "60 s")
    return None if found is None else float(found)


def share(option: str, text: str | None) -> float | None:
    """Parse a share into a fraction (100 % is 1.0); raises `EngpassError`."""
    found = _read(option, text, _units(""), "0.5 %")
    return None if found is None else float(found)


def _read(option: str, text: str | None, units: dict[str, Decimal], example: str) -> Decimal | None:
    if text is None:
        return None
    amount = Amount.read(text.strip())
    if amount is None or amount.unit not in units or amount.number < 0:
        known = ", ".join(f"`{unit}`" for unit in units)
        raise EngpassError(f"`{option}` is `{text}`", f'write it as "{example}"; units are {known}')
    return amount.number * units[amount.unit]
