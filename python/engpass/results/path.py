"""The result of a path measurement after RFC 6349, as it is stored."""

from __future__ import annotations

import msgspec

from engpass.jsondata import Json


class Transfer(msgspec.Struct, frozen=True):
    """The transfer with one window, and the metrics of RFC 6349 for it."""

    fraction: float
    window_bytes: int
    granted_bytes: int | None
    """Sum of the windows that the kernel granted to all connections; `None` if it does not report them."""
    bytes: int
    seconds: float
    finished: bool
    expected_bit_per_s: float
    achieved_bit_per_s: float
    rtt_s: float | None
    transfer_time_ratio: float
    efficiency: float
    buffer_delay: float | None
    efficiencies: list[float] = []
    """The TCP efficiency of each connection."""


class PathFound(msgspec.Struct, frozen=True):
    """The results of a path measurement."""

    mtu_bytes: int
    rtt_s: float
    rtt_p50_s: float
    bandwidth_bit_per_s: float
    bandwidth_known: bool
    bdp_bytes: float
    ideal_bit_per_s: float
    transfers: list[Transfer]
    connections: int = 1
    invalid_runs: int = 0
    departures: list[str] = []
    notes: list[str] = []


def path_found(result: dict[str, Json]) -> PathFound:
    """The result of a stored path measurement."""
    return msgspec.convert(result, PathFound)
