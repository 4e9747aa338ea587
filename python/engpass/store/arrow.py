"""Outcomes as an Arrow table: one row per point and flow."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from engpass.store.record import RunRecord

# What every flow has or may have, first and always in this order. Keys of later engines follow as they
# appear.
_POINT: list[tuple[str, Any]] = [
    ("point", pa.int64()),
    ("engine", pa.string()),
    ("variant", pa.string()),
    ("repeat", pa.int64()),
    ("seed", pa.uint64()),
]
_FLOW: list[tuple[str, Any]] = [
    ("flow", pa.string()),
    ("kind", pa.string()),
    ("goodput_bit_per_s", pa.float64()),
    ("offered_bit_per_s", pa.float64()),
    ("sent_datagrams", pa.int64()),
    ("received_datagrams", pa.int64()),
    ("lost_datagrams", pa.int64()),
    ("in_flight_datagrams", pa.int64()),
    ("bound_bit_per_s", pa.float64()),
    ("idle_delay_s", pa.float64()),
    *((f"delay_{quantile}_s", pa.float64()) for quantile in ("min", "p50", "p90", "p99", "p999", "max")),
    ("sent_cells", pa.int64()),
    ("lost_cells", pa.int64()),
    ("bottleneck", pa.string()),
    ("next", pa.string()),
    ("sentence", pa.string()),
    ("bound_bottleneck", pa.string()),
    ("bound_sentence", pa.string()),
]

_CHUNK = 5_000


def table(run: RunRecord, outcomes: Iterable[tuple[int, str]]) -> pa.Table:
    """Table of a run in the order of its points; swept values stand under their path, as numbers if so."""
    fixed = dict(_POINT)
    for axis in run.axes:
        numeric = all(value["number"] is not None for value in axis["values"])
        fixed[axis["path"]] = pa.float64() if numeric else pa.string()
    fixed |= dict(_FLOW)
    texts = [axis["path"] for axis in run.axes if fixed[axis["path"]] == pa.string()]
    rows = itertools.chain.from_iterable(
        _rows(position, json.loads(text), texts) for position, text in outcomes
    )
    chunks = [_chunk(fixed, [])]
    while part := list(itertools.islice(rows, _CHUNK)):
        chunks.append(_chunk(fixed, part))
    # Permissive: a column that only later outcomes have is null before, an integer beside a float becomes
    # one.
    return pa.concat_tables(chunks, promote_options="permissive").combine_chunks()


def _rows(position: int, outcome: dict[str, Any], texts: list[str]) -> Iterator[dict[str, Any]]:
    shared = {
        "point": position,
        "engine": outcome["engine"],
        "variant": outcome["variant"],
        "repeat": outcome["repeat"],
        "seed": outcome["seed"],
        **outcome["sweep"],
        # Of engines that may be too slow for their own clock.
        **({"valid": outcome["valid"]} if "valid" in outcome else {}),
    }
    for path in texts:
        # An axis of text with a number among its values is text throughout.
        if path in shared:
            shared[path] = str(shared[path])
    for name, flow in outcome["flows"].items():
        scalars = {k: v for k, v in flow.items() if isinstance(v, str | int | float)}
        yield {**shared, "flow": name, **scalars}


def _chunk(fixed: dict[str, Any], rows: list[dict[str, Any]]) -> pa.Table:
    names = dict.fromkeys([*fixed, *itertools.chain.from_iterable(rows)])
    return pa.table({name: pa.array([row.get(name) for row in rows], fixed.get(name)) for name in names})
