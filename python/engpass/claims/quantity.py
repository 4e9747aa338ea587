"""Quantities with units: read from claims files, and formatted for tables."""

from __future__ import annotations

import math
import re
from decimal import Decimal

import msgspec

from engpass.formatting import both, quantity
from engpass.types.units import UNITS

_WRITTEN = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(\S+)")


class Quantity(msgspec.Struct, frozen=True):
    """A number in a base unit (`B`, `bit/s`, `B/s`, `s`, cells; a share as a fraction), and the text read."""

    value: float
    unit: str
    text: str

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a text such as `22.10 Mbit/s`; raises `ValueError` with the reason why it is no quantity."""
        found = _WRITTEN.fullmatch(text.strip())
        if found is None or found[2] not in UNITS:
            raise ValueError(f"`{text}` is not a quantity: write a number and one of {', '.join(UNITS)}")
        unit, factor = UNITS[found[2]]
        return cls(float(Decimal(found[1]) * factor), unit, text.strip())

    def __str__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        """The unit as it was written: `Mbit/s`."""
        return self.text.split()[-1]

    @property
    def decimals(self) -> int:
        """Number of decimals as written: 2 for `22.10 Mbit/s`."""
        number = self.text.partition(" ")[0]
        return sum(letter.isdigit() for letter in number.partition(".")[2])


def say(value: float, unit: str) -> str:
    """Format a value, given in its base unit, with another unit: `22.10 Mbit/s`, `4.26 kB`, `16.4 %`."""
    if not math.isfinite(value):
        raise ValueError(f"{value} {unit} is not a valid result")
    return quantity(value, unit)


def say_range(low: float, high: float, unit: str) -> str:
    """Format two values in one unit: `21.41 to 21.56 Mbit/s`; equal values as one."""
    if low == high:
        return say(low, unit)
    return both(low, high, unit)
