"""Tables of a search, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from engpass import formatting
from engpass.cli.tables import grid, moment, plain
from engpass.formatting import percent, rate
from engpass.search.found import Found, GoalFound, Tried, found, tried

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from engpass.store import RunRecord


def show(record: RunRecord, out: Console) -> None:
    """Print every trial and the result of a search."""
    if record.method == "rfc6349":
        from engpass.cli.path_tables import show as show_path

        show_path(record, out)
        return
    title = f"{record.traffic}: {record.method} by {record.engine}, variant {record.variant}"
    out.print(_trials(record, title))
    result = found(record)
    if result is None:
        out.print(Text("the search has not ended; repeat the command to continue it"))
        return
    if result.goals is not None:
        out.print(_goals(result, result.goals))
        for goal in result.goals:
            if not goal.regular:
                named = percent(goal.goal.loss_ratio)
                out.print(Text(f"irregular, goal of {named} loss: {goal.why}", style="bold"))
    elif result.finished is not None:
        _throughput(result, out)
    else:
        clean = result.highest_clean_bit_per_s
        out.print(Text(f"highest load without loss: {rate(clean) if clean else 'not found'}"))
    if invalid := result.invalid_trials:
        text = (
            f"invalid: packets of the emulated network were too late in {invalid} of {result.trials} trials"
        )
        out.print(Text(f"{text}, so the results do not describe the network", style="bold"))
    for note in result.notes:
        out.print(Text(f"note: {note}"))
    for departure in result.departures:
        out.print(Text(f"not conforming: {departure}"))


def _trials(record: RunRecord, title: str) -> Table:
    table = grid("Trial", "Offered", "Duration", "Sent", "Lost", "Loss", "Received", "", title=title, left=0)
    remarks = [_remark(trial) for trial in tried(record)]
    for row in formatting.trials(list(zip(record.trials, remarks, strict=True))):
        table.add_row(*plain(*row))
    return table


def _remark(trial: Tried) -> str:
    if not trial.valid:
        return "invalid: this machine was too slow for it"
    return "" if trial.kept else f"the sender offered {percent(trial.sent / max(1, trial.asked))}"


def _goals(result: Found, goals: Sequence[GoalFound]) -> Table:
    table = grid(
        "Goal loss ratio",
        "Final trial",
        "Duration sum",
        "Exceed ratio",
        "Lower bound",
        "Upper bound",
        "Width",
        "Conditional throughput",
        title=f"MLRsearch, {result.trials} trials, {result.trial_seconds:g} s of traffic",
    )
    for one in goals:
        goal, lower, upper = one.goal, one.lower_bit_per_s, one.upper_bit_per_s
        apart = percent((upper - lower) / upper) if lower is not None and upper else ""
        mark = "" if one.regular else " (irregular)"
        table.add_row(
            *plain(
                percent(goal.loss_ratio),
                f"{goal.final_trial_s:g} s",
                f"{goal.duration_sum_s:g} s",
                percent(goal.exceed_ratio),
                rate(lower) + (mark if lower is not None else ""),
                rate(upper),
                apart,
                rate(one.conditional_throughput_bit_per_s),
            )
        )
    return table


def _throughput(result: Found, out: Console) -> None:
    most, lossy = result.throughput_bit_per_s, result.lowest_lossy_bit_per_s
    if most is None:
        out.print(Text("throughput: none; even the smallest load has loss", style="bold"))
        return
    frames = most / (8 * result.message_bytes)
    above = f"; {rate(lossy)} has loss" if lossy is not None else ", the largest load tried"
    state = "" if result.finished else " so far; the search ended early"
    out.print(
        Text(f"throughput: {rate(most)} of payload, {frames:,.0f} datagrams/s{above}{state}", style="bold")
    )


def _best(record: RunRecord) -> float | None:
    result = found(record) or Found()
    if result.goals is not None:
        return min(result.goals, key=lambda one: one.goal.loss_ratio).lower_bit_per_s
    return result.highest_clean_bit_per_s if result.finished is None else result.throughput_bit_per_s


def sizes_table(records: Sequence[RunRecord], sizes: Sequence[int]) -> Table:
    """Throughput by frame size, beside the largest load of the search (RFC 2544 section 26.1)."""
    table = grid(
        "Frame",
        "Largest load",
        "Throughput",
        "% of maximum",
        "Payload",
        title="Throughput by frame size",
        left=0,
    )
    for record, size in zip(records, sizes, strict=True):
        bits = 8 * (found(record) or Found()).message_bytes
        most, best = record.settings["most_bit_per_s"], _best(record)
        table.add_row(
            *plain(
                f"{size} B",
                f"{most / bits:,.0f} frames/s",
                "" if best is None else f"{best / bits:,.0f} frames/s",
                "" if best is None else percent(best / most),
                rate(best),
            )
        )
    return table


def searches(records: Sequence[RunRecord]) -> Table:
    """Table of the searches in a store."""
    table = grid("Search", "Testbed", "Method", "Engine", "Traffic", "Ended", "Started", left=6)
    for r in records:
        ended = "yes" if r.result is not None else "no"
        table.add_row(*plain(r.id, r.name, r.method, r.engine, r.traffic, ended, moment(r.created)))
    return table
