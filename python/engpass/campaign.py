"""The points of a campaign, their order, and the digest that identifies a campaign."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass  # not msgspec: `check` and `--help` start without it
from pathlib import Path
from typing import TYPE_CHECKING

from engpass.error import ChoiceError, EngpassError, nearest
from engpass.jsondata import Json

if TYPE_CHECKING:
    from engpass.types.outcome import SweptValue

ENGINES = ("limit", "simulate", "emulate", "measure")
"""All engines in the order in which their points run and appear in tables."""

MODEL = ("limit", "simulate")
"""The engines that run without real hosts, which a campaign uses by default."""

ONCE = frozenset({"limit"})
"""Engines that draw no random numbers: their points run once, whatever the number of repeats."""

RESULT_VERSION = 1
"""Part of a campaign's digest: raised if results change for a reason that the build's hash does not show."""

MAX_POINTS = 10_000
"""Maximum number of points that a campaign runs without confirmation (`--yes`)."""

MOST_POINTS = 100_000_000
"""Maximum number of points of a campaign, even with `--yes`: more can only be a typing error."""


@dataclass(frozen=True)
class AxisValue:
    """A swept value: its text in the file, and as a number in base units if it is a quantity."""

    text: str
    number: float | None
    unit: str | None


@dataclass(frozen=True)
class Axis:
    """A swept path of the testbed, and its values in order."""

    path: str
    values: tuple[AxisValue, ...]


def axes_from_json(text: str) -> tuple[Axis, ...]:
    """Parse the axes of a sweep from the JSON that the native module and the store write."""
    return tuple(
        Axis(axis["path"], tuple(AxisValue(v["text"], v["number"], v["unit"]) for v in axis["values"]))
        for axis in json.loads(text)
    )


@dataclass(frozen=True, slots=True)
class Point:
    """One run of one engine: variant, swept values and repeat, with its position in the plan."""

    position: int
    engine: str
    variant: str
    sweep: tuple[tuple[str, str], ...]
    repeat: int

    def __str__(self) -> str:
        sweep = "".join(f", {path} = {text}" for path, text in self.sweep)
        return f"{self.engine} of `{self.variant}`{sweep}, repeat {self.repeat}"


@dataclass(frozen=True)
class Plan:
    """All points of a campaign in order: by engine, variant, sweep point, and repeat (which varies fastest).

    Points are computed from their position, never listed: a sweep of a million points costs no memory.
    """

    engines: tuple[str, ...]
    variants: tuple[str, ...]
    axes: tuple[Axis, ...]
    repeats: int

    @functools.cached_property
    def sweep_points(self) -> int:
        """Number of combinations of swept values; 1 without a sweep."""
        count = 1
        for axis in self.axes:
            count *= len(axis.values)
        return count

    def _repeats(self, engine: str) -> int:
        return 1 if engine in ONCE else self.repeats

    @functools.cached_property
    def total(self) -> int:
        """Number of points of the campaign, over all engines."""
        return len(self.variants) * self.sweep_points * sum(self._repeats(e) for e in self.engines)

    def point(self, position: int) -> Point:
        """The point at a position from 0 to `total - 1`."""
        rest = position
        for engine in self.engines:
            repeats = self._repeats(engine)
            size = len(self.variants) * self.sweep_points * repeats
            if rest < size:
                rest, repeat = divmod(rest, repeats)
                variant, sweep = divmod(rest, self.sweep_points)
                return Point(position, engine, self.variants[variant], self.sweep(sweep), repeat)
            rest -= size
        raise IndexError(f"position {position} of {self.total}")

    def sweep(self, index: int) -> tuple[tuple[str, str], ...]:
        """The swept paths and the texts of their values at one sweep point; the last axis is the fastest."""
        return tuple(pairs[index // stride % len(pairs)] for pairs, stride in self._pairs)

    def values(self, index: int) -> tuple[AxisValue, ...]:
        """The values of all axes at one sweep point."""
        return tuple(
            axis.values[index // stride % len(pairs)]
            for axis, (pairs, stride) in zip(self.axes, self._pairs, strict=True)
        )

    @functools.cached_property
    def _pairs(self) -> list[tuple[list[tuple[str, str]], int]]:
        """Path and text of every value of each axis, and the sweep points from one value to the next."""
        found, stride = [], self.sweep_points
        for axis in self.axes:
            stride //= max(1, len(axis.values))
            found.append(([(axis.path, value.text) for value in axis.values], stride))
        return found

    def positions(self, engine: str, variant: str, sweep: int) -> range:
        """Positions in the plan of all repeats of one engine, variant and sweep point."""
        start = 0
        for other in self.engines:
            repeats = self._repeats(other)
            if other == engine:
                start += (self.variants.index(variant) * self.sweep_points + sweep) * repeats
                return range(start, start + repeats)
            start += len(self.variants) * self.sweep_points * repeats
        return range(0)

    def __iter__(self) -> Iterator[Point]:
        return (self.point(i) for i in range(self.total))


def swept_values(point: Point, axes: Sequence[Axis]) -> dict[str, SweptValue]:
    """The swept values of a point, as outcomes have them: numbers in base units, other values as text."""
    from engpass.types.outcome import SweptValue

    numbers = {(axis.path, value.text): value.number for axis in axes for value in axis.values}
    found = {}
    for path, text in point.sweep:
        number = numbers.get((path, text))
        found[path] = SweptValue(text=text) if number is None else SweptValue(number=number)
    return found


def choose(what: str, wanted: Iterable[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """The names of `known` that are wanted, in that order; all if `wanted` is `None`.

    Raises `ChoiceError` if one is unknown, or if `wanted` is empty.
    """
    if wanted is None:
        return tuple(known)
    names = list(wanted)
    for name in names:
        if name not in known:
            raise ChoiceError(f"unknown {what} `{name}`", nearest(name, known))
    if not names:
        raise ChoiceError(f"no {what} is selected", nearest("", known))
    return tuple(name for name in known if name in names)


def check_size(total: int, limit: int | None) -> None:
    """Raise `EngpassError` if `total` points are more than `limit`, or than `MOST_POINTS`."""
    if total > MOST_POINTS:
        raise EngpassError(
            f"this campaign has {total:,} points, more than {MOST_POINTS:,}",
            "use larger steps in the sweep, or fewer repeats",
        )
    if limit is not None and total > limit:
        raise EngpassError(
            f"this campaign has {total:,} points, more than {limit:,}",
            "`--yes` runs it anyway; larger steps, `--variant` and `--repeats` reduce it",
        )


@functools.cache
def build() -> str:
    """Fingerprint of the native module, which identifies the model.

    A campaign is not completed with outcomes of another build: results of two models would be mixed.
    """
    import hashlib

    from engpass import _engpass

    file = getattr(_engpass, "__file__", None)
    code = Path(file).read_bytes() if file is not None else b""
    return hashlib.sha256(code).hexdigest()[:16]


def digest(
    plan: Plan,
    text: str,
    overrides: Sequence[tuple[str, str]],
    more: Mapping[str, Json] | None = None,
) -> str:
    """The identity of a run: a hash of everything that can change a point or its position."""
    import hashlib

    from engpass import _engpass

    content = {
        "result_version": RESULT_VERSION,
        "version": _engpass.version(),
        "build": build(),
        "text": text,
        "overrides": [list(pair) for pair in overrides],
        "engines": plan.engines,
        "variants": plan.variants,
        "axes": [asdict(axis) for axis in plan.axes],
        "repeats": plan.repeats,
    }
    return hashlib.sha256(json.dumps(content | dict(more or {}), sort_keys=True).encode()).hexdigest()
