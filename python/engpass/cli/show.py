"""`engpass show`: one run."""

from __future__ import annotations

from engpass.cli import console, options
from engpass.cli.run import tell_failures


def command(
    run: options.Run = "last", store: options.StoreAt = options.STORE, as_json: options.Json = False
) -> None:
    """Show a run: what was asked, where it ran, how far it is, what came out and what failed."""
    from engpass.campaign import sweep_numbers
    from engpass.store import Store

    with Store.open(store, create=False) as opened:
        record = opened.run(run)
        if as_json:
            axes = record.plan.axes
            failures = [f.to_json(sweep_numbers(f.point, axes)) for f in opened.failures(record)]
            console.line({**record.to_json(), "sessions": opened.sessions(record.id), "failures": failures})
            return
        from engpass.cli.tables import details, summary

        out = console.tables()
        out.print(details(record, len(opened.sessions(record.id))))
        if record.points_done:
            summary(opened, record, out)
        if record.points_failed:
            tell_failures(opened, record)
