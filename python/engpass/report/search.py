"""Figures of searches: loss and received rate over the offered load, and the tried loads in order."""

from collections.abc import Sequence
from typing import TypedDict

import altair as alt

from engpass.formatting import percent
from engpass.report import theme
from engpass.report.figures.base import HEIGHT, WIDTH, Drawing
from engpass.results.losses import Losses
from engpass.results.path import path_found
from engpass.search.found import Found, Tried, found, tried
from engpass.search.trial import Trial
from engpass.store import RunRecord

_MBIT = 1e6


class _Folded(TypedDict):
    """The loss of all trials at one load of a search; the load in Mbit/s, the loss in per cent."""

    search: str
    offered: float
    loss: float


class _Mark(_Folded):
    """One trial of a search; `received` in Mbit/s, `duration` in seconds."""

    received: float
    duration: float


def figures(records: Sequence[RunRecord]) -> dict[str, Drawing]:
    """The charts by name; several searches share each chart, and only a single one has a chart of steps."""
    made = {"loss": _loss(records), "received": _received(records)}
    if len(records) == 1:
        made["steps"] = _steps(records[0])
    return made


def _names(records: Sequence[RunRecord]) -> list[str]:
    """The name of each search in a chart: its message size if the searches differ in it, else its flow."""
    several = len({record.settings.get("most_bit_per_s") for record in records}) > 1
    return [
        f"{(record.result or {}).get('message_bytes', '')} B" if several else record.traffic
        for record in records
    ]


def _rows(records: Sequence[RunRecord]) -> list[_Mark]:
    return [
        {
            "search": name,
            "offered": trial.load_bit_per_s / _MBIT,
            "received": trial.forwarded_bit_per_s / _MBIT,
            "loss": trial.loss * 100,
            "duration": trial.duration_s,
        }
        for name, record in zip(_names(records), records, strict=True)
        for trial in tried(record)
    ]


def _together(records: Sequence[RunRecord]) -> list[_Folded]:
    """The combined loss of all trials with the same load, by search and load."""
    together: dict[tuple[str, float], list[Losses]] = {}
    for name, record in zip(_names(records), records, strict=True):
        for one in tried(record):
            load, duration = round(one.load_bit_per_s), one.duration_s
            trial = Trial(load, duration, one.sent, one.lost, one.asked, one.valid, one.kept)
            together.setdefault((name, one.load_bit_per_s / _MBIT), []).append(trial.losses)
    return [
        {"search": name, "offered": load, "loss": 100 * (Losses.sum(parts).share or 0.0)}
        for (name, load), parts in together.items()
    ]


def _colour(rows: Sequence[_Folded]) -> alt.Color:
    names = list(dict.fromkeys(row["search"] for row in rows))
    legend = alt.Legend(title=None) if len(names) > 1 else None
    return alt.Color("search:N").scale(domain=names).legend(legend)


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("offered:Q", title="offered in Mbit/s", format=".4g"),
        alt.Tooltip("received:Q", title="received in Mbit/s", format=".4g"),
        alt.Tooltip("loss:Q", title="loss in %", format=".3g"),
        alt.Tooltip("duration:Q", title="trial in s"),
    ]


def _loss(records: Sequence[RunRecord]) -> Drawing:
    rows = _rows(records)
    x = alt.X("offered:Q").title("offered load in Mbit/s of payload").scale(zero=True)
    y = alt.Y("loss:Q").title("loss in %").scale(zero=True)
    folded = alt.Chart(alt.InlineData(values=_together(records)), width=WIDTH, height=HEIGHT)
    line = folded.mark_line(strokeWidth=1).encode(x=x, y=y, color=_colour(rows))
    base = alt.Chart(alt.InlineData(values=rows), width=WIDTH, height=HEIGHT)
    marks = base.mark_point(filled=True, size=45, opacity=0.8)
    return alt.layer(line, marks.encode(x=x, y=y, color=_colour(rows), tooltip=_tooltip())).properties(
        title="Loss against offered load"
    )


OUTCOMES = {
    "clean": ("no loss", 0),
    "lossy": ("loss", 1),
    "short": ("the sender could not send this load", 4),
    "late": ("invalid: this machine was too slow", 5),
}
"""Outcomes of a trial: the text, and the index of its colour and shape."""


def outcome(trial: Tried) -> str:
    """Key in `OUTCOMES` of a stored trial."""
    if not trial.valid:
        return "late"
    if not trial.kept:
        return "short"
    return "lossy" if trial.loss > 0 else "clean"


def bounds(record: RunRecord) -> list[tuple[str, float]]:
    """The loads that the search found, as name and bit/s of payload."""
    result = found(record) or Found()
    named = [
        ("throughput", result.throughput_bit_per_s),
        ("highest without loss", result.highest_clean_bit_per_s),
    ]
    if result.goals is not None:
        named = [
            (f"{percent(goal.goal.loss_ratio)} loss: {name} bound", load)
            for goal in result.goals
            for name, load in (("lower", goal.lower_bit_per_s), ("upper", goal.upper_bit_per_s))
        ]
    return [(name, load) for name, load in named if load is not None]


