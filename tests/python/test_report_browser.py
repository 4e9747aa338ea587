"""The report in a real browser: it draws, logs no messages, sends no requests, and fits a phone.

Skipped without Chromium (on Debian `apt-get install chromium`; else set `$CHROMIUM`).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import report_cases as cases
from engpass.explanation import explain
from engpass.report import render, render_explanation, theme
from engpass.report.page import render_probe
from engpass.results.record import Claim
from engpass.types.outcome import Outcome
from engpass.views.probe import KERNELS
from ledgers import chosen
from report_browser import Page, browser, find
from report_kyoto import MESSAGES, Record, axis, kyoto
from report_probe import probed, with_threads
from test_report_page import CLAIMS

PROGRAM = find()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium; set $CHROMIUM or install it")

WIDE, PHONE = 1280, 390

# Texts of charts that exceed their drawing, with a tolerance of a pixel.
CLIPPED = """
[...document.querySelectorAll('.chart > svg, .chart .chart-wrapper > svg')].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter((text) => {
    const t = text.getBoundingClientRect();
    return t.width && (t.left < box.left - 1 || t.right > box.right + 1
      || t.top < box.top - 1 || t.bottom > box.bottom + 1);
  }).map((text) => text.textContent);
})
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """One browser for all tests of this file."""
    assert PROGRAM is not None
    with browser(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def show(page: Page, file: Path, run: Record, outcomes: list[Outcome], claims: Sequence[Claim] = ()) -> None:
    file.write_text(render(run, outcomes, claims), encoding="utf-8")
    page.open(file)
    page.wait("document.documentElement.dataset.ready === 'yes'")


def assert_sound(page: Page, file: Path) -> None:
    """Assert no messages, no request except for the file, nothing wider than the window, no clipped text."""
    assert page.complaints() == []
    assert page.requests() == [file.resolve().as_uri()]
    assert page.value("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.value(CLIPPED) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_kyoto_report_is_drawn_in_every_width_and_scheme(
    page: Page, tmp_path: Path, width: int, scheme: str
) -> None:
    file = tmp_path / "report.html"
    page.size(width)
    page.scheme(scheme)
    show(page, file, *kyoto(), CLAIMS)
    assert_sound(page, file)
    marks = page.value(
        "Object.fromEntries([...document.querySelectorAll('[data-chart]')].map((box) => [box.dataset.chart, {"
        "lines: box.querySelectorAll('.mark-line path').length,"
        "areas: box.querySelectorAll('.mark-area path').length,"
        "symbols: box.querySelectorAll('.mark-symbol path').length,"
        "bars: box.querySelectorAll('.mark-rect path').length}]))"
    )
    # Four variants by both engines; only the simulated ones have a band.
    assert marks["goodput"]["lines"] == 8
    assert marks["goodput"]["areas"] == 4
    assert marks["goodput"]["symbols"] >= 4 * 64
    assert marks["loss"]["lines"] == 4
    assert marks["offered-received"]["symbols"] == 4 * 64
    assert marks["waterfall"]["bars"] == 4 * 6
    dashed = page.value(
        "[...document.querySelectorAll('[data-chart=goodput] .mark-line path')]"
        ".filter((line) => line.getAttribute('stroke-dasharray') === '6,4').length"
    )
    assert dashed == 4
    shown = page.value(
        "[...document.querySelectorAll('.diagram')].filter((d) => d.clientWidth).map((d) => d.classList[1])"
    )
    assert shown == ["wide" if width == WIDE else "narrow"]
    palette = theme.DARK if scheme == "dark" else theme.LIGHT
    assert page.value("getComputedStyle(document.body).backgroundColor") == rgb(palette["paper"])


def rgb(colour: str) -> str:
    return "rgb(" + ", ".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5)) + ")"


