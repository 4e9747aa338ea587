"""Printed values: looked up in the texts of `SOURCES`, if it is set; and the look-up in an invented text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engpass import gallery
from engpass.claims import Claim
from engpass.gallery import Study
from source_text import SourceTextError, prints, section_of, source_text

# Full-width digits and sign, as in Japanese texts.
WIDE = "17%".translate({ord(a): chr(ord(a) + 0xFEE0) for a in "17%"})

TEXT = f"""\
# A Study of Pipes

### Abstract

Pipes carry 1.5 Gbit/s.

## 2 Method

The pipe is 12 m long and carries 33.6
Mbps, or {WIDE} of it.

#### 2.1 Limits

$$ = 22.10 \\text{{ Mbps}} $$ 管の流量は単調に増大する。The flow is steady (約 34Mbps).

## 3 Results

It carries 133.60 Mbps and 7MB/s, at 64KB.
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "pipes.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "other.txt").write_text("# A Study of Wires\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("section", "printed", "found"),
    [
        ("2", "33.6Mbps", True),
        ("2", "33.6 Mbps", True),
        ("2", "17%", True),
        ("2", "22.10Mbps", True),
        ("2.1", "22.10Mbps", True),
        ("2.1", "単調", True),
        ("2.1", "34Mbps", True),
        ("2.1", "steady", True),
        ("Abstract", "1.5Gbit/s", True),
        # Another section; part of a number, of a unit, of a word.
        ("2.1", "33.6Mbps", False),
        ("3", "33.6Mbps", False),
        ("3", "33.60Mbps", False),
        ("3", "7MB", False),
        ("3", "4KB", False),
        ("3", "64KB", True),
        ("2.1", "stead", False),
        ("2.1", "tea", False),
        ("Abstract", "5Gbit/s", False),
    ],
)
def test_a_value_is_found_only_inside_its_section(section: str, printed: str, found: bool) -> None:
    assert prints(section_of(TEXT, section), printed) is found


def test_a_section_ends_where_the_next_one_begins() -> None:
    assert section_of(TEXT, "2").endswith("(約 34Mbps).\n")
    assert section_of(TEXT, "2.1").startswith("#### 2.1 Limits")
    assert section_of(TEXT, "3").endswith("64KB.")
    with pytest.raises(SourceTextError) as error:
        section_of(TEXT, "4")
    assert error.value.help == "it has A Study of Pipes, Abstract, 2, 2.1, 3"


def test_a_text_without_markdown_has_sections_with_numbers() -> None:
    plain = "Pipes\n1.0 Introduction\nIt carries 5 Mbps.\n3.0 Results\n32-35 Mbps\n\n4.0 Conclusion\nNothing."
    assert section_of(plain, "3.0") == "3.0 Results\n32-35 Mbps\n"
    assert prints(section_of(plain, "3.0"), "32-35")
    with pytest.raises(SourceTextError) as error:
        section_of(plain, "2.0")
    assert error.value.help == "it has 1.0, 3.0, 4.0"


def test_a_text_is_found_by_its_title(sources: Path) -> None:
    assert source_text(sources, "A Study of  Pipes") == TEXT
    with pytest.raises(SourceTextError, match="has 0 files with the title `A Study of Tubes`: none"):
        source_text(sources, "A Study of Tubes")
    with pytest.raises(SourceTextError, match=r"has 2 files with the title `A Study`: other.txt, pipes.txt"):
        source_text(sources, "A Study")


PRINTED = [
    pytest.param(study, claim, id=f"{study.name}-{claim.id}")
    for study in gallery.studies()
    for claim in study.claims().claims
    if claim.printed
]


@pytest.mark.skipif("SOURCES" not in os.environ, reason="SOURCES names no directory with the papers' texts")
@pytest.mark.parametrize(("study", "claim"), PRINTED)
def test_a_printed_value_stands_in_its_section(study: Study, claim: Claim) -> None:
    title = study.claims().text
    assert title is not None
    assert claim.section is not None
    assert claim.printed is not None
    section = section_of(source_text(Path(os.environ["SOURCES"]), title), claim.section)
    assert prints(section, claim.printed), f"section {claim.section} does not print `{claim.printed}`"
