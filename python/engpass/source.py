"""Reads the text of a testbed: from a file, from standard input, or from Python tables."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import NamedTuple, TypeAlias

from engpass.error import SourceError

Toml: TypeAlias = "str | bool | int | float | datetime | date | time | list[Toml] | dict[str, Toml]"
"""Type of a value in a TOML file."""

Given: TypeAlias = "str | bool | int | float | Sequence[Given] | Mapping[str, Given]"
"""Type of a value in a testbed that was built in Python."""

MAX_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes of a file, as in the core: ten thousand flows with a host each take 9 MB."""


class Source(NamedTuple):
    """The bytes of a testbed, and its name in messages."""

    name: str
    data: bytes


def read(path: str | os.PathLike[str]) -> Source:
    """Read a testbed file (`-` for standard input); raises `SourceError`."""
    # A file name may have bytes that are not UTF-8, but messages and the store need UTF-8.
    name = os.fsencode(path).decode("utf-8", "replace")
    if name == "-":
        return Source("<stdin>", _checked("standard input", _read_stdin()))
    try:
        # Read at most one byte more than allowed, which shows that the file is too large. This also works for
        # pipes and devices, whose size is not known before.
        with open(path, "rb") as file:  # noqa: PTH123 (a path like /dev/fd/63 is no pathlib matter)
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise SourceError(f"there is no file `{name}`", "check the path; `-` reads standard input") from None
    except IsADirectoryError:
        raise SourceError(f"`{name}` is a directory", "give a testbed file in it") from None
    except PermissionError:
        raise SourceError(
            f"`{name}` cannot be read: permission denied", "check the permissions of the file"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SourceError(f"`{name}` cannot be read: {reason}", "check the path and the disk") from None
    return Source(name, _checked(f"`{name}`", data))


def _read_stdin() -> bytes:
    # After `<&-` in a shell there is no standard input at all.
    if sys.stdin is None:
        raise SourceError("standard input is closed", "pipe a testbed file into it, or give a file")
    try:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    except OSError as error:
        raise SourceError(f"standard input cannot be read: {error.strerror}", "give a file instead") from None


def _checked(what: str, data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise SourceError(
            f"{what} is larger than {MAX_BYTES // 1024 // 1024} MiB: this is not a testbed file",
            "testbed files have some kilobytes, or megabytes for thousands of hosts; check the path",
        )
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError(f"{what} is UTF-16 text", "a testbed is a TOML file: save it as UTF-8")
    # TOML allows no NUL, and the parser's message would contain it as an unprintable character.
    if (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise SourceError(
            f"{what} is not a text file: byte {at + 1}, in line {line}, is NUL",
            "a testbed is a TOML file in UTF-8; check the path and the encoding",
        )
    return data


def from_tables(tables: Mapping[str, Given], name: str = "<python>") -> Source:
    """Write a testbed built in Python as TOML text, to be checked like a file; raises `SourceError`."""
    import tomli_w

    try:
        text = tomli_w.dumps(_table(tables, ""))
        return Source(name, _checked("the testbed", text.encode()))
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"the testbed cannot be written as TOML: {error}",
            "use dicts with text keys, lists, text, numbers and booleans",
        ) from None


def _table(table: Mapping[str, Given], path: str) -> dict[str, Toml]:
    """Copy nested mappings and sequences as types that the TOML writer accepts; an error names the path."""
    for key in table:
        if not isinstance(key, str):
            raise TypeError(f"the key `{key!r}` in `{path or 'the top level'}` is not text")
    return {key: _plain(item, f"{path}.{key}" if path else key) for key, item in table.items()}


def _plain(value: Given, path: str) -> Toml:
    if isinstance(value, Mapping):
        return _table(value, path)
    if isinstance(value, str | bool | int | float):
        return value
    if not isinstance(value, bytes | bytearray) and isinstance(value, Sequence):
        return [_plain(item, f"{path}[{i}]") for i, item in enumerate(value)]
    raise TypeError(f"`{path}` is a {type(value).__name__}")


def override_text(value: Given) -> str:
    """A Python value as the text that follows `--set PATH=`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    source = from_tables({"value": value})
    return source.data.decode().partition("=")[2].strip()
