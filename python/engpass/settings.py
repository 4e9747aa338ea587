"""The values of a testbed at one point, as the core answers them, and quantities as files write them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from engpass import _engpass
from engpass.source import Toml
from engpass.types.units import UNITS

Path = tuple[str, ...]

_AMOUNT = re.compile(r"\s*(\d[\d_]*(?:\.[\d_]*\d)?)\s*([^\s\d.].*?)\s*")


def split(path: str) -> Path:
    """Split a dotted key: `switch."my.switch".discard` has three parts. Raises `ValueError`."""
    return tuple(_engpass.split_path(path))


def join(parts: Sequence[str]) -> str:
    """Join parts to a dotted key, with quotes where TOML needs them."""
    return _engpass.join_path(parts)


class Amount(msgspec.Struct, frozen=True):
    """A quantity as a file writes it: `384 cells`."""

    number: Decimal
    unit: str

    @staticmethod
    def read(text: Toml | None) -> Amount | None:
        """Parse a quantity; `None` if the text is no quantity."""
        match = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
        return None if match is None else Amount(Decimal(match[1].replace("_", "")), match[2])

    def in_base(self) -> tuple[Decimal, str]:
        """The number converted to the base unit, and that unit; unchanged if unknown (`Mbit/s line`)."""
        base, factor = UNITS.get(self.unit, (self.unit, Decimal(1)))
        return self.number * factor, base

    def times(self, factor: Decimal | int) -> Amount:
        """The quantity times a factor, in the same unit."""
        return Amount(self.number * factor, self.unit)

    def __str__(self) -> str:
        return f"{_plain(self.number)} {self.unit}"


def _plain(number: Decimal) -> str:
    text = f"{number.normalize():f}"
    return text if len(text) < 12 else f"{round(number, 6):f}"


class Setting(msgspec.Struct, frozen=True):
    """A key of a testbed, or a table with its keys; `Setting` of `crates/engpass-testbed` describes it."""

    value: Any = None
    given: bool = False
    kind: str = ""
    choices: list[str] = []
    keys: dict[str, Setting] = {}

    def written(self) -> Toml | None:
        """The value, or the given values of a table; `None` without one."""
        if self.value is not None or not self.given:
            value: Toml | None = self.value
            return value
        found = {key: one.written() for key, one in self.keys.items() if one.given}
        return {key: one for key, one in found.items() if one is not None}


_NOTHING = Setting()


class Settings:
    """The values of a testbed for one variant and point, with overrides."""

    def __init__(self, root: Setting) -> None:
        self._root = root

    @staticmethod
    def at(
        campaign: _engpass.Campaign,
        variant: str | None,
        sweep: Iterable[tuple[str, str]],
        families: Sequence[str] = (),
    ) -> Settings:
        """The values at a point of a campaign; without a variant those of the file itself.

        `families` are the tables to read, such as `run`. By default all are read; with 10,000 hosts that
        takes seconds.
        """
        found = campaign.settings(variant, list(sweep), list(families))
        return Settings(msgspec.json.decode(found, type=Setting))

    def find(self, *path: str) -> Setting | None:
        """The setting at a path; `None` if there is no such key."""
        found: Setting | None = self._root
        for part in path:
            found = found.keys.get(part) if found is not None else None
        return found

    def get(self, *path: str) -> Toml | None:
        """The value at a path, or else its default; `None` without one."""
        return (self.find(*path) or _NOTHING).written()

    def amount(self, *path: str) -> Amount | None:
        """The quantity at a path, or else its default; `None` without one."""
        return Amount.read(self.get(*path))

    def names(self, family: str) -> list[str]:
        """The names of the components of a family, in the order of the file."""
        return list((self.find(family) or _NOTHING).keys)

    def kind(self, *path: str) -> str:
        """The kind of a component, or that of a key such as `ecmp`; empty without one."""
        return (self.find(*path) or _NOTHING).kind

    def choices(self, *path: str) -> list[str]:
        """The values that a key may have if they are a closed set, or the kinds of its family; else none."""
        return (self.find(*path) or _NOTHING).choices


class Key(msgspec.Struct, frozen=True):
    """One key of a kind in the catalogue."""

    key: str
    required: bool = False
    default: Any = None


class _Kind(msgspec.Struct, frozen=True):
    kind: str
    keys: list[Key]


class _Family(msgspec.Struct, frozen=True):
    family: str
    kinds: list[_Kind]


class _Catalogue(msgspec.Struct, frozen=True):
    families: list[_Family]


@functools.cache
def kinds(family: str) -> dict[str, dict[str, Key]]:
    """The kinds of a family of the catalogue, such as `queue discipline`, with their keys."""
    families = msgspec.json.decode(_engpass.catalogue(), type=_Catalogue).families
    listed = next(one.kinds for one in families if one.family == family)
    return {kind.kind: {key.key: key for key in kind.keys} for kind in listed}