SHAPES: dict[str, Callable[[], tuple[Record, list[Outcome]]]] = {
    "no sweep": lambda: cases.swept(["free", "congested"], []),
    "three axes": lambda: cases.swept(["free", "congested"], [cases.BUFFERS, cases.SHARES, cases.WORDS]),
    "second axis as colour": lambda: cases.swept(["free"], [cases.BUFFERS, cases.SHARES]),
    "words": lambda: cases.swept(["free", "congested"], [cases.WORDS]),
    "doubling": lambda: cases.swept(
        ["free"], [axis("traffic.stream.message", [(f"{2**n} B", 2.0**n) for n in range(4, 16)], "B")]
    ),
    "limit alone": lambda: cases.swept(["free"], [MESSAGES], engines=("limit",)),
    "three engines": lambda: cases.swept(["free"], [MESSAGES], engines=("limit", "simulate", "emulate")),
    "engines as bars": lambda: cases.swept(
        ["free", "congested"], [], engines=("limit", "simulate", "emulate", "measure")
    ),
    "many variants": lambda: cases.swept([f"variant number {n}" for n in range(20)], [cases.BUFFERS]),
    "several flows": cases.several_flows,
    "nothing yet": lambda: (Record(axes=(MESSAGES,), points_total=10), []),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_reports_of_all_run_shapes_fit_phone_and_desktop(page: Page, tmp_path: Path, shape: str) -> None:
    file = tmp_path / "report.html"
    page.scheme("light")
    page.size(PHONE)
    show(page, file, *SHAPES[shape]())
    assert_sound(page, file)
    # The window grows without a reload.
    page.size(WIDE)
    page.value("new Promise((done) => setTimeout(done, 400))")
    page.wait("[...document.querySelectorAll('.chart')].every((box) => box.querySelector('svg'))")
    assert_sound(page, file)


@pytest.mark.parametrize("width", [WIDE, 500, PHONE])
def test_probe_page_draws_all_its_figures(page: Page, tmp_path: Path, width: int) -> None:
    file = tmp_path / "host.html"
    file.write_text(render_probe(probed(with_threads())), encoding="utf-8")
    page.size(width)
    page.scheme("light")
    page.open(file)
    page.wait("document.documentElement.dataset.ready === 'yes'")
    assert_sound(page, file)
    heads = page.value("[...document.querySelectorAll('figure h3')].map((h) => h.textContent)")
    assert heads == [
        "Memory over the working set, one thread",
        "Memory over the working set, 4 threads together",
        "Upper limit of each data path, memory only",
        "Roofline of the data paths, from memory",
    ]
    # The legend of each line shows the shape of its markers.
    marks = "document.querySelectorAll('#figure-memory .key li').length"
    lines = "document.querySelectorAll('#figure-memory .key path[transform]').length"
    assert page.value(marks) == page.value(lines) == len(KERNELS)


def test_hostile_names_do_not_break_the_page(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    page.size(PHONE)
    show(page, file, *cases.hostile(), [{"id": "1", "statement": cases.HOSTILE, "holds": True}])
    assert_sound(page, file)
    assert page.value("document.title").startswith("</script><script>")
    assert page.value("document.querySelectorAll('.chart svg').length") == 5
    assert page.value("document.scripts.length") == 4


def test_content_security_policy_blocks_injected_scripts(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    text = render(*cases.swept(["free"], []))
    attack = (
        "<script>document.title = 'broken'</script><img src='https://example.org/leak.png'>"
        "<button id='trap' onclick=\"document.title = 'broken'\"></button></body>"
    )
    head, tail = text.rsplit("</body>", 1)  # the library also has `</body>` in a string
    file.write_text(head + attack + tail, encoding="utf-8")
    page.open(file)
    page.wait("document.documentElement.dataset.ready === 'yes'")
    page.value("document.getElementById('trap').click()")
    assert page.value("document.title") != "broken"
    assert any("Content Security Policy" in said for said in page.complaints())
    assert not any(
        event["method"] == "Network.responseReceived" and "example.org" in str(event) for event in page.events
    )


def test_theme_button_changes_page_and_chart_colours(page: Page, tmp_path: Path) -> None:
    page.size(WIDE)
    page.scheme("light")
    show(page, tmp_path / "report.html", *cases.swept(["free", "congested"], [cases.BUFFERS]))
    look = (
        "[document.body, ...['.chart .mark-text text', '.chart .mark-line path', '.diagram.wide text']"
        ".map((part) => document.querySelector(part))].map((e, i) => getComputedStyle(e)"
        "[['backgroundColor', 'fill', 'stroke', 'fill'][i]])"
    )
    light = page.value(look)
    assert page.value("document.getElementById('theme').textContent") == "Dark"
    page.value("document.getElementById('theme').click()")
    dark = page.value(look)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    assert dark[2] == rgb(theme.DARK["s1"])
    page.value("document.getElementById('theme').click()")
    assert page.value(look) == light
    # Printing uses the light colours in either scheme.
    page.value("document.getElementById('theme').click()")
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.value(look) == light
    page.call("Emulation.setEmulatedMedia", media="")


def test_menus_select_the_charted_data(page: Page, tmp_path: Path) -> None:
    page.size(WIDE)
    show(page, tmp_path / "axes.html", *SHAPES["three axes"]())
    line = "document.querySelector('[data-chart=goodput] svg').outerHTML"
    before = page.value(line)
    choose = (
        "{{ const s = document.querySelector('select'); s.value = {}; s.dispatchEvent(new Event('change')) }}"
    )
    page.value(choose.format(json.dumps("lane")))
    page.wait(f"{line} !== {json.dumps(before)}")

    show(page, tmp_path / "flows.html", *cases.several_flows())
    page.value(choose.format(json.dumps("stream 3")))
    page.wait("document.querySelector('[data-chart=goodput]').dataset.drawn === 'stream 3'")
    assert page.complaints() == []


def test_download_button_saves_the_points_as_csv(page: Page, tmp_path: Path) -> None:
    page.size(WIDE)
    run, outcomes = kyoto(repeats=1)
    show(page, tmp_path / "report.html", run, outcomes)
    page.value(
        "{ const made = {}; const make = URL.createObjectURL.bind(URL);"
        " URL.createObjectURL = (blob) => { const url = make(blob); made[url] = blob; return url; };"
        " HTMLAnchorElement.prototype.click = function () {"
        " window.saved = [this.download, made[this.href]]; };"
        " document.getElementById('download').click(); }"
    )
    page.wait("window.saved !== undefined")
    text = page.value("window.saved[1].text()")
    assert text.startswith("point,engine,variant,repeat,seed,traffic.stream.message,flow,")
    assert text.count("\n") == 1 + sum(len(outcome.flows) for outcome in outcomes)
    assert page.value("window.saved[0]") == f"engpass-{run.id}.csv"


def test_page_is_accessible_to_screen_readers(page: Page, tmp_path: Path) -> None:
    """Headings are in order; drawings and scrolling boxes have names."""
    show(page, tmp_path / "report.html", *kyoto(repeats=1), CLAIMS)
    levels = page.value("[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => Number(h.tagName[1]))")
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    unnamed = page.value(
        "[...document.querySelectorAll('[role=img], [role=region], button, select, nav')]"
        ".filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).length"
    )
    assert unnamed == 0
    assert page.value("document.documentElement.lang") == "en"


def test_cards_on_a_phone_have_no_empty_rows_and_narrow_charts_no_blank_space(
    page: Page, tmp_path: Path
) -> None:
    page.size(PHONE)
    file = tmp_path / "explanation.html"
    file.write_text(render_explanation(explain(chosen("congested", "20 kB"), advice=False)), encoding="utf-8")
    page.open(file)
    page.wait("document.documentElement.dataset.ready === 'yes'")
    empty = "[...document.querySelectorAll('.cards td:empty')]"
    assert page.value(f"{empty}.length") > 0
    assert page.value(f"{empty}.filter((cell) => cell.clientHeight).length") == 0
    # Before a chart is drawn anew for a narrower page, the browser scales it.
    shape = "(() => { const svg = document.querySelector('.chart svg'), box = svg.getBoundingClientRect();"
    shape += " return box.width / box.height / (svg.viewBox.baseVal.width / svg.viewBox.baseVal.height); })()"
    page.value("document.querySelector('.chart').style.width = '50%'")
    assert page.value(shape) == pytest.approx(1, abs=0.02)
