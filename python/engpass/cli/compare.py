"""`engpass compare`: compares runs point by point."""

from __future__ import annotations

from typing import Annotated

import typer

from engpass.cli import console, options
from engpass.error import EngpassError

Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN RUN...", help="Ids of runs, or their first characters."),
]
Whole = Annotated[bool, typer.Option("--all", help="Print all changes, not only the greatest.")]


def command(
    runs: Runs,
    store: options.StoreAt = options.STORE,
    as_json: options.Json = False,
    whole: Whole = False,
) -> None:
    """Compare runs point by point: goodput, loss and delay that differ by more than chance explains.

    The first run is the base. Runs of different files are compared where they have the same variants, flows
    and swept values. Repeats are compared by Welch's t-test at a level of 0.1 %.
    """
    from engpass.results.comparison import compare
    from engpass.results.samples import SUMMARY
    from engpass.show.data import to_json
    from engpass.show.terminal import print_document
    from engpass.store import Store
    from engpass.views.comparison import Compared, view

    if len(runs) < 2:
        raise EngpassError("a comparison needs two runs", "`engpass runs` lists them: `engpass compare A B`")
    with Store.open(store, create=False) as opened:
        records = [opened.run(run) for run in runs]
        ids = [record.id for record in records]
        if (twice := next((one for one in ids if ids.count(one) > 1), None)) is not None:
            raise EngpassError(f"run {twice} is given twice", "`engpass runs` lists the others")
        outcomes = [(outcome for _, outcome in opened.read_outcomes(record)) for record in records]
        signals = [signal for signal in SUMMARY if signal.better is not None]
        found = compare(outcomes, signals)
    # The last axis gives the text of a value: the first run's, if it has the value.
    axes = [axis for record in reversed(records) for axis in record.axes]
    compared = []
    for record in records:
        overrides = [f"{path} = {value}" for path, value in record.overrides]
        compared.append(Compared(record.id, ", ".join([record.source, *overrides])))
    document = view(compared, axes, found, whole=whole or as_json)
    if as_json:
        console.line(to_json(document))
    else:
        print_document(document, console.tables())
