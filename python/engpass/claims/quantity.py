"""Quantities with units, as claims write them and as tables show them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from engpass.settings import UNITS

_WRITTEN = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(\S+)")


@dataclass(frozen=True)
class Quantity:
    """A number in its base unit (`B`, `bit/s`, `B/s`, `s`, cells; shares as fractions), and as written."""

    value: float
    unit: str
    text: str

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read `22.10 Mbit/s`; raises `ValueError` with what is wrong."""
        found = _WRITTEN.fullmatch(text.strip())
        if found is None or found[2] not in UNITS:
            raise ValueError(f"`{text}` is no quantity: write a number and one of {', '.join(UNITS)}")
        unit, factor = UNITS[found[2]]
        return cls(float(Decimal(found[1]) * factor), unit, text.strip())

    def __str__(self) -> str:
        return self.text

    @property
    def decimals(self) -> int:
        """Decimals as written: 2 of `22.10 Mbit/s`."""
        number = self.text.partition(" ")[0]
        return sum(letter.isdigit() for letter in number.partition(".")[2])


# Units that tables use, the largest first.
_SHOWN = {
    "bit/s": ("Gbit/s", "Mbit/s", "kbit/s", "bit/s"),
    "B": ("MB", "kB", "B"),
    "B/s": ("GB/s", "MB/s", "kB/s", "B/s"),
    "s": ("s", "ms", "us", "ns"),
    "": ("%",),
}


def say(value: float, unit: str, decimals: int = 2) -> str:
    """A value in its base unit for people: `22.10 Mbit/s`, `4.26 kB`, `16.43 %`."""
    if not math.isfinite(value):
        raise ValueError(f"{value} {unit} is no result")
    name = _unit(value, unit)
    number = value / _factor(name)
    whole = unit not in _SHOWN and number == int(number)
    text = f"{number:,.0f}" if whole else f"{number:.{decimals}f}"
    return f"{text} {name}".strip()


def say_range(low: float, high: float, unit: str, decimals: int = 2) -> str:
    """Two values in one unit: `21.41 to 21.56 Mbit/s`; one of them if they are the same."""
    if low == high:
        return say(low, unit, decimals)
    name = _unit(max(abs(low), abs(high)), unit)
    factor = _factor(name)
    return f"{low / factor:.{decimals}f} to {high / factor:.{decimals}f} {name}".strip()


def _factor(name: str) -> float:
    return float(UNITS[name][1]) if name in UNITS else 1.0


def _unit(value: float, unit: str) -> str:
    # A tenth of a unit still reads well, 0.26 Mbit/s, but 150.13 Mbit/s would lose what tells it from others.
    names = _SHOWN.get(unit, (unit,))
    least = {"Gbit/s": 1.0, "GB/s": 10.0}
    return (
        next((name for name in names if abs(value) >= least.get(name, 0.1) * _factor(name)), names[-1])
        if value
        else ("Mbit/s" if unit == "bit/s" else names[-1])
    )
