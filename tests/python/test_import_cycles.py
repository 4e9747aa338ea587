"""The tool that counts import cycles, on small crates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RING = ("a", "b", "c", "d", "e", "f")
HELP = "help: move what they share to a module of its own; `--edges` prints the imports\n"


def write(folder: Path, crate: str, files: dict[str, str], manifest: str = "") -> None:
    (folder / crate / "src").mkdir(parents=True)
    (folder / crate / "Cargo.toml").write_text(f'[package]\nname = "{crate}"\n{manifest}')
    for name, text in files.items():
        file = folder / crate / "src" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def cycles(tmp_path: Path, files: dict[str, str], *words: str, crate: str = "small") -> tuple[int, str, str]:
    write(tmp_path / "crates", crate, files)
    return run(tmp_path, *words)


def run(checkout: Path, *words: str) -> tuple[int, str, str]:
    command = [sys.executable, str(ROOT / "tools/import_cycles.py"), *words, str(checkout)]
    ended = subprocess.run(command, capture_output=True, text=True)
    return ended.returncode, ended.stdout, ended.stderr


def ring(names: tuple[str, ...]) -> dict[str, str]:
    """Files that import each other in a cycle."""
    following = zip(names, (*names[1:], names[0]), strict=True)
    files = {f"{name}.rs": f"use super::{other}::Item;\npub struct Item;" for name, other in following}
    return {"lib.rs": "".join(f"mod {name};\n" for name in names), **files}


def test_five_files_may_form_a_cycle(tmp_path: Path) -> None:
    shown = "small: 5 files import each other\n    a.rs, b.rs, c.rs, d.rs, e.rs\n"
    assert cycles(tmp_path, ring(RING[:5])) == (0, shown, "")


def test_cycle_of_six_files_fails_with_its_imports(tmp_path: Path) -> None:
    code, shown, wrong = cycles(tmp_path, ring(RING), "--edges")
    assert code == 1
    assert shown.splitlines()[:2] == ["small: 6 files import each other", "    a.rs -> b.rs"]
    assert wrong == "small: 6 files are in cycles of more than 5\n" + HELP


@pytest.mark.parametrize(
    "text",
    [
        "use crate::b::{self};",
        "use super::b::Item as Other;",
        "use super::{d::{More, Most}, b::Item as Other};",
        "fn f() -> crate::b::Item { todo!() }",
        "fn f() { use crate::b::Item; }",
        "mod inner { use super::super::b::Item; }",
        "use crate::b; fn f() { b::open(); }",
        "fn f<'a>(_: &'a str) -> char { let _ = r#\"\"\"#; crate::b::open(); '\"' }",
        '#[serde(default = "super::b::open")] struct Item;',
        # Through a re-export of the parent, and through a renamed re-export.
        "use super::Item;",
        "use crate::Renamed;",
        "use crate::c::Item;",
    ],
)
def test_every_way_of_naming_an_item_is_an_import(tmp_path: Path, text: str) -> None:
    files = {
        "lib.rs": "mod a; mod b; mod c; mod d; pub use b::Item; pub(crate) use b::Item as Renamed;",
        "a.rs": text,
        "b.rs": "use super::a; pub struct Item; pub fn open() {}",
        "c.rs": "pub use super::b::Item;",
        "d.rs": "pub struct More; pub struct Most;",
    }
    assert cycles(tmp_path, files)[1] == "small: 2 files import each other\n    a.rs, b.rs\n"


@pytest.mark.parametrize(
    "text",
    [
        "// use super::b::Item;",
        "/* crate::b::Item */",
        'const TEXT: &str = "use crate::b::Item;";',
        "use std::b::Item; use b_other::b;",
        "#[cfg(test)] mod tests { use super::super::b::Item; fn f() {} }",
        "#[cfg(test)]\n#[allow(unused)]\nuse super::b::{Item};",
        "struct A {\n#[cfg(test)]\nx: crate::b::Item<(u8, u8)>,\n}",
        # The parent itself defines the item.
        "use super::Own;",
        "use std::collections::{BTreeMap as b, BTreeSet}; fn f() -> b<u8, u8> { b::new() }",
    ],
)
def test_comments_tests_and_other_crates_are_no_imports(tmp_path: Path, text: str) -> None:
    files = {
        "lib.rs": "mod a; mod b; pub struct Own;",
        "a.rs": text,
        "b.rs": "use super::a;",
    }
    assert cycles(tmp_path, files) == (0, "", "")


def test_modules_above_and_below_each_other_form_no_cycle(tmp_path: Path) -> None:
    files = {
        "lib.rs": "mod flow; use flow::end::door::Door; pub struct Root;",
        "flow/mod.rs": "pub mod end; use end::door; use crate::Root;",
        "flow/end.rs": "pub mod door; use door::Door;",
    }
    write(tmp_path / "crates", "small", files)
    below = tmp_path / "crates/small/src/flow/end/door.rs"
    below.parent.mkdir()
    below.write_text("use super::super::Flow; use crate::Root; pub struct Door;")
    assert run(tmp_path) == (0, "", "")


def test_crates_may_not_form_a_cycle_by_dev_dependencies(tmp_path: Path) -> None:
    write(tmp_path / "crates", "one", {"lib.rs": ""}, "[dependencies]\ntwo.workspace = true\nother = '1'\n")
    write(tmp_path / "crates", "two", {"lib.rs": ""}, "[dependencies]\nthree = { path = '../three' }\n")
    write(tmp_path / "crates", "three", {"lib.rs": ""})
    assert run(tmp_path) == (0, "", "")
    with (tmp_path / "crates/three/Cargo.toml").open("a") as manifest:
        manifest.write("[target.'cfg(unix)'.dev-dependencies]\none.workspace = true\n")
    assert run(tmp_path) == (1, "", "one, three, two depend on each other\n" + HELP)
