"""`engpass runs`: lists the runs and searches in the store."""

from __future__ import annotations

from engpass.cli import console, options


def command(store: options.StoreAt = options.STORE, as_json: options.Json = False) -> None:
    """List the runs in the store, the last used one at the end, and the searches."""
    from engpass.store import Store

    with Store.open(store, create=False) as opened:
        records, searched = opened.runs(), opened.searches.all()
    if as_json:
        for record in records:
            console.line({k: v for k, v in record.to_json().items() if k not in ("text", "topology", "axes")})
        for search in searched:
            console.line({k: v for k, v in search.to_json().items() if k not in ("text", "trials")})
        return
    from engpass.cli.tables import runs

    out = console.tables()
    if records or not searched:
        out.print(runs(records))
    if searched:
        from engpass.cli.search_tables import searches

        out.print(searches(searched))
