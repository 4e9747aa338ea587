"""The script of the pages' charts: cached for the user, or bundled again if there is no writable cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert

from engpass.report import page

BUNDLE = "window.vegaEmbed = 0; '</script><!--'"


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record every bundling of the library; the real bundling takes seconds."""
    made: list[str] = []

    def bundle(start: str) -> str:
        made.append(start)
        return BUNDLE

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    page._library.cache_clear()
    yield made
    page._library.cache_clear()


def again() -> str:
    page._library.cache_clear()
    return page._library()


def test_chart_script_is_cached_once_per_user(
    bundled: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    first = again()
    assert "</script" not in first
    assert "<!--" not in first
    assert again() == first
    assert len(bundled) == 1
    (kept,) = (tmp_path / "caches" / "engpass").iterdir()
    assert kept.name.startswith("vega-")
    kept.write_bytes(b"\xff broken")
    assert again() == first, "what cannot be read is made anew"


@pytest.mark.parametrize("home", ["/dev/null", "/proc/1/nowhere", "relative"])
def test_unwritable_cache_directory_disables_the_cache(
    bundled: list[str], monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    assert again() == again()
    assert len(bundled) == 2


def test_missing_home_disables_the_script_cache(bundled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def nowhere() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", nowhere)
    assert again()
    assert bundled
