"""The unit that suits a value: rates, sizes, times and shares as text."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engpass.types.units import UNITS


class Unit(msgspec.Struct, frozen=True):
    """A unit for values: its printed `name`, and its size in base units (`factor`)."""

    name: str
    factor: float

    def of(self, base: float) -> float:
        """The value in this unit, rounded to seven significant digits so that pages carry no noise."""
        return float(f"{base / self.factor:.7g}")

    def say(self, base: float, digits: int = 4) -> str:
        """The value with its unit, such as `22.1 Mbit/s`; whole numbers keep all their digits."""
        number = plain(base / self.factor, digits)
        return f"{number} {self.name}" if self.name else number


def _ladder(*names: str) -> list[Unit]:
    return [Unit(name, float(UNITS[name][1])) for name in names]


_LADDERS = {
    "bit/s": _ladder("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"),
    "bit": [Unit("bit", 1), Unit("kbit", 1e3), Unit("Mbit", 1e6), Unit("Gbit", 1e9), Unit("Tbit", 1e12)],
    "B/s": _ladder("B/s", "kB/s", "MB/s", "GB/s"),
    "B": _ladder("B", "kB", "MB", "GB"),
    "s": _ladder("ps", "ns", "us", "ms", "s"),
    "": _ladder("%"),
}
_BINARY = _ladder("B", "KiB", "MiB", "GiB")
PERCENT = Unit("%", 0.01)


def plain(value: float, digits: int = 4) -> str:
    """A number with at most `digits` significant digits; whole numbers up to 10^15 keep all of them."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    exponent = int(text.split("e")[1])
    return f"{value:.0f}" if 0 <= exponent < 15 else text


def largest_unit(base: str, value: float, *, binary: bool = False) -> Unit:
    """The largest unit in which a value is at least 1; the base unit for 0."""
    ladder = _BINARY if binary else _LADDERS.get(base, [Unit(base, 1)])
    if value == 0:
        return next((unit for unit in ladder if unit.factor == 1), ladder[0])
    fitting = [unit for unit in ladder if abs(value) >= unit.factor * (1 - 1e-9)]
    return fitting[-1] if fitting else ladder[0]


def unit_for(base: str | None, values: Iterable[float], texts: Iterable[str] = ()) -> Unit:
    """The unit in which the largest of `values` (in the base unit `base`) reads best.

    The spellings in `texts` decide between KiB and kB, and between a share and a bare number.
    """
    spelt = list(texts)
    if not base:
        return PERCENT if any(text.rstrip().endswith("%") for text in spelt) else Unit("", 1)
    if base == "B/s" and any(text.endswith(" MB/s") for text in spelt):
        # As memories are rated: 1600 MB/s.
        return Unit("MB/s", 1e6)
    largest = max((abs(value) for value in values), default=0.0)
    return largest_unit(base, largest, binary=base == "B" and any("iB" in text for text in spelt))
