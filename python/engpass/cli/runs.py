"""`engpass runs`: lists the runs and searches in the store."""

from __future__ import annotations

from engpass.cli import console, options


def command(store: options.StoreAt = options.STORE, as_json: options.Json = False) -> None:
    """List the runs in the store, the last used one at the end, and the searches."""
    from engpass.store import Store
    from engpass.store.record import CAMPAIGN

    with Store.open(store, create=False) as opened:
        found = opened.runs()
    if as_json:
        left_out = ("text", "topology", "axes", "trials")
        for record in found:
            console.line({k: v for k, v in record.to_json().items() if k not in left_out})
        return
    records = [record for record in found if record.method == CAMPAIGN]
    searched = [record for record in found if record.method != CAMPAIGN]
    from engpass.show.terminal import grid
    from engpass.views.stored import runs, searches

    out = console.tables()
    if records or not searched:
        out.print(grid(runs(records)))
    if searched:
        out.print(grid(searches(searched)))
