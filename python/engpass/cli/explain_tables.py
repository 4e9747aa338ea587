"""Tables of an explanation, for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from engpass import formatting
from engpass.advice import effect_texts, told
from engpass.cli.tables import grid, plain
from engpass.results import ledger
from engpass.show.terminal import print_block
from engpass.views.explanation import counters, losses, service

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.advice import Change
    from engpass.explain.point_facts import Hop
    from engpass.explanation import Explanation
    from engpass.results.ledger import Books

# Width of the names of accounts, and of the column of each link direction, in characters.
_NAMES, _COLUMN = 30, 26


def show(made: Explanation, out: Console) -> None:
    """Print an explanation: waterfall, ledgers, losses, counts, changes and the sentence."""
    chosen, at = made.chosen, made.at
    title = ", ".join([chosen.title, *([chosen.place] if chosen.place else [])])
    if chosen.selected_as_worst:
        out.print(f"{title}: selected as the worst point", markup=False, soft_wrap=True)
        out.print()
    print_block(service(at), out)
    if made.waterfall:
        out.print(_waterfall(made, title))
    else:
        out.print("this engine has no ledger; the losses follow", markup=False)
    hops = [hop for hop in (*at.hops, *(at.back if at.tcp else ())) if hop.books is not None]
    columns = [(_heading(hop), hop.books) for hop in hops if hop.books]
    for part in accounts(columns, out.width, len(at.outcomes)):
        out.print(part)
    print_block(losses(at), out)
    print_block(counters(at), out)
    if made.timeline is not None:
        from engpass.cli.sparkline import show as show_timeline

        show_timeline(made.timeline, chosen.title, out)
    if made.advice is not None:
        more = made.advice.seeds > len(at.outcomes)
        mean = f", mean of {made.advice.seeds} seeds" if more else ""
        _changes(f"Changes that help (simulated{mean})", made.advice.changes, out)
        _changes(f"Changes that help at a price (simulated{mean})", made.advice.trades, out)
    out.print()
    out.print(made.sentence, markup=False, soft_wrap=True, style="bold")
    if made.advice is not None:
        tried = formatting.count(len(made.advice.tried), "change")
        note = f"{tried} simulated in {formatting.count(made.advice.runs, 'run')}{made.advice.basis}"
        if made.advice.tried and not (made.advice.changes or made.advice.trades):
            note += ": " + "; ".join(made.advice.tried)
        out.print(note, markup=False, soft_wrap=True, style="dim")


def _heading(hop: Hop) -> str:
    return f"{hop.link}: {hop.start} → {hop.end}"


def _waterfall(made: Explanation, title: str) -> Table:
    tight = made.at.tight
    if tight is None:
        raise AssertionError("there is a waterfall only of a link")
    line = tight.rate
    shown = grid(
        "Account",
        "Rate",
        "% of line",
        "Remaining",
        title=f"{title}: link {tight.link}, {tight.place}",
        left=1,
    )
    for step in made.waterfall:
        # The first and the last step of a waterfall take no share.
        taken = formatting.percent(step.taken) if step.taken else ""
        rate = "" if not taken or line is None else formatting.rate(step.taken * line)
        left = formatting.percent(step.left) if line is None else formatting.rate(step.left * line)
        shown.add_row(*plain(step.name, rate, taken, left))
    shown.rows[-1].style = "bold"
    return shown


def accounts(columns: Sequence[tuple[str, Books]], width: int, runs: int) -> list[Table]:
    """Tables of ledgers side by side, in bits and per cent; several tables if the width is too small.

    A column is a heading and a ledger that is summed over `runs` runs; the table shows the mean of a run.
    """
    beside = max(1, (width - _NAMES) // _COLUMN)
    return [_accounts(columns[start : start + beside], runs) for start in range(0, len(columns), beside)]


def _accounts(columns: Sequence[tuple[str, Books]], runs: int) -> Table:
    shown = grid("Account", *(heading for heading, _ in columns))
    names = ledger.ordered(name for _, books in columns for name in books.names)
    before = ""
    for name in names:
        home = ledger.family(name).key
        if before and home != before:
            shown.add_section()
        before = home
        row = [
            f"{formatting.bits(books.bits(name) / runs)} {formatting.percent(books.share(name)):>8}"
            if books.accounts.get(name)
            else ""
            for _, books in columns
        ]
        shown.add_row(*plain(ledger.title(name), *row))
    shown.add_section()
    whole = [
        f"{formatting.bits(books.capacity / books.parts / runs)} {formatting.percent(1.0):>8}"
        for _, books in columns
    ]
    shown.add_row(*plain("capacity", *whole), style="bold")
    return shown


def _changes(heading: str, changes: Sequence[Change], out: Console) -> None:
    """Print what each change does to every flow."""
    if not changes:
        return
    head = ("Flow", "Goodput", "Delay p99", "Loss")
    effects = [[effect_texts(effect) for effect in told(change)] for change in changes]
    widths = [
        max(map(len, column)) for column in zip(head, *(row for rows in effects for row in rows), strict=True)
    ]

    def tell(row: Sequence[str]) -> None:
        name, *figures = (text.rjust(width) for text, width in zip(row, widths, strict=True))
        _line(out, "      " + "  ".join([row[0].ljust(len(name)), *figures]))

    out.print()
    _line(out, heading, style="bold")
    tell(head)
    for change, rows in zip(changes, effects, strict=True):
        _line(out, f"  {change.say} ({change.cost.name.lower()})")
        for path, value in change.set:
            _line(out, f"  --set {shlex.quote(f'{path}={value}')}")
        for row in rows:
            tell(row)
        if left := 1 + len(change.others) - len(rows):
            _line(out, f"      and {left:,} more flows: `--json` has all")


def _line(out: Console, text: str, style: str | None = None) -> None:
    out.print(text, markup=False, soft_wrap=True, style=style)