def _steps(record: RunRecord) -> Drawing:
    """The tried loads in order, with the found loads as horizontal lines."""
    rows = [
        {
            "trial": number,
            "offered": trial.load_bit_per_s / _MBIT,
            "received": trial.forwarded_bit_per_s / _MBIT,
            "loss": trial.loss * 100,
            "duration": trial.duration_s,
            "outcome": OUTCOMES[outcome(trial)][0],
        }
        for number, trial in enumerate(tried(record), 1)
    ]
    kinds = {row["outcome"] for row in rows}
    there = [(name, place) for name, place in OUTCOMES.values() if name in kinds]
    names = [name for name, _ in there]
    x = alt.X("trial:Q").title("trial").scale(nice=False, padding=12).axis(tickMinStep=1, format="d")
    y = alt.Y("offered:Q").title("offered load in Mbit/s of payload").scale(zero=False)
    base = alt.Chart(alt.InlineData(values=rows), width=WIDTH, height=HEIGHT)
    line = base.mark_line(strokeWidth=1, color=theme.LIGHT["muted"]).encode(x=x, y=y)
    marks = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x,
        y=y,
        color=alt.Color("outcome:N")
        .scale(domain=names, range=[theme.LIGHT[theme.colour(place)] for _, place in there])
        .legend(alt.Legend(title=None, symbolOpacity=1)),
        shape=alt.Shape("outcome:N")
        .scale(domain=names, range=[theme.shape(place) for _, place in there])
        .legend(alt.Legend(title=None, symbolOpacity=1)),
        tooltip=[alt.Tooltip("trial:Q"), *_tooltip(), alt.Tooltip("outcome:N")],
    )
    bound = [{"offered": load / _MBIT, "name": name} for name, load in bounds(record)]
    rule = alt.Chart(alt.InlineData(values=bound)).mark_rule(style="reference")
    layers = [rule.encode(y="offered:Q", tooltip=[alt.Tooltip("name:N"), _tooltip()[0]]), line, marks]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title="Loads in the order of the trials")


def path_figures(record: RunRecord) -> dict[str, Drawing]:
    """The chart of a path measured as in RFC 6349: expected and achieved TCP throughput by window."""
    if record.result is None:
        return {}
    result = path_found(record.result)
    rows = [
        {
            "window": one.fraction * 100,
            "rate": getattr(one, key) / _MBIT,
            "what": name,
            "label": f"{one.window_bytes:,} B",
        }
        for one in result.transfers
        for key, name, _ in PATH_SERIES
    ]
    names = [name for _, name, _ in PATH_SERIES]
    x = alt.X("window:Q").title("window in % of the bandwidth-delay product").scale(zero=True)
    y = alt.Y("rate:Q").title("Mbit/s of payload").scale(zero=True)
    colour = (
        alt.Color("what:N")
        .scale(domain=names, range=[theme.LIGHT[theme.colour(place)] for *_, place in PATH_SERIES])
        .legend(alt.Legend(title=None, symbolOpacity=1))
    )
    base = alt.Chart(alt.InlineData(values=rows), width=WIDTH, height=HEIGHT)
    tips = [alt.Tooltip("label:N", title="window"), alt.Tooltip("rate:Q", title="Mbit/s", format=".4g")]
    line = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    marks = base.mark_point(filled=True, size=60, opacity=1)
    marks = marks.encode(x=x, y=y, color=colour, tooltip=[alt.Tooltip("what:N"), *tips])
    ideal = alt.InlineData(values=[{"rate": result.ideal_bit_per_s / _MBIT}])
    rule = alt.Chart(ideal).mark_rule(style="reference").encode(y="rate:Q")
    heading = "TCP throughput over the window"
    return {"windows": alt.layer(rule, line, marks).properties(width=WIDTH, height=HEIGHT, title=heading)}


PATH_SERIES = (
    ("expected_bit_per_s", "expected: one window per round trip", 0),
    ("achieved_bit_per_s", "achieved", 1),
)
"""Field of a transfer, label, and index of the colour."""


def _received(records: Sequence[RunRecord]) -> Drawing:
    rows = _rows(records)
    top = max((row["offered"] for row in rows), default=1.0)
    x = alt.X("offered:Q").title("offered load in Mbit/s of payload").scale(zero=True)
    y = alt.Y("received:Q").title("received in Mbit/s of payload").scale(zero=True)
    ends = alt.InlineData(values=[{"offered": value, "received": value} for value in (0.0, top)])
    diagonal = alt.Chart(ends, width=WIDTH, height=HEIGHT).mark_line(style="reference").encode(x=x, y=y)
    marks = alt.Chart(alt.InlineData(values=rows), width=WIDTH, height=HEIGHT)
    points = marks.mark_point(filled=True, size=45, opacity=0.8)
    return alt.layer(diagonal, points.encode(x=x, y=y, color=_colour(rows), tooltip=_tooltip())).properties(
        title="Received against offered"
    )
