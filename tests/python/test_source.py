"""Reading testbeds from files and from Python's tables."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engpass.error import SourceError
from engpass.source import MAX_BYTES, from_tables, override_text, read

text = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=12)
scalars = text | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
tables = st.recursive(
    st.dictionaries(text, scalars, max_size=4),
    lambda inner: st.dictionaries(text, scalars | inner | st.lists(scalars, max_size=3), max_size=4),
    max_leaves=8,
)


@given(tables)
def test_tables_round_trip_through_toml(data: dict[str, Any]) -> None:
    assert tomllib.loads(from_tables(data).data.decode()) == data


@given(scalars)
def test_override_text_reads_back_as_its_value(value: str | float) -> None:
    written = override_text(value)
    if isinstance(value, str):
        assert written == value
    else:
        assert tomllib.loads(f"value = {written}")["value"] == value


def test_an_override_may_be_a_list() -> None:
    assert tomllib.loads("value = " + override_text(["1 kB", 2]))["value"] == ["1 kB", 2]


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ({"host": {"a": None}}, "`host.a` is a NoneType"),
        ({"host": {"a": [1, object()]}}, r"`host.a\[1\]` is a object"),
        ({"host": {1: "x"}}, "the key `1` in `host` is not text"),
        ({"name": "a\0b"}, None),
    ],
)
def test_values_without_a_toml_form_are_named(data: dict[str, Any], names: str | None) -> None:
    if names is None:
        # TOML can express a NUL as an escape.
        assert tomllib.loads(from_tables(data).data.decode()) == data
    else:
        with pytest.raises(SourceError, match=names):
            from_tables(data)


def test_file_bytes_are_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "ä.toml"
    path.write_bytes(b"\xff not UTF-8, which the check will say")
    source = read(path)
    assert source.data == path.read_bytes()
    assert source.name == str(path)


def test_non_utf8_file_name_becomes_printable(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.toml"
    Path(os.fsdecode(path)).write_bytes(b"x = 1")
    assert read(os.fsdecode(path)).name.encode().endswith("/\N{REPLACEMENT CHARACTER}.toml".encode())


def test_file_size_limit_is_16_mib(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_bytes(b" " * MAX_BYTES)
    assert len(read(path).data) == MAX_BYTES
    path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(SourceError, match="larger than 16 MiB"):
        read(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.toml", "there is no file `missing.toml`\nhelp: check the path; `-` reads standard input"),
        ("", "there is no file ``\nhelp: check the path; `-` reads standard input"),
        (".", "`.` is a directory\nhelp: give a testbed file in it"),
        ("nul.toml", ("`nul.toml` is not a text file: byte 12, in line 2, is NUL\n"
         "help: a testbed is a TOML file in UTF-8; check the path and the encoding")),
        ("utf16.toml", ("`utf16.toml` is UTF-16 text\nhelp: a testbed is a TOML file: save it as UTF-8")),
        ("/dev/zero", ("`/dev/zero` is larger than 16 MiB: this is not a testbed file\n"
         "help: testbed files have some kilobytes, or megabytes for thousands of hosts; check the path")),
        ("x" * 5000, f"`{'x' * 5000}` cannot be read: File name too long\nhelp: check the path and the disk"),
    ],
)  # fmt: skip
def test_unreadable_file_error_has_reason_and_remedy(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nul.toml").write_bytes(b"run = {}\nna\0me = 1")
    Path("utf16.toml").write_bytes("name = 1".encode("utf-16"))
    with pytest.raises(SourceError) as error:
        read(name)
    assert str(error.value) == message


def test_file_without_permission_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "locked.toml"
    path.write_text("name = 'x'")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # The tests may run as root, for whom file modes do not matter.
    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(SourceError, match="permission denied"):
        read(path)


def test_file_that_vanishes_during_reading_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(*_: object, **__: object) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr("builtins.open", vanish)
    with pytest.raises(SourceError, match="cannot be read: Stale file handle"):
        read(tmp_path / "lan.toml")
