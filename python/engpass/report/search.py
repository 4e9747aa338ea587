"""Figures of searches: loss and what came in over the offered load."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from engpass.report.figures.base import HEIGHT, WIDTH, Drawing
from engpass.store import SearchRecord

_MBIT = 1e6


def figures(records: Sequence[SearchRecord]) -> dict[str, Drawing]:
    """The charts by name; several searches stand in one chart."""
    return {"loss": _loss(records), "received": _received(records)}


def _rows(records: Sequence[SearchRecord]) -> list[dict[str, Any]]:
    several = len({record.settings.get("most_bit_per_s") for record in records}) > 1
    return [
        {
            "search": f"{(record.result or {}).get('message_bytes', '')} B" if several else record.traffic,
            "offered": trial["load_bit_per_s"] / _MBIT,
            "received": trial["forwarded_bit_per_s"] / _MBIT,
            "loss": trial["loss"] * 100,
            "duration": trial["duration_s"],
        }
        for record in records
        for trial in record.trials
    ]


def _colour(rows: Sequence[dict[str, Any]]) -> alt.Color:
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


def _loss(records: Sequence[SearchRecord]) -> Drawing:
    rows = _rows(records)
    data = alt.InlineData(values=rows)
    x = alt.X("offered:Q").title("offered load in Mbit/s of payload").scale(zero=True)
    y = alt.Y("loss:Q").title("lost in %").scale(zero=True)
    base = alt.Chart(data, width=WIDTH, height=HEIGHT)
    # A load that was tried several times stands at the mean of its trials.
    line = base.mark_line(strokeWidth=1).encode(
        x=x, y=alt.Y("mean(loss):Q").title("lost in %"), color=_colour(rows)
    )
    marks = base.mark_point(filled=True, size=45, opacity=0.8)
    return alt.layer(line, marks.encode(x=x, y=y, color=_colour(rows), tooltip=_tooltip())).properties(
        title="Loss against offered load"
    )


def _received(records: Sequence[SearchRecord]) -> Drawing:
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
