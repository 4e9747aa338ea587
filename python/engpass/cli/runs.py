"""`engpass runs`: what is in the store."""

from __future__ import annotations

from engpass.cli import console, options


def command(store: options.StoreAt = options.STORE, as_json: options.Json = False) -> None:
    """List the runs in the store, the one used last at the end."""
    from engpass.store import Store

    with Store.open(store, create=False) as opened:
        records = opened.runs()
    if as_json:
        for record in records:
            console.line({k: v for k, v in record.to_json().items() if k not in ("text", "topology", "axes")})
        return
    from engpass.cli.tables import runs

    console.tables().print(runs(records))
