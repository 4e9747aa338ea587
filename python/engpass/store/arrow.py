"""Outcomes as an Arrow table: a row per point and flow, line or engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pyarrow as pa

from engpass.results.columns import Columns, Of, Row
from engpass.store.record import RunRecord
from engpass.types.outcome import Outcome

_TYPES = {"integer": pa.int64(), "unsigned": pa.uint64(), "number": pa.float64(), "text": pa.string()}
_CHUNK = 5_000


def table(run: RunRecord, outcomes: Iterable[tuple[int, Outcome]], of: Of = "flows") -> pa.Table:
    """The table of a run in the order of its points; a swept path is a column, numeric if its values are."""
    columns = Columns(run.axes, of)
    rows = itertools.chain.from_iterable(columns.rows(position, outcome) for position, outcome in outcomes)
    chunks = [_chunk(columns, [])]
    while part := list(itertools.islice(rows, _CHUNK)):
        chunks.append(_chunk(columns, part))
    # Permissive: a column that some chunks lack has nulls there, and integers become floats if any chunk has
    # floats.
    return pa.concat_tables(chunks, promote_options="permissive").combine_chunks()


def _chunk(columns: Columns, rows: list[Row]) -> pa.Table:
    types = {name: _TYPES[kind] for name, kind in columns.types.items()}
    return pa.table(
        {name: pa.array([row.get(name) for row in rows], types.get(name)) for name in columns.names(rows)}
    )
