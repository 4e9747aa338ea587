"""The report: one HTML file that opens without a network.

A content security policy in the page enforces this: the page sends no requests, and only the scripts written
here run, which the policy lists by their hashes.
"""

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version as version_of
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import vl_convert

from engpass.report import csv_download, explanation, summary_text, theme
from engpass.report.charts import MAX_FLOWS, Columns, Spec, own_charts, page_charts
from engpass.report.sections import (
    bottleneck_section,
    choices,
    figure_box,
    file_section,
    ledger_section,
    points_section,
    testbed_section,
)
from engpass.results.aggregate import Table, tabulate
from engpass.results.record import Claim, Run
from engpass.results.run_notes import Remarks
from engpass.show.blocks import Marked, Prose
from engpass.show.html import blocks_html
from engpass.show.markup import details, embed_json, esc, prose
from engpass.types.outcome import Outcome
from engpass.views import headline
from engpass.views.bottlenecks import losses
from engpass.views.claims import view as claims_view
from engpass.views.points import differences, invalid_points
from engpass.views.resources import engine_table, line_table
from engpass.views.search import sentence
from engpass.views.stored import details as run_details
from engpass.views.stored import moment

if TYPE_CHECKING:
    from engpass.explanation import Explanation
    from engpass.probe import Probed
    from engpass.store import RunRecord


def render(
    run: Run, outcomes: Iterable[Outcome], claims: Sequence[Claim] = (), notes: Sequence[str] = ()
) -> str:
    """The report of a run as one HTML file, with claims and notes if the run belongs to a study."""
    outcomes = list(outcomes)
    table = tabulate(run, outcomes)
    charts, datasets = page_charts(table)
    points, said = _points(run, table, outcomes)
    sections = [
        ("results", "Results", _results(table, charts, outcomes)),
        ("claims", "Claims", blocks_html(claims_view(claims, notes))),
        ("engines", "Engines", blocks_html(differences(run, table))),
        ("ledger", "Ledger", ledger_section(table, charts)),
        ("lines", "Lines", blocks_html([line_table(outcomes), engine_table(outcomes)])),
        ("testbed", "Testbed", testbed_section(run)),
        ("points", "Points", points_section(run, table, said, download=bool(points))),
        ("bottlenecks", "Bottlenecks", bottleneck_section(table, charts)),
        ("losses", "Losses", blocks_html([losses(table, outcomes)])),
        ("environment", "Environment", details("Run and host", blocks_html([run_details(run, whole=True)]))),
        ("file", "Testbed file", details(esc(run.source), file_section(run))),
    ]
    return _page(
        run.name,
        sections,
        about=run.description or "",
        summary=f"<p>{prose(summary_text.summary(run, table))}</p>{blocks_html([headline.view(table)])}",
        meta=_meta(run),
        charts=charts,
        datasets=datasets,
        points=points,
        file=f"engpass-{run.id}.csv",
        version=str(run.environment.get("version", "")),
    )


def _page(
    name: str,
    sections: Sequence[tuple[str, str, str]],
    *,
    summary: str,
    meta: str,
    charts: dict[str, dict[str, Spec]],
    version: str,
    about: str = "",
    datasets: Mapping[str, Columns] = MappingProxyType({}),
    points: str = "",
    file: str = "",
) -> str:
    """One HTML file of sections (key, title, body) and charts by flow and name; omits empty sections."""
    shown = [(key, title, body) for key, title, body in sections if body]
    contents = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, _ in shown)
    body = "\n".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>\n{content}\n</section>'
        for key, title, content in shown
    )
    values = {
        "datasets": dict(datasets),
        "charts": charts,
        "config": theme.config(theme.CSS, theme.FONT, legend=False),
        "flows": list(charts) or [""],
        "file": file,
    }
    return _resource("page.html").format(
        policy=_policy(_library(), _script()),
        title=esc(name),
        style=_style(),
        heading=esc(name),
        about=f"<p>{esc(about)}</p>" if about else "",
        summary=summary,
        meta=meta,
        contents=contents,
        body=body,
        values=embed_json(values),
        points=embed_json(points),
        version=esc(version),
        library=_library(),
        script=_script(),
    )


def render_explanation(made: "Explanation") -> str:
    """An explanation as one HTML file: waterfall, timeline, ledgers, losses, and changes that help."""
    from engpass import _engpass

    chosen = made.chosen
    parts = [f"Run <code>{esc(chosen.run_id)}</code>"] if chosen.run_id else []
    parts += [f"<code>{esc(chosen.source)}</code>", f"<code>{esc(chosen.title)}</code>", esc(chosen.place)]
    return _page(
        chosen.name,
        explanation.sections(made),
        summary=f"<p>{prose(made.sentence)}</p>",
        meta=" · ".join(part for part in parts if part),
        charts={chosen.flow: own_charts(explanation.figures(made))},
        version=_engpass.version(),
    )


