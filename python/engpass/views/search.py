"""A search, or a measured path: the answer, what was found, and every trial or transfer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from engpass.formatting import duration, percent, rate
from engpass.jsondata import Json
from engpass.results.path import PathFound, path_found
from engpass.search.found import Found, GoalFound, Tried, found, loads, tried
from engpass.search.notes import is_above
from engpass.search.rfc2544 import RESIDUE_SECONDS
from engpass.show.blocks import Amount, Block, Cell, Fact, Facts, Marked, Prose, Table, columns

if TYPE_CHECKING:
    from engpass.store import RunRecord

PATH = "rfc6349"
"""The method of a record that measures a path."""

FRAME_LOSS = "frame-loss"
"""The method of a record that has the loss for each load of a grid."""

ABOVE = "above the limit"
"""The mark of a rate above the limit of the path; a note below the result says why."""


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
            f"{_excess(what, one.conditional_throughput_bit_per_s)}"
            f"{'' if one.regular else f' (irregular: {one.why})'}."
            for one in what.goals
        )
    clean = _best(what)
    if clean is None:
        return f"All tried loads of `{record.traffic}` have loss."
    excess = _excess(what, clean)
    if record.method == FRAME_LOSS:
        return (
            f"The largest tried load of `{record.traffic}` without loss is {rate(clean)} of payload{excess}."
        )
    return f"`{record.traffic}` carries {rate(clean)} of payload without loss{excess}."


def _excess(found: Found, bit_per_s: float | None) -> str:
    """A remark if a rate is above the limit of the path."""
    return f" ({ABOVE})" if is_above(found, bit_per_s) else ""


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
        blocks, invalid, of = _found(told, record), told.invalid_trials, f"{told.trials} trials"
    if invalid:
        text = f"packets of the emulated network were too late in {invalid} of {of}"
        text += ", so the results do not describe the network"
        blocks.append(Prose(text, Marked("invalid", "bad")))
    blocks += [Prose(note, Marked("note", "muted")) for note in told.notes]
    blocks += [Prose(one, Marked("not conforming", "mark")) for one in told.departures]
    return blocks


def _found(result: Found, record: RunRecord) -> list[Block]:
    if result.goals is not None:
        irregular = [
            Prose(f"goal of {percent(one.goal.loss_ratio)} loss: {one.why}", Marked("irregular", "bad"))
            for one in result.goals
            if not one.regular
        ]
        return [_goals(result, result.goals), *irregular]
    best = _best(result)
    excess = _excess(result, best)
    if result.finished is None:
        told = "not found" if best is None else rate(best) + excess
        return [Prose(f"largest tried load without loss, in steps of {_step(record)}: {told}")]
    if best is None:
        why = "; even the smallest load has loss" if result.finished else " so far; the search ended early"
        return [Prose(f"throughput: none{why}", strong=True)]
    lossy = result.lowest_lossy_bit_per_s
    frames = best / (8 * result.message_bytes)
    above = f"; {rate(lossy)} has loss" if lossy is not None else ", the largest load tried"
    state = "" if result.finished else " so far; the search ended early"
    text = f"throughput: {rate(best)} of payload, {frames:,.0f} datagrams/s{excess}{above}{state}"
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
                _marked(result, one.conditional_throughput_bit_per_s),
            ]
        )
    title = f"MLRsearch, {result.trials} trials, {result.trial_seconds:g} s of traffic"
    return Table(title, columns(*heads), rows)


def _step(record: RunRecord) -> str:
    """The step between the loads of a frame loss curve, as a share of the largest."""
    step = record.settings.get("step")
    return f"{100 * (step if isinstance(step, float) else 0.1):g} % of the largest load"


def _rate(bit_per_s: float | None) -> Amount | None:
    return None if bit_per_s is None else Amount(bit_per_s, "bit/s")


def _marked(found: Found, bit_per_s: float | None) -> Amount | None:
    """A rate, with a mark if it is above the limit of the path."""
    if bit_per_s is None:
        return None
    return Amount(bit_per_s, "bit/s", _excess(found, bit_per_s).strip())


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
    heads = ["Trial", "Offered", "Duration", "Sent", "Lost", _LATE, "Loss", "Received", ""]
    title = f"{record.traffic}: {record.method} by {record.engine}, variant {record.variant}"
    kept = [
        place
        for place, head in enumerate(heads)
        if head not in ("", _LATE) or any(row[place] for row in rows)
    ]
    heads, rows = [heads[place] for place in kept], [[row[place] for place in kept] for row in rows]
    residue = record.settings.get("residue_s")
    seconds = residue if isinstance(residue, float) else RESIDUE_SECONDS
    notes = [f"late: lost because still in flight {seconds:g} s after the trial"] if _LATE in heads else []
    return Table(title, columns(*heads, left=0), rows, notes)


_LATE = "Late"
"""The column of datagrams that count as lost because they were late; omitted if no trial has any."""


def _figures(trial: Tried) -> list[str]:
    remark = "" if trial.kept else f"the sender offered {percent(trial.sent / max(1, trial.asked))}"
    return [
        rate(trial.load_bit_per_s),
        f"{trial.duration_s:g} s",
        f"{trial.sent:,}",
        f"{trial.lost:,}",
        f"{trial.late:,}" if trial.late else "",
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
    """The result by frame size, beside the largest load of the search.

    It is the throughput of RFC 2544 (section 26.1) only for that method.
    """
    rows: list[list[Cell]] = []
    for record, size in zip(records, sizes, strict=True):
        result = found(record) or Found()
        bits, most, best = 8 * result.message_bytes, loads(record).most_bit_per_s, _best(result)
        figures = ["", ""]
        if best is not None:
            figures = [f"{best / bits:,.0f} frames/s{_excess(result, best)}", percent(best / most)]
        rows.append([f"{size} B", f"{most / bits:,.0f} frames/s", *figures, _rate(best)])
    title, head = _of_sizes(records[0])
    heads = ("Frame", "Largest load", head, "% of maximum", "Payload")
    return Table(f"{title} by frame size", columns(*heads, left=0), rows)


def _of_sizes(record: RunRecord) -> tuple[str, str]:
    """What a table by frame size has, for its title and for the head of the column."""
    goals = (found(record) or Found()).goals
    if goals:
        loss = percent(min(one.goal.loss_ratio for one in goals))
        return f"Lower bound of the goal of {loss} loss", "Lower bound"
    if record.method == FRAME_LOSS:
        return f"Largest tried load without loss, in steps of {_step(record)},", "Without loss"
    return "Throughput", "Throughput"


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
