"""Pages show the outputs that the program prints, and name only things that exist.

`UPDATE=1 .venv/bin/pytest tests/python/test_documents.py` rewrites the outputs, with `-m prove` also those of
marked blocks. Read the diff, and the sentences around it.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from document_commands import fault_of_call, faults_in_prose, faults_of_tables, invocations
from documents import (
    GUIDES,
    PAGES,
    PROVE,
    ROOT,
    VARY,
    Block,
    Folder,
    Page,
    displayed,
    matches,
    missing_programs,
    parse,
    renewed,
    rewrite,
)

UPDATE = bool(os.environ.get("UPDATE"))
MOST_PROVED = 6
READ = {path: parse(path) for path in [*PAGES, *GUIDES]}


def runnable(page: Page, *, prove: bool) -> bool:
    """Whether a page has blocks that only `make prove` runs, or without `prove` blocks that always run."""
    if prove:
        return any(PROVE in block.marks for block in page.blocks)
    return any(block.language in ("console", "python") and PROVE not in block.marks for block in page.blocks)


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "path", paths, ids=[str(path.relative_to(ROOT)).removesuffix("/README.md") for path in paths]
    )


def run_page(page: Page, folder: Folder, *, prove: bool) -> tuple[list[str], list[str]]:
    """Run the blocks of a page and compare; returns the faults, and the programs that this machine lacks.

    With UPDATE set, outputs that differ are written into the page.
    """
    faults: list[str] = []
    lacking: list[str] = []
    changed = []
    for block in page.blocks:
        if block.file is not None:
            (folder.path / block.file).write_text("\n".join(block.lines) + "\n")
        if block.language not in ("console", "python") or (PROVE in block.marks and not prove):
            continue
        if missing := missing_programs(block):
            lacking += missing
            continue
        vary = VARY in block.marks
        done = folder.run(block, timeout=300)
        for step, one in zip(block.steps, done, strict=False):
            if one.code != 0:
                faults.append(
                    f"{block.where}: `{step.command}` ends with {one.code}:\n" + "\n".join(one.output)
                )
            elif step.shown is not None and not matches(step.shown, one.output, vary=vary):
                changed.append((block, step, renewed(step.shown, one.output, vary=vary)))
    for block, step, output in changed if not UPDATE else []:
        lines = difflib.unified_diff(step.shown or [], output, "page", "program", lineterm="")
        faults.append(f"{block.where}: `{step.command}` prints something else:\n" + "\n".join(lines))
    if UPDATE and changed:
        rewrite(page, changed)
    return faults, lacking


@named(PAGES)
def test_every_block_of_a_page_is_run_or_checked(path: Path) -> None:
    assert not READ[path].faults


def test_few_blocks_are_left_to_make_prove() -> None:
    marked = [block.where for path in PAGES for block in READ[path].blocks if PROVE in block.marks]
    assert len(marked) <= MOST_PROVED, marked


@named([*PAGES, *GUIDES])
def test_page_commands_options_files_and_values_exist(path: Path) -> None:
    page = READ[path]
    files = {block.file: "\n".join(block.lines) for block in page.blocks if block.file is not None}
    faults = list(faults_in_prose(path.read_text(encoding="utf-8")))
    for block in page.blocks:
        steps = block.steps if block.language in ("console", "sh") else []
        calls = [call for step in steps for call in invocations(step.command)]
        found = {" ".join(call): fault_of_call(call, files) for call in calls}
        faults += [f"{block.where}: `engpass {call}`: {fault}" for call, fault in found.items() if fault]
    assert not faults, "\n".join(faults)


@named([path for path in PAGES if any(block.language == "toml" for block in READ[path].blocks)])
def test_toml_tables_of_a_page_pass_the_check(path: Path, tmp_path: Path) -> None:
    assert not list(faults_of_tables(READ[path], tmp_path))


# A busy machine takes five times as long as an idle one. A block hangs after 300 s.
@pytest.mark.timeout(600)
@named([path for path in PAGES if runnable(READ[path], prove=False)])
def test_outputs_of_a_page_are_what_its_commands_print(path: Path, tmp_path: Path) -> None:
    faults, lacking = run_page(parse(path), Folder(tmp_path), prove=False)
    assert not faults, "\n".join(faults)
    if lacking:
        pytest.skip(f"blocks that need {', '.join(lacking)} were not run; all others are as shown")


@pytest.mark.prove
@pytest.mark.timeout(1200)
@named([path for path in PAGES if runnable(READ[path], prove=True)])
def test_marked_outputs_of_a_page_are_what_its_commands_print(path: Path, tmp_path: Path) -> None:
    page = parse(path)
    folder = Folder(tmp_path)
    try:
        faults, lacking = run_page(page, folder, prove=True)
    finally:
        up = {
            file for block in page.blocks for file in re.findall(r"engpass up (\S+)", "\n".join(block.lines))
        }
        for file in up:
            # Only a failed block leaves a testbed behind.
            subprocess.run(
                [".venv/bin/engpass", "down", file], cwd=tmp_path, capture_output=True, check=False
            )
    assert not faults, "\n".join(faults)
    assert not lacking, "this machine lacks programs"


# The runner itself

HELLO = """\
```console
$ echo one; echo two 2
one
two 2
```
"""

Planted = Callable[[str], Page]


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    """Returns a function that writes a text as a page and parses it."""

    def make(text: str) -> Page:
        path = tmp_path / "page.md"
        path.write_text(text)
        return parse(path)

    return make


def result(page: Page, tmp_path: Path, *, prove: bool = False) -> list[str]:
    folder = tmp_path / "folder"
    folder.mkdir()
    return run_page(page, Folder(folder), prove=prove)[0]


def test_output_as_shown_passes(planted: Planted, tmp_path: Path) -> None:
    page = planted(HELLO)
    assert page.faults == []
    assert result(page, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("two 2\n`", "two 3\n`"),
        ("one\ntwo 2\n`", "one\n`"),
        ("one\ntwo 2\n`", "`"),
        ("two 2\n`", "two 2\nthree\n`"),
    ],
    ids=["figure", "row-left-out", "no-output", "row-added"],
)
def test_output_that_differs_fails(
    old: str, new: str, planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_documents.UPDATE", False)
    (fault,) = result(planted(HELLO.replace(old, new)), tmp_path)
    assert "prints something else" in fault


def test_command_that_fails_is_named(planted: Planted, tmp_path: Path) -> None:
    (fault,) = result(planted("```console\n$ echo why; exit 3\nwhy\n$ echo never\nnever\n```\n"), tmp_path)
    assert "`echo why; exit 3` ends with 3:\nwhy" in fault


def test_python_block_is_run_and_its_output_compared(planted: Planted, tmp_path: Path) -> None:
    page = planted("```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n\n```python\nassert False\n```\n")
    assert page.faults == []
    (fault,) = result(page, tmp_path)
    assert "AssertionError" in fault


def test_blocks_share_a_folder_and_a_file_is_saved(planted: Planted, tmp_path: Path) -> None:
    file = '```toml\n# a.toml\nname = "x"\n```\n'
    text = f"{file}```console\n$ cp a.toml b.toml\n```\n```console\n$ wc -l < b.toml\n2\n```\n"
    assert result(planted(text), tmp_path) == []


def test_program_in_the_background_ends_with_its_block(planted: Planted, tmp_path: Path) -> None:
    page = planted("```console\n$ sleep 1000 & echo $!\n1\n```\n")
    page.blocks[0].marks[VARY] = "a process"
    shown = page.blocks[0].steps[0]
    folder = Folder(tmp_path)
    (done,) = folder.run(page.blocks[0], 10)
    assert matches(shown.shown or [], done.output, vary=True)
    status = Path(f"/proc/{done.output[0]}/stat")
    # It takes a moment until the kernel ends the process and its new parent collects it.
    while status.exists() and status.read_text().split()[2] != "Z":
        time.sleep(0.01)


def test_marked_block_is_run_only_by_make_prove(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_documents.UPDATE", False)
    text = HELLO.replace("one\ntwo", "three\ntwo")
    page = planted(f"<!-- {PROVE}: takes long -->\n{text}")
    assert result(page, tmp_path) == []
    (tmp_path / "again").mkdir()
    assert result(page, tmp_path / "again", prove=True) != []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("    engpass check a.toml\n", "an indented block"),
        ("```\n$ echo\n```\n", "unknown language ``"),
        ("```yaml\na: 1\n```\n", "unknown language `yaml`"),
        ("```json\nengpass check a.toml\n```\n", "a command in a block of `json`"),
        ("```toml\n$ engpass check a.toml\n```\n", "a command in a block of `toml`"),
        ("```text\nline.toml is sound\n```\n", "an output below no program"),
        ("```python\nprint(1)\n```\nSome words.\n\n```text\n1\n```\n", "an output below no program"),
        ("```console\nline.toml is sound\n```\n", "must begin with a command"),
        ("```console\n$ echo\n", "not closed"),
        ("~~~\n$ echo\n~~~\n", "unknown language ``"),
        ("```console one\n$ echo\n```\n", "unknown language `console one`"),
        ("```sh\nengpass check a.toml\na.toml is sound\n```\n", "an output in a block of `sh`"),
        ("<!-- skip: no time -->\n```console\n$ echo\n```\n", "unknown mark `skip`"),
        (f"<!-- {PROVE} -->\n```console\n$ echo\n```\n", "has no reason"),
        (f"<!-- {PROVE}: slow -->\n```sh\nengpass probe\n```\n", "on a block that is not run"),
        (f"<!-- {VARY}: noise -->\nSome words.\n", "must stand directly above its block"),
    ],
)
def test_block_that_would_escape_all_checks_is_a_fault(text: str, fault: str, planted: Planted) -> None:
    (found, *_) = planted(text).faults
    assert fault in found


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("a 1|b 2|c 3", True),
        ("...", True),
        ("a 1|...", True),
        ("...|c 3", True),
        ("a 1|...|c 3", True),
        ("...|b 2|...", True),
        ("a 1|...|b 2|c 3", True),
        ("a 1|c 3", False),
        ("b 2|...", False),
        ("...|c 3|b 2|...", False),
        ("a 1|b 2|...|b 2|c 3", False),
        ("...|b 3|...", False),
    ],
)
def test_elision_stands_for_any_lines_and_nothing_else(shown: str, same: bool) -> None:
    assert matches(shown.split("|"), ["a 1", "b 2", "c 3"]) is same


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ("│ goodput │ 6.00 Mbit/s │", "│ goodput │   12.25 Mbit/s │", True),
        ("└─────┴──┘", "└───────┴──┘", True),
        ("loss < 0.1 %", "loss 12.0 %", True),
        ("captured 27,674", "captured 9", True),
        ("goodput 6.00 Mbit/s", "goodput 612 kbit/s", True),
        ("late by 12 us", "late by 1.2 ms", True),
        ("copy 11.3? GB/s", "copy 9.7 GB/s", True),
        ("goodput 6.00 Mbit/s", "goodput 6.00 MB/s", False),
        ("goodput 6.00 Mbit/s", "offered 6.00 Mbit/s", False),
    ],
)
def test_figures_that_vary_keep_their_rows_and_units(shown: str, real: str, same: bool) -> None:
    assert matches([shown], [real], vary=True) is same
    assert not matches([shown], [real])


def test_run_ids_are_replaced_by_stable_ids(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shown(ids: str, name: str) -> list[str]:
        (block,) = planted("```console\n$ printf 'run %s kept; show %s\\n' $IDS\n```\n").blocks
        (tmp_path / name).mkdir()
        monkeypatch.setenv("IDS", ids)
        return Folder(tmp_path / name).run(block, 10)[0].output

    one = shown("0123456789 0123456789", "one")
    assert one == shown("b7c39ea06d b7c39ea06d", "two")
    assert one != shown("b7c39ea06d b7c39ea06e", "three")


def test_progress_lines_do_not_count_as_output(planted: Planted, tmp_path: Path) -> None:
    text = (
        "```console\n$ echo '1,234 of 9,000 points, 3.1 points/s, 2,505 s left'; echo 3 of 4\n3 of 4\n```\n"
    )
    assert result(planted(text), tmp_path) == []


def test_long_lines_are_wrapped_and_tables_are_not() -> None:
    words, table = "word " * 40, "│ cell " * 40
    assert displayed(f"{words}\n{table}\n") == [("word " * 24).strip(), ("word " * 16).strip(), table.strip()]


@pytest.mark.parametrize(
    ("shown", "new"),
    [
        ("goodput 6|loss 2 %", "goodput 7|delay 1 ms|loss 3 %|2 runs"),
        ("...|goodput 6|...", "...|goodput 7|..."),
        ("goodput 6|...|2 runs", "goodput 7|...|2 runs"),
        ("goodput 6|...|loss 2 %|...", "goodput 7|...|loss 3 %|..."),
        ("...|queue 4|...|loss 2 %|2 runs", "...|loss 3 %|2 runs"),
        ("goodput 6|...|queue 4", "goodput 7|..."),
        ("queue 4|...|3 runs", "...|2 runs"),
        ("", "goodput 7|delay 1 ms|loss 3 %|2 runs"),
    ],
)
def test_update_renews_shown_lines_and_keeps_elisions(shown: str, new: str) -> None:
    real = ["goodput 7", "delay 1 ms", "loss 3 %", "2 runs"]
    assert renewed(shown.split("|") if shown else [], real) == new.split("|")
    assert matches(new.split("|"), real)


def test_update_keeps_elisions_around_blank_lines() -> None:
    real = ["title", "", "┏━┓", "│ a │", "└─┘", "", "help", "  set b", "", "end"]
    assert renewed(["old title", "...", "", "help", "  set a", "", "end"], real) == [
        "title",
        "...",
        "help",
        "  set b",
        "",
        "end",
    ]


def test_update_changes_only_the_outputs_of_a_page(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_documents.UPDATE", True)
    before = f"# Title\n\n{HELLO}\n- item\n\n  ```console\n  $ seq 3\n  1\n  ...\n  4\n  ```\n\nEnd.\n"
    after = before.replace("  4\n", "  3\n")
    page = planted(before.replace("two 2\n`", "three 3\n`"))
    assert result(page, tmp_path) == []
    assert page.path.read_text() == after


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("engpass check line.toml", None),
        ("for a in 1 2; do engpass limit line.toml --variant slow; done", None),
        ("engpass exec line.toml a -- ping --bogus b | engpass runs", None),
        ("UPDATE=1 engpass chek line.toml", "no command `chek`"),
        ("engpass run line.toml --colour", "No such option: --colour"),
        ("engpass run line.toml \\\n  --set link.wire.medum=oc-3c", "unknown key"),
        ("engpass limit line.toml --variant fast", "no variant `fast`"),
        ("engpass limit gallery/adsl/testbed.toml --variant nobody", "no variant `nobody`"),
        ("engpass search line.toml --traffic y", "no traffic `y`"),
        ("engpass exec line.toml c -- ls", "no host `c`"),
        ("engpass limit lan.toml", "no file `lan.toml`"),
        ("engpass reproduce kyoto-1979", "kyoto-1979"),
    ],
)
def test_call_with_an_unknown_name_is_a_fault(command: str, fault: str | None) -> None:
    line = (
        'host.a = {}\nhost.b = {}\nlink.wire = { ends = ["a", "b"], medium = "ethernet-10" }\n'
        'traffic.x = { kind = "udp-stream", from = "a", to = "b", message = "1 kB" }\n'
        'run = { duration = "1 s" }\n[variant.plain]\n[variant.slow]\n"traffic.x.message" = "2 kB"\n'
    )
    (call, *_) = invocations(command)
    found = fault_of_call(call, {"line.toml": line})
    assert found is None if fault is None else fault in (found or "")


@pytest.mark.parametrize(
    ("span", "faults"),
    [
        ("engpass run FILE --engine limit", 0),
        ("engpass exec FILE HOST -- ls --all", 0),
        ("--capture-as FORM", 0),
        ("make pages", 0),
        ("engpass runn FILE", 1),
        ("engpass run FILE --engin limit", 1),
        ("--capture-with FORM", 1),
        ("make paper", 1),
    ],
)
def test_inline_code_with_an_unknown_name_is_a_fault(span: str, faults: int) -> None:
    assert len(list(faults_in_prose(f"Use `{span}` for this.\n"))) == faults


def test_missing_programs_of_a_block_are_listed(planted: Planted) -> None:
    (block,) = planted("```console\n$ no-such-program\n...\n```\n").blocks
    assert isinstance(block, Block)
    assert missing_programs(block) == ["no-such-program"]
