"""Formats figures for people, on terminals, in reports and claims: rates, sizes, times and shares."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING

from engpass.types.units import UNITS
from engpass.units import Unit, largest_unit, plain

if TYPE_CHECKING:
    from engpass.types.outcome import Place


def rate(bit_per_s: float | None) -> str:
    """A rate with the unit that fits its size and two decimals."""
    return "" if bit_per_s is None else _fixed(bit_per_s, "bit/s")


def byte_rate(bytes_per_s: float) -> str:
    """A rate in bytes per second, as for memories and buses, with the unit that fits and two decimals."""
    return _fixed(bytes_per_s, "B/s")


def bits(amount: float) -> str:
    """A number of bits with the unit that fits its size and two decimals."""
    return _fixed(amount, "bit")


def size(count: int) -> str:
    """A size in bytes with a binary unit (powers of 1024)."""
    unit = largest_unit("B", count, binary=True)
    return f"{count / unit.factor:g} {unit.name}"


_SMALL = 0.00995
"""A share below this has less than 1.0 % after rounding to two digits."""


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal; one below 1 % has up to two digits, so that it is not 0."""
    if share is None:
        return ""
    if 0 < abs(share) < 0.0001:
        return "< 0.01 %"
    small = 0 < abs(share) < _SMALL
    return f"{share * 100:.2g} %" if small else f"{share * 100:.1f} %"


def place_name(place: Place, parallel: Container[str] = (), arrow: str = "→") -> str:
    """The name of the place of drops: the node, `router (card)`, or `switch → host` for a transmitter.

    The name of the link follows if it is one of the `parallel` links: `near → far (upper)`. JSON data has the
    arrow `->`.
    """
    if place.to is None:
        return f"{place.node} ({place.card})" if place.card else place.node
    link = f" ({place.link})" if place.link in parallel else ""
    return f"{place.node} {arrow} {place.to}{link}"


def duration(seconds: float | None) -> str:
    """A time in seconds with the unit that fits its size and three digits, as in `1.5 ms` or `36 h`."""
    if seconds is None:
        return ""
    unit = _calendar(seconds)
    if unit is None:
        return _unit("s", seconds).say(float(f"{seconds:.3g}"), 3)
    return f"{plain(round(seconds / unit.factor, 9), 3)} {unit.name}"


_CALENDAR = tuple(Unit(name, float(UNITS[name][1])) for name in ("d", "h", "min"))


def _calendar(seconds: float) -> Unit | None:
    """The unit of a long time: a whole number of it from two minutes on, else two hours or days or more."""
    for unit in _CALENDAR:
        number = abs(seconds) / unit.factor
        whole = abs(seconds) >= 120 and math.isclose(number, round(number), rel_tol=1e-9)
        if (whole and number > 0.5) or (number >= 2 and unit.name != "min"):
            return unit
    return None


_SAID: Mapping[str, Callable[[float], str]] = {"bit/s": rate, "B/s": byte_rate, "s": duration, "": percent}


def quantity(value: float, base: str) -> str:
    """A value with its base unit (`bit/s`, `B/s`, `B`, `s`, none for shares, else a counted thing)."""
    if base in _SAID:
        return _SAID[base](value)
    if base == "B" or value != int(value):
        return _fixed(value, base)
    return f"{value:,.0f} {_counted_unit(base, value)}"


def both(low: float, high: float, base: str) -> str:
    """Two values in a base unit as text, with one unit if it fits both: `21.41 to 21.56 Mbit/s`."""
    return _pair(low, high, base, "to")


_FAR = 0.1
"""The smaller of two values gets its own unit if it is less than this in the unit of the larger one."""


def _pair(one: float, other: float, base: str, word: str) -> str:
    """Two values joined by a word, in the unit of the larger one; a far smaller value has its own unit."""
    unit = _fitting(base, max(abs(one), abs(other)))
    least = min(abs(one), abs(other))
    own = base in _LADDERED and 0 < least < _FAR * unit.factor
    units = [_fitting(base, value) if own else unit for value in (one, other)]
    texts = [
        _digits(value / unit.factor, base, unit) for value, unit in zip((one, other), units, strict=True)
    ]
    if units[0] != units[1]:
        texts[0] += f" {units[0].name}"
    return f"{texts[0]} {word} {texts[1]} {units[1].name}"


