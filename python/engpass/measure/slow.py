"""Slow motion: a network N times slower than the clock on the wall, for one faster than the machine.

The model's own time is what results are told in. What agents do and count is in the wall's time: their work
is stretched before, their results are scaled back after. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def slowed(numbers: Mapping[str, Any], slow: int) -> dict[str, Any]:
    """A point as the agents see it: all times N times longer, all rates N times lower."""
    if slow == 1:
        return dict(numbers)
    run = {**numbers["run"], **_longer(numbers["run"], slow, "duration_ns", "warmup_ns", "most_ns")}
    flows = [
        {
            **flow,
            **_longer(flow, slow, "start_ns", "stop_ns", "every_ns", "on_ns", "off_ns"),
            **(
                {"rate_bit_per_s": max(1, flow["rate_bit_per_s"] // slow)}
                if flow.get("rate_bit_per_s")
                else {}
            ),
        }
        for flow in numbers["flows"]
    ]
    return {**numbers, "run": run, "flows": flows}


def _longer(table: Mapping[str, Any], slow: int, *keys: str) -> dict[str, int]:
    return {key: table[key] * slow for key in keys if table.get(key) is not None}


def scaled_back(flow: Mapping[str, Any], slow: int) -> dict[str, Any]:
    """The figures of a flow in the network's own time; what its agents gave back stays as it came."""
    if slow == 1:
        return dict(flow)
    return {key: _scaled(key, value, slow) for key, value in flow.items()}


def _scaled(key: str, value: Any, slow: int) -> Any:  # noqa: ANN401 (whatever a flow has)
    if not isinstance(value, int | float) or isinstance(value, bool) or key.endswith("_s_per_gb"):
        return value
    if key.endswith("_per_s"):
        return value * slow
    return value / slow if key.endswith("_s") else value
