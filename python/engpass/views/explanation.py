"""The parts of an explanation: results of the flow, use of its lines, losses, counters of TCP, changes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engpass import formatting
from engpass.advice import shown, told
from engpass.results import ledger
from engpass.results.samples import DELAY_P50, DELAY_P99, FLOW_SIGNALS
from engpass.show.blocks import Amount, Block, Cell, Column, Group, Groups, OverTime, Prose, Table, columns
from engpass.views import timeline

if TYPE_CHECKING:
    from engpass.advice import Advice, Change
    from engpass.explain.point_facts import Situation
    from engpass.explanation import Explanation
    from engpass.results.ledger import Books
    from engpass.types.signals import Signal

_MEAN = "mean of the repeats"


def service(at: Situation) -> Table:
    """Goodput, loss and delay of the flow, with its limit and its idle delay to compare."""
    idle = "" if not at.idle_delay else f"idle path {formatting.duration(at.idle_delay)}"
    rows: list[Sequence[Cell]] = [
        ("goodput", Amount(at.goodput, "bit/s"), at.limit_text),
        ("loss", Amount(at.served.loss, ""), ""),
        ("delay p50", _time(at.folded(DELAY_P50)), idle),
        ("delay p99", _time(at.folded(DELAY_P99)), ""),
    ]
    rows += [
        (signal.title.lower(), _time(value), "")
        # The message delay of a datagram is its delay.
        for name in ("queueing_delay_p99_s", *(["message_delay_p99_s"] if at.tcp else []))
        if (value := at.folded(signal := FLOW_SIGNALS[name])) is not None
    ]
    if at.gap is not None:
        rows.append(("longest gap", _time(at.gap), at.outage_text))
    columns = [Column("Measure"), Column("Simulated", right=True), Column("Compare with", right=True)]
    notes = ["several repeats: mean rates and delays, loss of all datagrams, longest gap of all"]
    return Table("Results of the flow", columns, rows, notes if len(at.outcomes) > 1 else ())


def _time(seconds: float | None) -> Amount | None:
    return None if seconds is None else Amount(seconds, "s")


def _of_repeats(at: Situation) -> str:
    return f", {_MEAN}" if len(at.outcomes) > 1 else ""


def losses(at: Situation) -> Table:
    """Where the packets of which flow were lost, and why."""
    rows: list[Sequence[Cell]] = [
        (
            formatting.place_name(drop.place, at.parallel),
            drop.cause,
            drop.flow,
            round(drop.cells),
            round(drop.datagrams),
        )
        for drop in at.drops
    ]
    columns = [Column("Lost at"), Column("Cause"), Column("Flow")]
    columns += [Column(title, right=True) for title in ("Cells, frames", "Datagrams")]
    return Table(f"Losses by place{_of_repeats(at)}", columns, rows)


def counters(at: Situation) -> Table:
    """What TCP counted."""
    counts: Mapping[str, float] = at.counts
    rows: list[Sequence[Cell]] = [
        (formatting.named(key), formatting.counted(key, value)) for key, value in counts.items()
    ]
    return Table(f"Counters of TCP{_of_repeats(at)}", [Column("Counter"), Column("Value", right=True)], rows)


def title(made: Explanation) -> str:
    """The flow and the point in words."""
    return ", ".join(filter(None, (made.chosen.title, made.chosen.place)))


def view(made: Explanation) -> Iterator[Block]:
    """The whole explanation, its sentence near the end, where a reader of a terminal looks."""
    at = made.at
    if made.chosen.selected_as_worst:
        yield Prose(f"{title(made)}: selected as the worst point\n")
    yield from (service(at), waterfall(made), ledgers(at), losses(at), counters(at), *over_time_of(made))
    if made.advice is not None:
        yield from changes(made.advice, len(at.outcomes))
    yield Prose(f"\n{made.sentence}", strong=True)
    if made.advice is not None:
        yield tried(made.advice)


def over_time_of(made: Explanation) -> list[OverTime]:
    """The timeline, if it was recorded."""
    place = made.chosen.place
    return [timeline.view(made.timeline, made.chosen.title, place)] if made.timeline is not None else []


def waterfall(made: Explanation) -> Block:
    """From line rate to delivered payload on the line of the path with the least idle time."""
    tight = made.at.tight
    if tight is None or not made.waterfall:
        return Prose("this engine has no ledger; the losses follow")
    line = tight.rate
    rows: list[Sequence[Cell]] = []
    for step in made.waterfall:
        # The first and the last step of a waterfall take no share.
        taken = Amount(step.taken, "") if step.taken else ""
        rate = Amount(step.taken * line, "bit/s") if step.taken and line is not None else ""
        left = Amount(step.left, "") if line is None else Amount(step.left * line, "bit/s")
        rows.append((step.name, rate, taken, left))
    heads = columns("Account", "Rate", "% of line", "Remaining")
    return Table(f"{title(made)}: link {tight.link}, {tight.place}", heads, rows, total=True)


def ledgers(at: Situation) -> Table:
    """The ledgers of all lines on the path, and on the way back of TCP."""
    hops = [*at.hops, *(at.back if at.tcp else ())]
    sides = [(f"{hop.link}: {hop.start} → {hop.end}", hop.books) for hop in hops if hop.books is not None]
    return accounts(sides, len(at.outcomes))


def accounts(sides: Sequence[tuple[str, Books]], runs: int, title: str = "") -> Table:
    """Ledgers side by side, in bits and per cent.

    A side is a heading and a ledger that is summed over `runs` runs; the table shows the mean of a run.
    """
    names = ledger.ordered(name for _, books in sides for name in books.names)
    homes = [ledger.family(name).key for name in names]
    rules = [place for place in range(1, len(homes)) if homes[place] != homes[place - 1]]
    rows: list[list[Cell]] = [
        [
            ledger.title(name),
            *(
                _bits(books.bits(name) / runs, books.share(name)) if books.accounts.get(name) else ""
                for _, books in sides
            ),
        ]
        for name in names
    ]
    if rows:
        rows.append(["capacity", *(_bits(books.capacity / books.parts / runs, 1.0) for _, books in sides)])
    heads = columns("Account", *(heading for heading, _ in sides))
    return Table(title, heads, rows, rules=[*rules, len(names)], total=True, splits=True)


def _bits(amount: float, share: float) -> str:
    return f"{formatting.bits(amount)} {formatting.percent(share):>8}"


def changes(advice: Advice, repeats: int) -> list[Groups]:
    """Effects on every flow of each change that helps; `repeats` is their number in the explanation."""
    mean = f", mean of {advice.seeds} seeds" if advice.seeds > repeats else ""
    named = (("Changes that help", advice.changes), ("Changes that help at a price", advice.trades))
    return [_groups(f"{title} (simulated{mean})", found) for title, found in named if found]


def _groups(title: str, found: Sequence[Change]) -> Groups:
    signals = shown(found)
    columns = ("Flow", *(signal.title for signal in signals))
    return Groups(title, "Change", columns, [_group(change, signals) for change in found])


def _group(change: Change, signals: Sequence[Signal]) -> Group:
    effects = told(change)
    left = 1 + len(change.others) - len(effects)
    return Group(
        f"{change.say} ({change.cost.name.lower()})",
        [f"--set {shlex.quote(f'{path}={value}')}" for path, value in change.set],
        [(effect.flow, *map(effect.pair, signals)) for effect in effects],
        f"and {left:,} more flows: `--json` has all" if left else "",
    )


def tried(advice: Advice) -> Prose:
    """How many changes were simulated, and which, if none helps."""
    number = formatting.count(len(advice.tried), "change")
    text = f"{number} simulated in {formatting.count(advice.runs, 'run')}{advice.basis}"
    if advice.tried and not (advice.changes or advice.trades):
        text += ": " + "; ".join(advice.tried)
    return Prose(text)
