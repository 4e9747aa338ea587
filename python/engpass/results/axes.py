"""The swept axes of a run: their values in base units, and their texts in figures."""

import re
from collections.abc import Sequence
from functools import cached_property

import msgspec

from engpass import campaign
from engpass.formatting import clean
from engpass.units import Unit, unit_for


class Axis(msgspec.Struct, frozen=True, dict=True):
    """One swept path.

    `texts` are its values as the figure writes them; `numbers` are the values in the base unit, or `None` for
    an axis of words (an encapsulation, a discard policy). `log` selects a logarithmic scale.
    """

    path: str
    label: str
    unit: Unit
    texts: tuple[str, ...]
    numbers: tuple[float, ...] | None
    log: bool

    @property
    def title(self) -> str:
        """Title of the axis in a figure."""
        return f"{self.label} in {self.unit.name}" if self.unit.name else self.label

    @property
    def span(self) -> str:
        """The range of the values as text, such as `1 kB to 64 kB`."""
        if len(self.texts) <= 3 or self.numbers is None:
            return ", ".join(self.texts)
        by_value = sorted(zip(self.numbers, self.texts, strict=True))
        return f"{by_value[0][1]} to {by_value[-1][1]}"

    def find(self, value: float | str | None) -> int | None:
        """Position of a swept value of an outcome on the axis; `None` if the axis does not have the value."""
        return None if value is None else self._positions.get(_key(value))

    @cached_property
    def _positions(self) -> dict[str, int]:
        values: Sequence[float | str] = self.numbers or self.texts
        return {_key(value): index for index, value in enumerate(values)}


def _key(value: float | str) -> str:
    """The lookup key of a value; numbers have nine digits, so that rounding errors do not lose a point."""
    return clean(value) if isinstance(value, str) else f"{value:.9g}"


def label(path: str) -> str:
    """The name of a swept path in words: `traffic.stream.message` becomes `message of stream`."""
    # Vega-Lite uses titles in expressions without escaping these characters.
    path = clean(path).replace("\\", "/")
    parts = [part.strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", path)]
    key = parts[-1].replace("_", " ") if parts else path
    text = f"{key} of {parts[-2]}" if len(parts) > 1 else key
    return text.replace('"', "'")


def axis_of(raw: campaign.Axis) -> Axis:
    """The axis for a figure from the swept path in the record of a run."""
    path, values = raw.path, raw.values
    spelt = [clean(value.text) for value in values]
    numbers = [value.number for value in values]
    if not values or any(number is None for number in numbers):
        return Axis(path, label(path), Unit("", 1), tuple(spelt), None, False)
    base = tuple(number for number in numbers if number is not None)
    unit = unit_for(values[0].unit, base, spelt)
    return Axis(
        path, label(path), unit, tuple(unit.say(number, 6) for number in base), base, _over_decades(base)
    )


def _over_decades(values: Sequence[float]) -> bool:
    """True if a logarithmic scale suits the values.

    They must be positive, span at least a factor of 30, and have steps that grow with the values.
    """
    ordered = sorted(set(values))
    if len(ordered) < 3 or ordered[0] <= 0 or ordered[-1] / ordered[0] < 30:
        return False
    return (ordered[-1] - ordered[-2]) > 4 * (ordered[1] - ordered[0])
