"""The tool that finds retired identifiers and phrases."""

from __future__ import annotations

import runpy
from pathlib import Path

found_in = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "words.py"))["found_in"]


def test_retired_identifier_is_reported_with_line_and_new_name() -> None:
    text = "fn a() {}\n// See `lose_packet`.\nfn lose_packet() {}\nfn lose_packets() {}\n"
    assert found_in("a.rs", text) == [
        "a.rs:2: `lose_packet` is now `drop_packet`",
        "a.rs:3: `lose_packet` is now `drop_packet`",
    ]


def test_phrases_count_in_prose_and_not_in_code() -> None:
    assert found_in("a.rs", 'let a = "whoever"; // Whoever sends.\n') == [
        "a.rs:1: say `Whoever` in other words"
    ]
    assert found_in("a.py", 'a = "is told"\n"""The host is told."""\n') == [
        "a.py:2: say `is told` in other words"
    ]
    page = "A host is\ntold.\n\n```console\n$ somebody\n```\nFor somebody.\n"
    assert found_in("a.md", page) == ["a.md:7: say `somebody` in other words"]
