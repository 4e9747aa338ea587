"""`docs/walks.md` names files and functions of the Rust code: each of them exists."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CRATES = ROOT / "crates"
PLACES = {
    "tcp": CRATES / "engpass-model/src/tcp",
    "discard": CRATES / "engpass-model/src/discard",
    "cells": CRATES / "engpass-cells/src",
}
"""The short paths of the page. All other files are those of the engine."""

ENGINE = CRATES / "engpass-simulate/src"
FRAMES = CRATES / "engpass-frames/src"
QUOTED = re.findall(r"`([^`\n]+)`", (ROOT / "docs/walks.md").read_text())
FILES = sorted({text for text in QUOTED if text.endswith(".rs")})
NAMES = sorted({text for text in QUOTED if re.fullmatch(r"\w+(::\w+)+|[a-z]+(_[a-z]+)+", text)})
"""Paths of the language, and names of at least two words."""


def path_of(file: str) -> Path:
    """The file of a short path."""
    folder, _, rest = file.partition("/")
    return PLACES[folder] / rest if folder in PLACES else ENGINE / file


@functools.cache
def code() -> str:
    """The Rust code of all named places, and of the types of outcomes."""
    folders = [ENGINE, FRAMES, *PLACES.values(), CRATES / "engpass-outcome/src"]
    return "\n".join(file.read_text() for folder in folders for file in sorted(folder.rglob("*.rs")))


@pytest.mark.parametrize("file", FILES)
def test_named_files_exist(file: str) -> None:
    assert path_of(file).is_file()


@pytest.mark.parametrize("name", NAMES)
def test_named_items_are_defined(name: str) -> None:
    # Functions and types; fields and variants end with a colon, a comma or a brace.
    defined = r"(?:\b(?:fn|struct|enum|trait) {0}\b|^\s*(?:pub(?:\([^)]*\))? )?{0}(?::|,| \{{))"
    for part in name.split("::"):
        assert re.search(defined.format(part), code(), re.MULTILINE), f"no definition of `{part}`"
