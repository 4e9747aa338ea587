"""The columns of exported points: one row per point and flow, in `export` and in the CSV of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

Type = Literal["integer", "unsigned", "number", "text"]

_POINT: dict[str, Type] = {
    "point": "integer",
    "engine": "text",
    "variant": "text",
    "repeat": "integer",
    "seed": "unsigned",
}
_FLOW: dict[str, Type] = {
    "flow": "text",
    "kind": "text",
    "goodput_bit_per_s": "number",
    "offered_bit_per_s": "number",
    "sent_datagrams": "integer",
    "received_datagrams": "integer",
    "lost_datagrams": "integer",
    "in_flight_datagrams": "integer",
    "bound_bit_per_s": "number",
    "idle_delay_s": "number",
    **{f"delay_{quantile}_s": "number" for quantile in ("min", "p50", "p90", "p99", "p999", "max")},
    "sent_cells": "integer",
    "lost_cells": "integer",
    "bottleneck": "text",
    "next": "text",
    "sentence": "text",
    "bound_bottleneck": "text",
    "bound_sentence": "text",
}


class Columns:
    """The columns of a run: of the point, its swept values, of the flow.

    They come first and in this order in every file. Keys of an outcome that are not among them follow as
    they appear.
    """

    def __init__(self, axes: Sequence[Mapping[str, Any]]) -> None:
        """`axes` as the record of a run has them: `{"path", "values": [{"text", "number", "unit"}]}`."""
        swept: dict[str, Type] = {
            str(axis["path"]): (
                "text" if any(value["number"] is None for value in axis["values"]) else "number"
            )
            for axis in axes
        }
        self.types: dict[str, Type] = {**_POINT, **swept, **_FLOW}
        self._texts = [path for path, kind in swept.items() if kind == "text"]

    def rows(self, position: int | None, outcome: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The rows of an outcome, one for each flow; values in base units (bit/s, bytes, seconds)."""
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
        for path in self._texts:
            # An axis of text with a number among its values is text throughout.
            if path in shared:
                shared[path] = str(shared[path])
        for name, flow in outcome["flows"].items():
            scalars = {key: value for key, value in flow.items() if isinstance(value, str | int | float)}
            yield {**shared, "flow": name, **scalars}

    def names(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """All columns of some rows."""
        names = dict.fromkeys(self.types)
        for row in rows:
            names |= dict.fromkeys(row)
        return list(names)
