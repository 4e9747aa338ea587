"""An explanation as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from engpass import ledger, say
from engpass.cli.tables import grid, plain

if TYPE_CHECKING:
    from rich.console import Console

    from engpass.explain import Explanation
    from engpass.explain.situation import Hop
    from engpass.ledger import Books

# Columns that a table of accounts takes beside the names, and each direction of a link.
_NAMES, _COLUMN = 30, 26


def show(made: Explanation, out: Console) -> None:
    """Print an explanation: waterfall, ledgers, losses, counts, changes and the sentence."""
    chosen, at = made.chosen, made.at
    title = ", ".join([chosen.flow, *([chosen.place] if chosen.place else [])])
    if chosen.worst:
        out.print(
            f"{title} loses most against its limit: {say.rate(at.goodput)} of {say.rate(at.limit)}",
            markup=False,
            soft_wrap=True,
        )
        out.print()
    if made.waterfall:
        out.print(_waterfall(made, title))
    else:
        out.print("this engine keeps no ledger; the losses follow", markup=False)
    hops = [hop for hop in (*at.hops, *(at.back if at.tcp else ())) if hop.books is not None]
    columns = [(_heading(hop), hop.books) for hop in hops if hop.books]
    for part in accounts(columns, out.width, len(at.outcomes)):
        out.print(part)
    if at.drops:
        out.print(_drops(made))
    if at.counts:
        out.print(_counts(at.counts))
    if made.timeline is not None:
        from engpass.cli.sparkline import show as show_timeline

        show_timeline(made.timeline, chosen.flow, out)
    if made.advice is not None and made.advice.changes:
        out.print(_changes(made))
    out.print()
    out.print(made.sentence, markup=False, soft_wrap=True, style="bold")
    if made.advice is not None:
        tried = say.count(len(made.advice.tried), "change")
        note = f"{tried} simulated in {say.count(made.advice.runs, 'run')}"
        if made.advice.tried and not made.advice.changes:
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
        "Taken by", "Rate", "of the line", "left", title=f"{title}: link {tight.link}, {tight.place}", left=1
    )
    for step in made.waterfall:
        # The first and the last step take nothing.
        taken = say.percent(step.taken) if step.taken else ""
        rate = "" if not taken or line is None else say.rate(step.taken * line)
        left = say.percent(step.left) if line is None else say.rate(step.left * line)
        shown.add_row(*plain(step.name, rate, taken, left))
    shown.rows[-1].style = "bold"
    return shown


def accounts(columns: Sequence[tuple[str, Books]], width: int, runs: int) -> list[Table]:
    """Ledgers side by side, in bits and per cent; more tables where the width asks for it.

    A column is a heading and the books, added up over so many runs; the bits are those of one.
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
            f"{say.bits(books.bits(name) / runs)} {say.percent(books.share(name)):>8}"
            if books.accounts.get(name)
            else ""
            for _, books in columns
        ]
        shown.add_row(*plain(ledger.title(name), *row))
    shown.add_section()
    whole = [f"{say.bits(books.capacity / books.parts / runs)} {say.percent(1.0):>8}" for _, books in columns]
    shown.add_row(*plain("capacity", *whole), style="bold")
    return shown


def _drops(made: Explanation) -> Table:
    shown = grid("Lost at", "Cause", "Flow", "Cells, frames", "Datagrams", left=3)
    for drop in made.at.drops:
        numbers = (f"{drop.cells:,.0f}", f"{drop.datagrams:,.0f}")
        shown.add_row(*plain(drop.place.replace("->", "→"), drop.cause, drop.flow, *numbers))
    if len(made.at.outcomes) > 1:
        shown.caption = Text("per repeat, on average")
        shown.caption_justify = "left"
    return shown


def _counts(counts: Mapping[str, Any]) -> Table:
    shown = Table.grid(padding=(0, 2))
    for key, value in counts.items():
        shown.add_row(Text(say.named(key), style="bold"), Text(say.counted(key, value)))
    return shown


def _changes(made: Explanation) -> Table:
    shown = grid("What gains, simulated", "Goodput", "Cost", "As --set", left=1)
    shown.columns[3].justify = "left"
    for change in made.advice.changes if made.advice else ():
        sets = "\n".join(f"{path}={value}" for path, value in change.set)
        what = change.say + "".join(f"; `{name}` loses {say.rate(lost)}" for name, lost in change.others)
        goodput = say.change(change.before, change.after)
        shown.add_row(*plain(what, goodput, change.cost.name.lower(), sets))
    return shown