def render_probe(made: "Probed") -> str:
    """A probe of a host as one HTML file: memory over working sets, data paths, sockets, devices."""
    from engpass.report import probe

    host = made.data.host
    return _page(
        f"Probe of {made.name}",
        probe.sections(made),
        summary=f"<p>{prose(made.sentence)}</p>",
        meta=" · ".join(esc(part) for part in (host.cpu, f"Linux {host.kernel}", made.when) if part),
        charts={made.name: own_charts(probe.figures(made))},
        version=made.data.version,
    )


def render_search(record: "RunRecord") -> str:
    """A search, or a measured path, as one HTML file."""
    from engpass.report import search_page

    what = "Path" if record.method == "rfc6349" else "Search"
    parts = [f"{what} <code>{esc(record.id)}</code>", f"<code>{esc(record.source)}</code>"]
    parts += [esc(f"{record.method} by {record.engine}"), esc(moment(record.created))]
    return _page(
        record.name,
        search_page.sections(record),
        summary=f"<p>{prose(sentence(record))}</p>",
        meta=" · ".join(parts),
        charts={record.traffic: own_charts(search_page.drawings(record))},
        version=str(record.environment.get("version", "")),
    )


def _meta(run: Run) -> str:
    parts = [
        f"Run <code>{esc(run.id)}</code>",
        f"<code>{esc(run.source)}</code>",
        esc(moment(run.created)),
    ]
    if run.status and run.status != "done":
        parts.append(f'<span class="badge mark">{esc(run.status)}</span>')
    return " · ".join(parts)


def _results(table: Table, charts: dict[str, dict[str, Spec]], outcomes: Sequence[Outcome]) -> str:
    if not charts:
        return "<p>No point is done yet.</p>"
    notes = list(table.notes)
    if len(table.flows) > MAX_FLOWS:
        notes.append(f"{MAX_FLOWS} of {len(table.flows)} {table.rows_title} are drawn.")
    said = f'<p class="muted">{esc(" ".join(notes))}</p>' if notes else ""
    remarks = Remarks()
    for outcome in outcomes:
        remarks.add(outcome)
    said += "".join(f'<p class="muted">{prose(line)}</p>' for line in remarks.lines())
    boxes = "".join(
        figure_box(name, table, charts, whole)
        for name, whole in (
            ("goodput-map", True),
            ("goodput", True),
            ("delay-map", True),
            ("loss-map", True),
            ("delay", False),
            ("loss", False),
            ("message-delay", False),
            ("transfer", False),
            ("goodput-resources", True),
            ("sharing", True),
            ("offered-received", bool(table.panels)),
        )
    )
    if invalid := invalid_points(table):
        said = blocks_html([Prose(invalid, Marked("invalid", "bad"))]) + said
    return f'{said}{choices(table, list(charts))}<div class="figures">{boxes}</div>'


def _points(run: Run, table: Table, outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """The encoded points for the download, and what they are; too many points are left to `export`."""
    everything = f"`engpass export {run.id} -o points.csv` writes all outcomes"
    encoded = csv_download.encode(csv_download.raw(run, outcomes))
    if len(encoded) <= csv_download.MAX_ENCODED:
        return encoded, f"all {len(outcomes)} outcomes, in base units"
    encoded = csv_download.encode(csv_download.folded(table))
    if len(encoded) <= csv_download.MAX_ENCODED:
        return encoded, f"mean, minimum and maximum of every point; {everything}"
    return "", everything


@cache
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, as vl-convert ships them.

    Bundling takes seconds, so the result is cached for the user.
    """
    kept = _kept()
    with suppress(OSError, UnicodeDecodeError):
        if kept is not None and (text := kept.read_text(encoding="utf-8")):
            return text
    text = (
        vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )
    # These would end a script element or change its parsing; the escapes mean the same in JavaScript.
    text = text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    if kept is not None:
        _keep(kept, text)
    return text


def _kept() -> Path | None:
    """The cache file of the library's script; `None` if the user has no usable cache directory."""
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return caches / "engpass" / f"vega-{version_of('vl-convert-python')}.js" if caches.is_absolute() else None


def _keep(file: Path, text: str) -> None:
    """Write the cache file atomically, so that no process reads a partial file; errors are ignored."""
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        try:
            new.write_text(text, encoding="utf-8")
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)


@cache
def _script() -> str:
    return _resource("page.js")


@cache
def _style() -> str:
    light, dark = theme.variables(theme.LIGHT), theme.variables(theme.DARK)
    return (
        f":root{{{light}}}\n"
        f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=dark]{{{dark};color-scheme:dark}}\n:root[data-theme=light]{{color-scheme:light}}\n"
        "@media print{:root,:root[data-theme=dark],:root:not([data-theme=light])"
        f"{{{light};color-scheme:light}}}}\n"
        f"body{{font-family:{theme.FONT}}}\n" + _resource("page.css")
    )


def _resource(name: str) -> str:
    return files("engpass.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _policy(*scripts: str) -> str:
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii") + "'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
