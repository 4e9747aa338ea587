"""The values of a testbed at one point, from which advice starts.

This module reads the testbed file for arithmetic, and does not check it again: the core judges every change.
"""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import msgspec

from engpass import _engpass
from engpass.source import Toml
from engpass.units import UNITS

Path = tuple[str, ...]

_PART = re.compile(r"\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^.\"'\s]+))\s*(?:\.|$)")
_AMOUNT = re.compile(r"\s*([\d_]+(?:\.[\d_]+)?)\s*(\D.*?)\s*")


def split(path: str) -> Path:
    """Split a dotted key, with or without quotes: `switch."my.switch".discard` has three parts."""
    parts, at = [], 0
    while at < len(path) and (match := _PART.match(path, at)):
        parts.append(next(group for group in match.groups() if group is not None))
        at = match.end()
    return tuple(parts)


def join(parts: Sequence[str]) -> str:
    """Join parts to a dotted key, with quotes where TOML needs them."""
    return ".".join(
        part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part, ensure_ascii=False)
        for part in parts
    )


@dataclass(frozen=True)
class Amount:
    """A quantity as a file writes it: `384 cells`."""

    number: Decimal
    unit: str

    @staticmethod
    def read(text: object) -> Amount | None:
        """Parse a quantity; `None` if the text is no quantity."""
        match = _AMOUNT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            return None
        try:
            return Amount(Decimal(match[1].replace("_", "")), match[2])
        except InvalidOperation:
            return None

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


class Key(msgspec.Struct, frozen=True):
    """One key of a component in the catalogue, with its type and default."""

    key: str
    type: str
    required: bool = False
    default: str | bool | int | float | list[int | str] | None = None


class Kind(msgspec.Struct, frozen=True):
    """A kind of component in the catalogue, with its keys."""

    kind: str
    keys: list[Key]


class Family(msgspec.Struct, frozen=True):
    """A family of the catalogue: its kinds, and the table of a testbed in which they are used."""

    family: str
    kinds: list[Kind]
    place: str | None = None


class Catalogue(msgspec.Struct, frozen=True):
    """The catalogue of components, as the core describes it."""

    families: list[Family]


def table_of(value: Toml | None) -> dict[str, Toml]:
    """The value itself if it is a table, else an empty table."""
    return value if isinstance(value, dict) else {}


class Settings:
    """The values of a testbed for one variant and point, with overrides."""

    def __init__(self, tables: dict[str, Toml]) -> None:
        self.tables = tables

    @staticmethod
    def at(
        text: str, variant: str, sweep: Iterable[tuple[str, str]], overrides: Iterable[tuple[str, str]]
    ) -> Settings:
        """The values at a point: a variant's replace the file's, swept ones both, and `--set` ones all."""
        tables: dict[str, Toml] = tomllib.loads(text)
        given = [(split(path), read_value(value)) for path, value in overrides]
        for path, value in given:
            # An override may set a value in a variant's table.
            if path[:1] == ("variant",):
                _put(tables, path, value)
        own = table_of(table_of(tables.get("variant")).get(variant))
        swept = [(split(path), read_value(value)) for path, value in sweep]
        for path, value in (*_flat((), own), *swept, *given):
            _put(tables, path, value)
        return Settings(tables)

    def get(self, *path: str) -> Toml | None:
        """The value at a path, or else the default of the catalogue; `None` without one."""
        found: Toml = self.tables
        for part in path:
            if not isinstance(found, dict) or part not in found:
                return self._default(path)
            found = found[part]
        return found

    def amount(self, *path: str) -> Amount | None:
        """The quantity at a path, or else the default of the catalogue; `None` without one."""
        return Amount.read(self.get(*path))

    def names(self, family: str) -> list[str]:
        """The names of the components of a family, in the order of the file."""
        return list(table_of(self.tables.get(family)))

    def kind(self, family: str, name: str) -> str:
        """The kind of a component: its key `kind`, or the only kind of the family; else empty."""
        kinds = list(keys(family))
        given = table_of(table_of(self.tables.get(family)).get(name)).get("kind")
        return str(given) if given is not None else kinds[0] if len(kinds) == 1 else ""

    def keys(self, family: str, name: str) -> dict[str, Key]:
        """The catalogue's entries for the keys of a component, by dotted key."""
        return keys(family).get(self.kind(family, name), {})

    def choices(self, family: str, name: str, key: str) -> list[str]:
        """The values that a key may have if the catalogue lists them or names a family; else none."""
        known = self.keys(family, name).get(key)
        kind = "" if known is None else known.type
        if kind.startswith("one of "):
            return re.findall(r"`([^`]+)`", kind)
        return list(keys(kind))

    def _default(self, path: Path) -> Toml | None:
        if len(path) < 3:
            return None
        key = self.keys(path[0], path[1]).get(".".join(path[2:]))
        found = None if key is None else key.default
        return [*found] if isinstance(found, list) else found


def _flat(at: Path, table: Mapping[str, Toml]) -> list[tuple[Path, Toml]]:
    """The paths and values of a variant's table, which has quoted dotted keys or nested tables."""
    found: list[tuple[Path, Toml]] = []
    for key, value in table.items():
        path = (*at, *(split(key) if "." in key else (key,)))
        if isinstance(value, dict) and value and "." not in key:
            found += _flat(path, value)
        else:
            found.append((path, value))
    return found


def read_value(text: str) -> Toml:
    """The value that `--set PATH=TEXT` gives: the TOML value, or the text itself if it is no TOML."""
    try:
        tables: dict[str, Toml] = tomllib.loads(f"value = {text}")
        return tables["value"]
    except tomllib.TOMLDecodeError:
        return text


def _put(tables: dict[str, Toml], path: Path, value: Toml) -> None:
    for part in path[:-1]:
        inner = tables.get(part)
        if not isinstance(inner, dict):
            inner = tables[part] = _table(part, inner)
        tables = inner
    if path:
        tables[path[-1]] = value


def _table(key: str, value: Toml | None) -> dict[str, Toml]:
    """The table that a plain value stands for: a rate is for both directions, a word names a kind."""
    if value is None:
        return {}
    return {"forward": value, "backward": value} if key == "rate" else {"kind": value}


@functools.cache
def keys(family: str) -> dict[str, dict[str, Key]]:
    """The kinds of a family, found by its name or table, each with the catalogue's entries for its keys."""
    for one in msgspec.json.decode(_engpass.catalogue(), type=Catalogue).families:
        if family == one.family or one.place in (f"[{family}.NAME]", f"[{family}]"):
            return {kind.kind: {key.key: key for key in kind.keys} for kind in one.kinds}
    return {}
