"""Units that people read.

The data come in bytes, bit/s, seconds and fractions, pages show kB, Mbit/s, ms and %.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A unit to show values in: `name` as it is printed, `factor` what one of it is in the base unit."""

    name: str
    factor: float

    def of(self, base: float) -> float:
        """The value in this unit, rounded to seven significant digits so that pages carry no noise."""
        return float(f"{base / self.factor:.7g}")

    def say(self, base: float, digits: int = 4) -> str:
        """The value with its unit, such as `22.1 Mbit/s`."""
        number = plain(base / self.factor, digits)
        return f"{number} {self.name}" if self.name else number


_LADDERS: dict[str, list[Unit]] = {
    "bit/s": [
        Unit("bit/s", 1),
        Unit("kbit/s", 1e3),
        Unit("Mbit/s", 1e6),
        Unit("Gbit/s", 1e9),
        Unit("Tbit/s", 1e12),
    ],
    "B/s": [Unit("B/s", 1), Unit("kB/s", 1e3), Unit("MB/s", 1e6), Unit("GB/s", 1e9)],
    "B": [Unit("B", 1), Unit("kB", 1e3), Unit("MB", 1e6), Unit("GB", 1e9)],
    "s": [Unit("ps", 1e-12), Unit("ns", 1e-9), Unit("µs", 1e-6), Unit("ms", 1e-3), Unit("s", 1)],
}
_BINARY = [Unit("B", 1), Unit("KiB", 1024), Unit("MiB", 1024**2), Unit("GiB", 1024**3)]
PERCENT = Unit("%", 0.01)


def plain(value: float, digits: int = 4) -> str:
    """A number with that many significant digits at most; whole numbers keep all theirs, up to 10^15."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    exponent = int(text.split("e")[1])
    return f"{value:.0f}" if 0 <= exponent < 15 else text


def unit_for(base: str | None, values: Iterable[float], texts: Iterable[str] = ()) -> Unit:
    """The unit in which the largest of `values` (in the base unit `base`) reads best.

    The spellings in `texts` decide between KiB and kB, and between a share and a bare number.
    """
    spelt = list(texts)
    if base == "" and any(text.rstrip().endswith("%") for text in spelt):
        return PERCENT
    if base not in _LADDERS:
        return Unit(base or "", 1)
    ladder = _LADDERS[base]
    if base == "B" and spelt and any("iB" in text for text in spelt):
        ladder = _BINARY
    largest = max((abs(value) for value in values), default=0.0)
    if base == "B/s" and any(text.endswith(" MB/s") for text in spelt):
        # As memories are rated: 1600 MB/s.
        return Unit("MB/s", 1e6)
    if largest == 0:
        return Unit(base, 1)
    fitting = [unit for unit in ladder if largest >= unit.factor * (1 - 1e-9)]
    return fitting[-1] if fitting else ladder[0]


def say_rate(bit_per_s: float, digits: int = 4) -> str:
    """A rate in the unit that suits it, such as `33.6 Mbit/s`."""
    return unit_for("bit/s", [bit_per_s]).say(bit_per_s, digits)


def say_share(share: float) -> str:
    """A fraction in per cent; what is not nothing does not read as 0 %."""
    if 0 < share < 0.0001:
        return "below 0.01 %"
    return PERCENT.say(share, 3)
