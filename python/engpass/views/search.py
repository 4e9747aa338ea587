"""A search, or a measured path: the answer, what was found, and every trial or transfer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from engpass.formatting import duration, percent, rate
from engpass.jsondata import Json
from engpass.results.path import PathFound, path_found
from engpass.search.found import Found, GoalFound, Tried, found, loads, tried
from engpass.show.blocks import Amount, Block, Cell, Fact, Facts, Marked, Prose, Table, columns

if TYPE_CHECKING:
    from engpass.store import RunRecord

PATH = "rfc6349"
"""The method of a record that measures a path."""


def sentence(record: RunRecord) -> str:
    """The result in a sentence or two."""
    result = record.result
    if result is None:
        return f"This search has not ended; {len(record.trials)} trials are done."
    if record.method == PATH:
        path = path_found(result)
        return (
            f"From `{record.settings['from']}` to `{record.settings['to']}` packets of "
            f"{path.mtu_bytes:,} B pass, a round trip takes {duration(path.rtt_s)}, and the bottleneck "
            f"carries {rate(path.bandwidth_bit_per_s)} of IP. The bandwidth-delay product is "
            f"{path.bdp_bytes:,.0f} B; TCP can reach at most {rate(path.ideal_bit_per_s)} of payload."
        )
    what = found(record) or Found()
    if what.goals is not None:
        return " ".join(
            f"{_up_to(one.goal.loss_ratio)} `{record.traffic}` carries "
            f"{rate(one.conditional_throughput_bit_per_s) or 'none of the tried loads'} of payload"
            f"{'' if one.regular else f' (irregular: {one.why})'}."
            for one in what.goals
        )
    clean = _best(what)
    if clean is None:
        return f"All tried loads of `{record.traffic}` have loss."
    return f"`{record.traffic}` carries {rate(clean)} of payload without loss."


def _up_to(loss: float) -> str:
    return f"With up to {percent(loss)} loss" if loss else "Without loss"


def results(record: RunRecord) -> list[Block]:
    """The result of a search or a path measurement, and the reasons to doubt it."""
    result = record.result
    if result is None:
        return [Prose("the search has not ended; repeat the command to continue it")]
    told: PathFound | Found
    if record.method == PATH:
        told = path_found(result)
        blocks, invalid, of = _path(record, told), told.invalid_runs, "the runs"
    else:
        told = found(record) or Found()
        blocks, invalid, of = _found(told), told.invalid_trials, f"{told.trials} trials"
    if invalid:
        text = f"packets of the emulated network were too late in {invalid} of {of}"
        text += ", so the results do not describe the network"
        blocks.append(Prose(text, Marked("invalid", "bad")))
    blocks += [Prose(note, Marked("note", "muted")) for note in told.notes]
    blocks += [Prose(one, Marked("not conforming", "mark")) for one in told.departures]
    return blocks


def _found(result: Found) -> list[Block]:
    if result.goals is not None:
        irregular = [
            Prose(f"goal of {percent(one.goal.loss_ratio)} loss: {one.why}", Marked("irregular", "bad"))
            for one in result.goals
            if not one.regular
        ]
        return [_goals(result, result.goals), *irregular]
    best = _best(result)
    if result.finished is None:
        return [Prose(f"highest load without loss: {'not found' if best is None else rate(best)}")]
    if best is None:
        why = "; even the smallest load has loss" if result.finished else " so far; the search ended early"
        return [Prose(f"throughput: none{why}", strong=True)]
    lossy = result.lowest_lossy_bit_per_s
    frames = best / (8 * result.message_bytes)
    above = f"; {rate(lossy)} has loss" if lossy is not None else ", the largest load tried"
    state = "" if result.finished else " so far; the search ended early"
    text = f"throughput: {rate(best)} of payload, {frames:,.0f} datagrams/s{above}{state}"
    return [Prose(text, strong=True)]


def _goals(result: Found, goals: Iterable[GoalFound]) -> Table:
    heads = ["Goal loss ratio", "Final trial", "Duration sum", "Exceed ratio", "Lower bound", "Upper bound"]
    heads += ["Width", "Conditional throughput"]
    rows: list[list[Cell]] = []
    for one in goals:
        goal, lower, upper = one.goal, one.lower_bit_per_s, one.upper_bit_per_s
        rows.append(
            [
                Amount(goal.loss_ratio, ""),
                f"{goal.final_trial_s:g} s",
                f"{goal.duration_sum_s:g} s",
                Amount(goal.exceed_ratio, ""),
                None if lower is None else Amount(lower, "bit/s", "" if one.regular else "(irregular)"),
                _rate(upper),
                percent((upper - lower) / upper) if lower is not None and upper else "",
                _rate(one.conditional_throughput_bit_per_s),
            ]
        )
    title = f"MLRsearch, {result.trials} trials, {result.trial_seconds:g} s of traffic"
    return Table(title, columns(*heads), rows)


def _rate(bit_per_s: float | None) -> Amount | None:
    return None if bit_per_s is None else Amount(bit_per_s, "bit/s")


def trials(record: RunRecord) -> Table:
    """All trials; trials in a row with the same figures and remark share one row."""
    rows: list[list[Cell]] = []
    numbered = enumerate(tried(record), 1)
    for figures, group in groupby(numbered, key=lambda one: _figures(one[1])):
        numbers = [number for number, _ in group]
        first, last = numbers[0], numbers[-1]
        load, lasts, *others = figures
        many = first < last
        rows.append(
            [f"{first} to {last}" if many else f"{first}", load, f"{lasts} each" if many else lasts, *others]
        )
    heads = ["Trial", "Offered", "Duration", "Sent", "Lost", "Loss", "Received", ""]
    title = f"{record.traffic}: {record.method} by {record.engine}, variant {record.variant}"
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return Table(title, columns(*heads, left=0), rows)


def _figures(trial: Tried) -> list[str]:
    remark = "" if trial.kept else f"the sender offered {percent(trial.sent / max(1, trial.asked))}"
    return [
        rate(trial.load_bit_per_s),
        f"{trial.duration_s:g} s",
        f"{trial.sent:,}",
        f"{trial.lost:,}",
        percent(trial.loss),
        rate(trial.forwarded_bit_per_s),
        remark if trial.valid else "invalid: this machine was too slow for it",
    ]


def _best(result: Found) -> float | None:
    """The largest load that was found without loss, or within the goal with the least loss, in bit/s."""
    if result.goals is not None:
        return min(result.goals, key=lambda one: one.goal.loss_ratio).lower_bit_per_s
    return result.highest_clean_bit_per_s if result.finished is None else result.throughput_bit_per_s


def by_size(records: Sequence[RunRecord], sizes: Sequence[int]) -> Table:
    """Throughput by frame size, beside the largest load of the search (RFC 2544 section 26.1)."""
    rows: list[list[Cell]] = []
    for record, size in zip(records, sizes, strict=True):
        result = found(record) or Found()
        bits, most, best = 8 * result.message_bytes, loads(record).most_bit_per_s, _best(result)
        figures = ["", ""] if best is None else [f"{best / bits:,.0f} frames/s", percent(best / most)]
        rows.append([f"{size} B", f"{most / bits:,.0f} frames/s", *figures, _rate(best)])
    heads = ("Frame", "Largest load", "Throughput", "% of maximum", "Payload")
    return Table("Throughput by frame size", columns(*heads, left=0), rows)


def _path(record: RunRecord, result: PathFound) -> list[Block]:
    """The path and the transfers over it, with the sections of RFC 6349."""
    known = "given" if result.bandwidth_known else "of IP packets"
    facts = [
        Fact("path MTU", f"{result.mtu_bytes:,} B", "section 3.1"),
        Fact("baseline round-trip time", duration(result.rtt_s), "section 3.2.1, minimum"),
        Fact("bottleneck bandwidth", rate(result.bandwidth_bit_per_s), f"section 3.2.2, {known}"),
        Fact("bandwidth-delay product", f"{result.bdp_bytes:,.0f} B", "section 3.3.1"),
        Fact("ideal TCP throughput", rate(result.ideal_bit_per_s), "section 4.1.1"),
    ]
    title = f"path {record.settings['from']} → {record.settings['to']} (RFC 6349)"
    blocks: list[Block] = [Facts(facts, title), _transfers(result)]
    fractions, made = record.settings.get("fractions"), len(result.transfers)
    asked = len(fractions) if isinstance(fractions, list) else 0
    if made < asked:
        blocks.append(Prose(f"{asked - made} smaller windows were skipped: they have less than two segments"))
    return blocks


def _transfers(result: PathFound) -> Table:
    shared = f", {result.connections} connections" if result.connections > 1 else ""
    rows: list[list[Cell]] = []
    for one in result.transfers:
        granted, each = one.granted_bytes, one.efficiencies
        of_each = f" ({percent(min(each))} to {percent(max(each))})" if len(each) > 1 else ""
        rows.append(
            [
                f"{one.fraction:.0%}",
                f"{one.window_bytes:,} B",
                "" if granted is None else f"{granted:,} B",
                _rate(one.expected_bit_per_s),
                Amount(one.achieved_bit_per_s, "bit/s", "" if one.finished else "(ended early)"),
                f"{one.transfer_time_ratio:.2f}",
                percent(one.efficiency) + of_each,
                None if one.buffer_delay is None else Amount(one.buffer_delay, ""),
            ]
        )
    heads = ["Window (share of BDP)", "Requested", "Granted", "Expected", "Achieved"]
    heads += ["Transfer time ratio", "TCP efficiency", "Buffer delay"]
    return Table(f"TCP over the path (4.1, 4.2, 4.3){shared}", columns(*heads), rows)


def view(record: RunRecord) -> list[Block]:
    """All trials and the result."""
    return results(record) if record.method == PATH else [trials(record), *results(record)]


def settings(record: RunRecord) -> list[tuple[str, Json]]:
    """The settings of a search by name, as text where their keys have units."""
    told: list[tuple[str, Json]] = [
        (key, getattr(record, key)) for key in ("engine", "variant", "traffic", "method")
    ]
    return told + [
        _setting(key, value) for key, value in record.settings.items() if value is not None and key != "goals"
    ]


def _setting(key: str, value: Json) -> tuple[str, Json]:
    """The name and the text of a setting; the unit is the suffix of its key."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if key.endswith("_bit_per_s"):
            return key.removesuffix("_bit_per_s"), rate(value)
        if key.endswith("_s"):
            return key.removesuffix("_s"), f"{value:g} s"
    if isinstance(value, list):
        return key, ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in value)
    return key, f"{value:g}" if isinstance(value, float) else value
