"""The result of a run in Python."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from engpass.memory import MOST
from engpass.store import Failure, RunRecord, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from engpass.explanation import Explanation
    from engpass.types.outcome import Outcome


class RunResult:
    """A run in a store: its points as a table and as raw outcomes."""

    def __init__(self, store: Store, record: RunRecord) -> None:
        self.store = store
        self.record = record

    def __repr__(self) -> str:
        r = self.record
        return f"<RunResult {r.id} of {r.name!r}: {r.points_done} of {r.points_total} points, {r.status}>"

    @property
    def id(self) -> str:
        """Id of the run in the store."""
        return self.record.id

    @functools.cached_property
    def points(self) -> pa.Table:
        """A table with a row for each point and flow, in the order of the points, for pandas and polars."""
        return self.store.table(self.record.id)

    @functools.cached_property
    def outcomes(self) -> list[Outcome]:
        """The outcomes as the engines returned them, in the order of the points."""
        return self.store.outcomes(self.record.id)

    @functools.cached_property
    def failures(self) -> list[Failure]:
        """The points that ended with an error, with the message."""
        return self.store.failures(self.record)

    def explain(
        self,
        variant: str | None = None,
        point: Mapping[str, str] | None = None,
        flow: str | None = None,
        *,
        advice: bool = True,
        max_memory: int | None = MOST,
    ) -> Explanation:
        """Explain the flow at the given point, or the flow that is served worst: see `engpass.explain`.

        `point` gives values by swept path: `{"traffic.stream.message": "9 kB"}`. `advice` simulates changes.
        Raises `ChoiceError` for an unknown name, and `NeedsMemoryError` as `Testbed.run` does.
        """
        from engpass.explain.select_point import choose
        from engpass.explanation import explain

        texts = [f"{path}={value}" for path, value in (point or {}).items()]
        chosen = choose(self.store, self.record, variant, texts, flow)
        return explain(chosen, advice=advice, max_memory=max_memory)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the report, one HTML file that opens offline; returns its path."""
        from engpass.report import render

        target = Path(path)
        target.write_text(render(self.record, self.outcomes), encoding="utf-8")
        return target
