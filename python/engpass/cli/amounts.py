"""Quantities on the command line: a number and a unit, as in a testbed file."""

from __future__ import annotations

from decimal import Decimal

from engpass.error import EngpassError
from engpass.settings import Amount

_RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_TIMES = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
}
_SHARES = {"%": Decimal("0.01")}


def rate(option: str, text: str | None) -> int | None:
    """A rate in bit/s; raises `EngpassError`."""
    found = _read(option, text, {unit: Decimal(size) for unit, size in _RATES.items()}, "100 Mbit/s")
    return None if found is None else int(found)


def seconds(option: str, text: str | None) -> float | None:
    """A time in seconds; raises `EngpassError`."""
    found = _read(option, text, _TIMES, "60 s")
    return None if found is None else float(found)


def share(option: str, text: str | None) -> float | None:
    """A share, 1 being the whole; raises `EngpassError`."""
    found = _read(option, text, _SHARES, "0.5 %")
    return None if found is None else float(found)


def _read(option: str, text: str | None, units: dict[str, Decimal], example: str) -> Decimal | None:
    if text is None:
        return None
    amount = Amount.read(text.strip())
    if amount is None or amount.unit not in units or amount.number < 0:
        known = ", ".join(f"`{unit}`" for unit in units)
        raise EngpassError(f"`{option}` is `{text}`", f'write it as "{example}"; units are {known}')
    return amount.number * units[amount.unit]
