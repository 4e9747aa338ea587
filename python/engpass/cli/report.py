"""`engpass report`: writes a run as an HTML file, and its figures as pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engpass.cli import console, files, options
from engpass.error import EngpassError
from engpass.jsondata import Json

if TYPE_CHECKING:
    from engpass.store import RunRecord, Store
    from engpass.types.outcome import Outcome

Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")]
Figures = Annotated[
    str | None,
    typer.Option(
        "--figures", metavar="DIR", help="Also write the figures to this directory, as PNG and SVG."
    ),
]
Claims = Annotated[
    str | None,
    typer.Option("--claims", metavar="FILE", help="Claims to show: output of `engpass reproduce --json`."),
]


def command(
    run: options.Run = "last",
    output: Output = "report.html",
    figures: Figures = None,
    claims: Claims = None,
    store: options.StoreAt = options.STORE,
) -> None:
    """Write a run as one HTML file for offline use: curves, testbed, points, bottlenecks, environment.

    For the id of a search or a path: the result, loss against load, and every step.
    """
    from engpass.store import Store
    from engpass.store.record import CAMPAIGN

    files.html(output)
    made, notes = _claims(Path(claims)) if claims else ((), ())
    with Store.open(store, create=False) as opened:
        record = opened.run(run, any_method=True)
        if record.method != CAMPAIGN:
            if claims:
                raise EngpassError("a search has no claims", "remove `--claims`")
            _search(record, output, figures)
            return
        outcomes = _outcomes(opened, record)
    with console.waiting(f"drawing run {record.id}"):
        from engpass.report import export_figures, render

        files.write(Path(output), render(record, outcomes, made, notes))
        pictures = []
        if figures:
            try:
                pictures = export_figures(record, outcomes, Path(figures))
            except OSError as error:
                raise files.unwritable(Path(figures), error) from None
    console.tell(f"report of run {record.id} written to `{output}`")
    if pictures:
        console.tell(f"{len(pictures)} figures written to `{figures}`")
    if record.points_done < record.points_total:
        console.tell(
            f"note: only {record.points_done:,} of {record.points_total:,} points of the run are done"
        )


def _search(record: RunRecord, output: str, figures: str | None) -> None:
    from engpass.report.page import render_search
    from engpass.report.search_page import drawings

    with console.waiting(f"drawing {record.id}"):
        files.write(Path(output), render_search(record))
    console.tell(f"report of {record.id} written to `{output}`")
    if figures:
        files.pictures(drawings(record), figures)
    if record.result is None:
        console.tell("note: it has not ended yet")


def _outcomes(store: Store, record: RunRecord) -> list[Outcome]:
    """The outcomes of a run, without parts that the report does not show."""
    from engpass.results.ledger import slim

    return [slim(outcome) for _, outcome in store.read_outcomes(record)]


def _claims(path: Path) -> tuple[Sequence[dict[str, Json]], Sequence[str]]:
    """Read the claims and the notes of a study from the output of `engpass reproduce --json`."""
    cure = "give the output of `engpass reproduce STUDY --json`"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EngpassError(f"`{path}` cannot be read: {error.strerror}", cure) from None
    except (ValueError, RecursionError):
        raise EngpassError(f"`{path}` is not JSON", cure) from None
    claims = data.get("claims") if isinstance(data, dict) else data
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise EngpassError(f"`{path}` has no list of claims", cure)
    notes = data.get("notes", []) if isinstance(data, dict) else []
    return claims, [str(note) for note in notes] if isinstance(notes, list) else []
