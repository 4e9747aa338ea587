"""The sections of the page about one point, with the results of `engpass explain`."""

from typing import TYPE_CHECKING

from engpass import formatting
from engpass.advice import effect_texts, told
from engpass.report import theme
from engpass.report.charts import Spec, for_page
from engpass.report.figures import ledger_waterfall, timeline
from engpass.report.figures.base import Block, Drawing
from engpass.report.sections import block_key, drawing
from engpass.results import ledger
from engpass.show.html import block_html
from engpass.show.markup import esc, prose
from engpass.show.markup import table as html_table
from engpass.views.explanation import counters, losses, service

if TYPE_CHECKING:
    from engpass.advice import Change
    from engpass.explain.point_facts import Hop
    from engpass.explanation import Explanation

_WATERFALL = "ledger-waterfall"
_TIMELINE = "timeline"


def figures(made: "Explanation") -> dict[str, Drawing]:
    """The figures about the point, by name."""
    found: dict[str, Drawing] = {}
    tight, flow, place = made.at.tight, made.chosen.title, made.chosen.place
    if tight is not None and tight.books is not None:
        title = f"From line rate to delivered payload, {flow}"
        under = "; ".join(part for part in (f"link {tight.link}, {_arrow(tight)}", place) if part)
        found[_WATERFALL] = ledger_waterfall.chart(tight.books, tight.rate, title, under, made.at.own)
    if made.timeline is not None:
        found[_TIMELINE] = timeline.draw(
            made.timeline, made.chosen.title, f"Timeline of {flow}", place or "one repeat"
        )
    return found


def charts(made: "Explanation") -> dict[str, Spec]:
    """The charts of `figures` as specifications for the page."""
    return {name: for_page(chart.to_dict()) for name, chart in figures(made).items()}


def sections(made: "Explanation") -> list[tuple[str, str, str]]:
    """Key, title and body of the sections; the page omits sections with an empty body."""
    chosen = made.chosen
    return [
        ("service", "Results of the flow", block_html(service(made.at))),
        ("changes", "Changes that help", _changes(made)),
        ("waterfall", "Use of the line", _waterfall(made)),
        ("timeline", "Timeline", _timeline(made)),
        ("ledger", "Ledger", _ledgers(made)),
        ("losses", "Losses", block_html(losses(made.at)) + block_html(counters(made.at))),
        ("testbed", "Testbed", drawing(chosen.topology)),
        ("file", "Testbed file", f"<pre tabindex=0><code>{esc(chosen.text)}</code></pre>"),
    ]


def _arrow(hop: "Hop") -> str:
    return f"{hop.start} \N{RIGHTWARDS ARROW} {hop.end}"


def _box(name: str, says: str, key: list[Block]) -> str:
    return (
        f'<div class="figures"><figure class="whole" id="figure-{name}">{block_key(key) if key else ""}'
        f'<div class="chart" data-chart="{name}" role="img" aria-label="{esc(says)}"></div>'
        f"<figcaption>{esc(says)}</figcaption></figure></div>"
    )


def _waterfall(made: "Explanation") -> str:
    tight = made.at.tight
    if tight is None or tight.books is None:
        return ""
    line = f"link {tight.link}, {_arrow(tight)}"
    says = f"Use of {line}, the line on the path with the least idle time."
    return _box(_WATERFALL, says, ledger_waterfall.key_of(tight.books))


def _timeline(made: "Explanation") -> str:
    if made.timeline is None:
        return ""
    says = timeline.says(made.timeline, made.chosen.title)
    return _box(_TIMELINE, says, timeline.key_of(made.timeline, made.chosen.title))


def _ledgers(made: "Explanation") -> str:
    at = made.at
    parts = []
    for hop in (*at.hops, *(at.back if at.tcp else ())):
        if hop.books is None:
            continue
        colours = theme.account_colours(hop.books.names)
        rows = [
            [
                f'<span style="color:var(--{colour})">■</span> {prose(ledger.title(name))}',
                esc(ledger.family(name).title),
                formatting.bits(hop.books.bits(name) / len(at.outcomes)),
                formatting.percent(hop.books.share(name)),
                "" if hop.rate is None else formatting.rate(hop.books.share(name) * hop.rate),
            ]
            for name, colour in zip(hop.books.names, colours, strict=True)
        ]
        mean = ", mean of the repeats" if len(at.outcomes) > 1 else ""
        caption = f"Link <code>{esc(hop.link)}</code>, {esc(_arrow(hop))}{mean}"
        head = ["Account", "Family", "Bits", "Share", "Rate"]
        parts.append(html_table(caption, head, rows, numeric=[2, 3, 4]))
    return "\n".join(parts)


def _changes(made: "Explanation") -> str:
    if made.advice is None:
        return ""
    basis = made.advice.basis or ", with the seeds of the run"
    tried = f"{formatting.count(len(made.advice.tried), 'change')} simulated{basis}."
    if not made.advice.changes and not made.advice.trades:
        said = "; ".join(made.advice.tried)
        return f"<p>None of the simulated changes helps. {esc(tried)}</p><p>{prose(said)}</p>"
    parts = [f"<p>{esc(tried)}</p>"]
    for caption, changes in (
        ("Changes that help and harm no flow", made.advice.changes),
        ("Changes that help at a price", made.advice.trades),
    ):
        if changes:
            rows = [_change(change) for change in changes]
            head = ["Change", "Setting", "Flow", "Goodput", "Delay p99", "Loss"]
            parts.append(html_table(caption, head, rows, numeric=[3, 4, 5], kind="cards"))
    return "\n".join(parts)


def _change(change: "Change") -> list[str]:
    """A table row: the change, and a line for its effect on each flow."""
    effects = told(change)
    name = f'{prose(change.say)} <span class="muted">{esc(change.cost.name.lower())}</span>'
    if left := 1 + len(change.others) - len(effects):
        name += f'<br><span class="muted">and {left:,} more flows</span>'
    sets = "<br>".join(f"<code>{esc(path)}={esc(value)}</code>" for path, value in change.set)
    lines = zip(*(effect_texts(effect) for effect in effects), strict=True)
    flows, *figures = ("<br>".join(esc(text) for text in column) for column in lines)
    # The name of a flow must stay on the line of its figures, so it must not wrap.
    return [name, sets, flows.replace(" ", "\N{NO-BREAK SPACE}"), *figures]