def _fitting(base: str, value: float) -> Unit:
    """The unit of a value, for times also minutes, hours and days."""
    return (_calendar(value) if base == "s" else None) or _unit(base, value)


_LADDERED = ("s", "bit/s", "B/s", "B", "bit")
"""Base units for which there are smaller or larger units."""


def _digits(number: float, base: str, unit: Unit) -> str:
    if base == "s":
        return plain(float(f"{number:.3g}"))
    return f"{number:.{0 if unit.name in _WHOLE else 1 if base == '' else 2}f}"


def written(unit: str, decimals: int, *values: float) -> str:
    """Format values, given in a base unit, in the unit and with the decimals of another figure.

    A value below 1 in that unit has three digits; counts have no decimals. Several values are joined by `to`.
    """
    base, factor = UNITS[unit]
    numbers = [value / float(factor) for value in values]
    largest = max(map(abs, numbers))
    if unit in _WHOLE or (base in _COUNTED and all(number == int(number) for number in numbers)):
        decimals = 0
    elif base and 0 < largest < 1:
        decimals = min(9, max(decimals, 2 - math.floor(math.log10(largest))))
    if base in _COUNTED:
        unit = _counted_unit(base, numbers[-1])
    return f"{' to '.join(f'{number:,.{decimals}f}' for number in numbers)} {unit}"


def _counted_unit(base: str, value: float) -> str:
    """The name of a counted thing, in the singular for the value 1; `fps` is a unit."""
    return base.removesuffix("s") if value == 1 and base.isalpha() and base != "fps" else base


def _unit(base: str, value: float) -> Unit:
    """The unit for a rounded value: 999 999 bit/s are shown as 1.00 Mbit/s, not as 1000.00 kbit/s."""
    # Times are shown with three digits, other values with two decimals.
    return largest_unit(base, float(f"{value:.{3 if base == 's' else 5}g}"))


def _fixed(value: float, base: str) -> str:
    unit = _unit(base, value)
    return f"{value / unit.factor:.{0 if unit.name in _WHOLE else 2}f} {unit.name}"


_COUNTED = ("cells", "packets", "datagrams", "timeouts")
_WHOLE = ("bit/s", "bit", "B")
"""Units in which all values are whole numbers."""


def change(before: float | None, after: float | None, base: str) -> str:
    """A change from one value to another in a base unit as text: `6.10 → 21.80 Mbit/s`, `0.3 → 2.1 %`.

    An unknown value is `none`; if both are unknown, the text is empty.
    """
    if before is None or after is None:
        texts = ["" if one is None else quantity(one, base) for one in (before, after)]
        return f"{texts[0] or 'none'} → {texts[1] or 'none'}" if any(texts) else ""
    if not base:
        return f"{percent(before).removesuffix(' %')} → {percent(after)}"
    return _pair(before, after, base, "→")


def count(number: int, noun: str) -> str:
    """A number with its noun as text: `1 point`, `2,000 points`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def listed(names: Sequence[str]) -> str:
    """Names as a list in a sentence: `a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def named(key: str) -> str:
    """The name of a figure of an outcome, as tables show it."""
    return "smoothed round-trip time" if key == "smoothed_rtt_s" else key.replace("_", " ")


def counted(key: str, value: float) -> str:
    """A figure of an outcome as text: a count, or a time if the key says so."""
    return duration(value) if key.endswith("_s") else f"{value:,.0f}"


def lateness(found: Mapping[str, int | None]) -> str:
    """Text: how late an emulated network sent its packets: `half by 12 us, 99.9 % by 80 us, at most 2 ms`."""
    if found.get("packets") == 0:
        return "no packets yet"
    words = [
        f"{share} within {duration(late / 1e9)}"
        for key, share in (("p50_ns", "50 %"), ("p99_ns", "99 %"), ("p999_ns", "99.9 %"))
        if (late := found.get(key)) is not None
    ]
    if (most := found.get("max_ns")) is not None:
        words.append(f"at most {duration(most / 1e9)}")
    return f"lateness of packets: {', '.join(words)}" if words else "no packets yet"


_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]+")


def clean(text: object) -> str:
    """Replace characters that names must not contain with spaces.

    These are control characters, line separators (which end strings in Vega's expressions) and lone
    surrogates (which UTF-8 cannot encode).
    """
    return _UNPRINTABLE.sub(" ", str(text))
