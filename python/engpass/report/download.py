"""The points as CSV inside the page: compressed, so that a large run stays a small file."""

import base64
import csv
import gzip
import io
from collections.abc import Iterable, Sequence

from engpass.report.aggregate import Spread, Table
from engpass.report.axes import axis_of
from engpass.report.record import Outcome, Run

MAX_ENCODED = 4_000_000
"""Characters of base64 that raw points may take; beyond, the repeats are folded."""

_FIGURES = (
    *(f"delay_{quantile}_s" for quantile in ("min", "p50", "p90", "p99", "p999", "max")),
    "sent_datagrams",
    "received_datagrams",
    "lost_datagrams",
    "in_flight_datagrams",
    "sent_cells",
    "lost_cells",
)


def encode(text: str) -> str:
    """Text as gzip in base64, the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)).decode(
        "ascii"
    )


def raw(run: Run, outcomes: Iterable[Outcome]) -> str:
    """One line per point and flow, values in base units (bit/s, bytes, seconds, fractions)."""
    paths = [axis_of(axis).path for axis in run.axes]
    head = [
        "variant",
        "engine",
        "repeat",
        "seed",
        *paths,
        "flow",
        "kind",
        "goodput_bit_per_s",
        "offered_bit_per_s",
        *_FIGURES,
    ]
    return _csv(
        head,
        (
            [
                outcome["variant"],
                outcome["engine"],
                outcome.get("repeat", 0),
                outcome.get("seed", 0),
                *(outcome["sweep"].get(path, "") for path in paths),
                flow,
                result.get("kind", ""),
                result["goodput_bit_per_s"],
                result["offered_bit_per_s"],
                *(result.get(figure, "") for figure in _FIGURES),
            ]
            for outcome in outcomes
            for flow, result in outcome["flows"].items()
        ),
    )


def folded(table: Table) -> str:
    """One line per point of the sweep and flow: mean, least and greatest of the repeats."""
    head = ["variant", "engine", "repeats", *(axis.path for axis in table.axes), "flow", "kind"]
    for name in ("goodput_bit_per_s", "offered_bit_per_s", "loss", "delay_p50_s", "delay_p99_s"):
        head += [name, f"{name}_least", f"{name}_greatest"]

    def spread(of: Spread | None) -> list[object]:
        return ["", "", ""] if of is None else [f"{value:.10g}" for value in (of.mean, of.low, of.high)]

    return _csv(
        head,
        (
            [
                point.variant,
                point.engine,
                point.repeats,
                *(
                    axis.numbers[at] if axis.numbers else axis.texts[at]
                    for axis, at in zip(table.axes, point.at, strict=True)
                ),
                point.flow,
                point.kind,
                *spread(point.goodput),
                *spread(point.offered),
                *spread(point.loss),
                *spread(point.delay_p50),
                *spread(point.delay_p99),
            ]
            for point in table.points
        ),
    )


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(name) for name in head])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    """A name that a spreadsheet would take for a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
