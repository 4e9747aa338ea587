"""The sections of the page about one point, with the results of `engpass explain`."""

from typing import TYPE_CHECKING

from engpass.report.figures import ledger_waterfall, over_time
from engpass.report.figures.base import Drawing
from engpass.report.sections import drawing
from engpass.show.html import blocks_html
from engpass.show.markup import chart_box, esc, swatches
from engpass.views.explanation import (
    changes,
    counters,
    ledgers,
    losses,
    over_time_of,
    service,
    tried,
    waterfall,
)

if TYPE_CHECKING:
    from engpass.explanation import Explanation

_WATERFALL = "ledger-waterfall"


def figures(made: "Explanation") -> dict[str, Drawing]:
    """The figures about the point, by name."""
    found: dict[str, Drawing] = {}
    tight, flow, place = made.at.tight, made.chosen.title, made.chosen.place
    if tight is not None and tight.books is not None:
        title = f"From line rate to delivered payload, {flow}"
        under = "; ".join(part for part in (f"link {tight.link}, {tight.place}", place) if part)
        found[_WATERFALL] = ledger_waterfall.chart(tight.books, tight.rate, title, under, made.at.own)
    for block in over_time_of(made):
        found[block.name] = over_time.draw(block)
    return found


def sections(made: "Explanation") -> list[tuple[str, str, str]]:
    """Key, title and body of the sections; the page omits sections with an empty body."""
    chosen = made.chosen
    return [
        ("service", "Results of the flow", blocks_html([service(made.at)])),
        ("changes", "Changes that help", _changes(made)),
        ("waterfall", "Use of the line", _waterfall(made)),
        ("timeline", "Timeline", blocks_html(over_time_of(made))),
        ("ledger", "Ledger", blocks_html([ledgers(made.at)])),
        ("losses", "Losses", blocks_html([losses(made.at), counters(made.at)])),
        ("testbed", "Testbed", drawing(chosen.topology)),
        ("file", "Testbed file", f"<pre tabindex=0><code>{esc(chosen.text)}</code></pre>"),
    ]


def _waterfall(made: "Explanation") -> str:
    tight = made.at.tight
    if tight is None or tight.books is None:
        return ""
    line = f"link {tight.link}, {tight.place}"
    says = f"Use of {line}, the line on the path with the least idle time."
    key = swatches(ledger_waterfall.key_of(tight.books))
    return chart_box(_WATERFALL, says, key) + blocks_html([waterfall(made)])


def _changes(made: "Explanation") -> str:
    if made.advice is None:
        return ""
    return blocks_html([*changes(made.advice, len(made.at.outcomes)), tried(made.advice)])
