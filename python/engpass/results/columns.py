"""The columns of exported points: one row per point and flow, in `export` and in the CSV of the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from engpass.campaign import Axis
from engpass.results import receivers
from engpass.results.outcomes import sweep
from engpass.types.outcome import FlowOutcome, Outcome

Type = Literal["integer", "unsigned", "number", "text"]

QUANTILES = {"min": "min", "p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99_9", "max": "max"}
"""Keys of quantiles by their words in column names."""

_GAPS = (("mean", "mean"), ("sd", "sd"), ("mad", "mad"))
_POINT: dict[str, Type] = {
    "point": "integer",
    "engine": "text",
    "variant": "text",
    "repeat": "integer",
    "seed": "unsigned",
}
_ALWAYS: dict[str, tuple[Type, str]] = {
    "kind": ("text", "kind"),
    "goodput_bit_per_s": ("number", "goodput_bit_per_s"),
    "offered_bit_per_s": ("number", "offered_bit_per_s"),
    "sent_datagrams": ("integer", "datagrams.sent"),
    "received_datagrams": ("integer", "datagrams.received"),
    "lost_datagrams": ("integer", "datagrams.lost"),
    "in_flight_datagrams": ("integer", "datagrams.in_flight"),
    "bound_bit_per_s": ("number", "limit.bound.bit_per_s"),
    "idle_delay_s": ("number", "limit.idle_delay_s"),
    **{f"delay_{word}_s": ("number", f"delay_s.network.{key}") for word, key in QUANTILES.items()},
    "bottleneck": ("text", "bottleneck.title"),
    "next_bottleneck": ("text", "next_bottleneck.title"),
    "summary": ("text", "summary"),
    "bound_bottleneck": ("text", "limit.bound.bottleneck.title"),
    "bound_summary": ("text", "limit.bound.summary"),
    # The names of the first version, for one release.
    "next": ("text", "next_bottleneck.title"),
    "sentence": ("text", "summary"),
}
"""Columns of a flow with their type and their place in its outcome; every file has them."""

_LATENCY = ("min", "mean", *(word for word in QUANTILES if word != "min"))
_SOME: dict[str, str] = {
    "efci_pdus": "efci_pdus",
    "duplicate_datagrams": "datagrams.duplicate",
    "reordered_datagrams": "datagrams.reordered",
    "retransmitted_segments": "tcp.retransmitted_segments",
    "timeouts": "tcp.timeouts",
    "fast_retransmits": "tcp.fast_retransmits",
    "smoothed_rtt_s": "tcp.smoothed_rtt_s",
    "minimum_rtt_s": "tcp.min_rtt_s",
    "timeout_share": "tcp.timeout_share",
    "receive_window_limited_share": "tcp.receive_window_limited_share",
    "send_buffer_limited_share": "tcp.send_buffer_limited_share",
    "outage_longest_s": "outage.longest_s",
    "outage_lost_datagrams": "outage.lost",
    **{f"round_trip_{word}_s": f"tcp.rtt_s.{key}" for word, key in QUANTILES.items()},
    **{f"gap_{word}_s": f"real.gap_s.{key}" for word, key in (*_GAPS, ("p99", "p99"), ("p999", "p99_9"))},
    "max_datagrams_per_ms": "real.max_datagrams_per_ms",
    "transactions_per_s": "real.requests.per_s",
    "unanswered": "real.requests.unanswered",
    **{f"latency_{word}_s": f"real.requests.latency_s.{QUANTILES.get(word, word)}" for word in _LATENCY},
    "sender_cpu_s_per_gb": "real.sender_cpu_s_per_gb",
    "receiver_cpu_s_per_gb": "real.receiver_cpu_s_per_gb",
    "schedule_kept": "real.schedule_kept",
    "precision_share": "real.precision.share",
    "precision_reached": "real.precision.reached",
}
"""Columns of a flow that a file has if some outcome has a value."""


def _at(flow: FlowOutcome, place: str) -> object:
    """The value at a dotted path in a flow; `None` if a part of the path is missing."""
    value: object = flow
    for name in place.split("."):
        value = getattr(value, name, None)
    return value


class Columns:
    """The columns of a run: of the point, its swept values, of the flow.

    These come first, and in this order, in every file. Columns that only some outcomes have follow in the
    order in which they appear.
    """

    def __init__(self, axes: Sequence[Axis]) -> None:
        swept: dict[str, Type] = {
            axis.path: "text" if any(value.number is None for value in axis.values) else "number"
            for axis in axes
        }
        flow: dict[str, Type] = {name: kind for name, (kind, _) in _ALWAYS.items()}
        self.types: dict[str, Type] = {**_POINT, **swept, "flow": "text", **flow}
        self._texts = [path for path, kind in swept.items() if kind == "text"]

    def rows(self, position: int | None, outcome: Outcome) -> Iterator[dict[str, object]]:
        """The rows of an outcome, one for each flow and each receiver of a group.

        Values are in base units (bit/s, bytes, seconds).
        """
        shared: dict[str, object] = {
            "point": position,
            "engine": outcome.engine,
            "variant": outcome.variant,
            "repeat": outcome.repeat,
            "seed": outcome.seed,
            **sweep(outcome),
            # Only outcomes of emulation have it: packets may have been too late.
            **({"valid": outcome.valid} if outcome.valid is not None else {}),
        }
        for path in self._texts:
            # An axis of text with a number among its values is text throughout.
            if path in shared:
                shared[path] = str(shared[path])
        for name, host, flow in receivers.rows(outcome):
            every = {column: _at(flow, place) for column, (_, place) in _ALWAYS.items()}
            some = {column: _at(flow, place) for column, place in _SOME.items()}
            values = {column: value for column, value in (every | some).items() if value is not None}
            if host:
                # The row of the flow has the figures of the receiver with the lowest goodput.
                values["receiver"] = host
            yield {**shared, "flow": name, **values}

    def names(self, rows: Iterable[Mapping[str, object]]) -> list[str]:
        """All columns of some rows."""
        names = dict.fromkeys(self.types)
        for row in rows:
            names |= dict.fromkeys(row)
        return list(names)
