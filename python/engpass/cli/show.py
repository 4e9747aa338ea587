"""`engpass show`: shows one run or search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engpass.cli import console, options
from engpass.cli.run import tell_failures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engpass.show.blocks import Block
    from engpass.store import RunRecord, Store

Ledger = Annotated[
    bool,
    typer.Option(
        "--ledger", help="Show what took the time of each line, by cause, over all points of a variant."
    ),
]

Lines = Annotated[
    bool,
    typer.Option("--lines", help="Show how busy lines and CPUs were, queues, and what was lost."),
]

Delays = Annotated[
    bool,
    typer.Option("--delays", help="Show percentiles of delays, round-trip times, latencies and gaps."),
]


def command(
    run: options.Run = "last",
    store: options.StoreAt = options.STORE,
    as_json: options.Json = False,
    ledger: Ledger = False,
    delays: Delays = False,
    lines: Lines = False,
) -> None:
    """Show a run: settings, host, progress, results and failed points."""
    from engpass.campaign import swept_values
    from engpass.show.blocks import Document
    from engpass.show.data import to_json
    from engpass.show.terminal import print_blocks
    from engpass.store import Store
    from engpass.store.record import CAMPAIGN

    with Store.open(store, create=False) as opened:
        record = opened.run(run, any_method=True)
        if record.method != CAMPAIGN:
            if as_json:
                console.line(record.to_json())
                return
            from engpass.views.search import view

            print_blocks(view(record), console.tables())
            return
        if delays or lines or ledger:
            blocks = _blocks(opened, record, "delays" if delays else "lines" if lines else "ledger")
            if as_json:
                console.line(to_json(Document(record.name, "", blocks)))
            else:
                print_blocks(blocks, console.tables())
            return

        if as_json:
            axes = record.plan.axes
            failures = [f.to_json(swept_values(f.point, axes)) for f in opened.failures(record)]
            console.line({**record.to_json(), "sessions": opened.sessions(record.id), "failures": failures})
            return
        from engpass.cli.summary import summary
        from engpass.views.stored import details

        out = console.tables()
        print_blocks([details(record, record.points_failed, len(opened.sessions(record.id)))], out)
        if record.points_done:
            summary(opened, record, out)
        if record.points_failed:
            tell_failures(opened, record)


def _blocks(store: Store, record: RunRecord, what: str) -> list[Block]:
    """The delays, the lines or the ledgers of a run."""
    if what == "ledger":
        return list(_ledgers(store, record))
    if what == "delays":
        from engpass.cli.summary import delays

        return delays(store, record)
    from engpass.views.resources import engine_table, line_table

    return [table(one for _, one in store.read_outcomes(record)) for table in (line_table, engine_table)]


def _ledgers(store: Store, record: RunRecord) -> Iterator[Block]:
    """The ledger of every link direction on which some flow could send data, per variant."""
    from engpass import formatting
    from engpass.results import ledger
    from engpass.show.blocks import Prose
    from engpass.views.explanation import accounts

    sums: dict[tuple[str, str], ledger.Sums] = {}
    for _, outcome in store.read_outcomes(record):
        sums.setdefault((outcome.variant, outcome.engine), ledger.Sums()).add(outcome)
    for variant in record.plan.variants:
        found = {engine: sums.get((variant, engine)) for engine in record.plan.engines}
        kept = {engine: one for engine, one in found.items() if one is not None and one.outcomes}
        if not kept:
            console.tell(f"no point of `{variant}` has a ledger")
        for engine, ledgers in kept.items():
            used = [side for side in ledgers.directions if not side.books.nobody_sends]
            what = formatting.count(ledgers.outcomes, f"{_DONE.get(engine, engine)} point")
            yield Prose(f"{variant}: mean of {what}")
            sides = [(f"{side.link}: {side.start} → {side.end}", side.books) for side in used]
            yield accounts(sides, ledgers.outcomes)


_DONE = {"simulate": "simulated", "emulate": "emulated", "measure": "measured"}
