"""The three metrics of RFC 6349 for a TCP transfer, and their reference values. Pure functions."""

from __future__ import annotations

import msgspec

TCP_IP_BYTES = 40
"""Length of the IPv4 and TCP headers without options."""
TIMESTAMPS_BYTES = 12

FRACTIONS = (0.25, 0.5, 0.75, 1.0, 2.0)
"""Windows to try, as shares of the bandwidth-delay product: below it, equal to it, and above it."""


class Metrics(msgspec.Struct, frozen=True):
    """The three metrics of RFC 6349 section 4 for one transfer."""

    transfer_time_ratio: float
    """Actual transfer time over ideal transfer time (section 4.1); 1 is ideal."""
    efficiency: float
    """Share of the sent bytes that were not retransmissions (section 4.2), over all connections."""
    buffer_delay: float | None
    """Increase of the round trip time during the transfer, as a share of the baseline (section 4.3)."""


def efficiency(sent: int, retransmitted: int) -> float:
    """Share of the sent bytes that were not retransmissions (section 4.2); 1 if nothing was sent."""
    return (sent - retransmitted) / sent if sent else 1.0


def ideal_bit_per_s(bandwidth: float, mtu: int, options: int = TIMESTAMPS_BYTES) -> float:
    """The maximum payload rate of TCP, in bit/s, over a bottleneck `bandwidth` for IP packets.

    Section 4.1.1 subtracts link headers from the line rate, and IP and TCP headers from each packet. Here the
    bandwidth is measured above the link, so only IP and TCP headers are subtracted. The RFC counts no TCP
    options, but Linux sends timestamps: `options` are their bytes per packet.
    """
    return bandwidth * (mtu - TCP_IP_BYTES - options) / mtu


def product_bytes(bandwidth: float, rtt: float) -> float:
    """The bandwidth-delay product in bytes: the smallest window that fills the path (section 3.3.1)."""
    return bandwidth * rtt / 8


def expected_bit_per_s(window: float, rtt: float, ideal: float) -> float:
    """The expected rate in bit/s: one window per round trip, at most the ideal rate (section 3.3.1)."""
    return min(ideal, window * 8 / rtt)


def metrics(
    *,
    seconds: float,
    payload: int,
    ideal: float,
    sent: int,
    retransmitted: int,
    rtt: float | None,
    baseline: float,
) -> Metrics:
    """The metrics of a transfer of `payload` bytes in `seconds`.

    `ideal` is in bit/s, `sent` and `retransmitted` are in bytes. `rtt` is the mean round trip during the
    transfer and `baseline` that of the empty path, both in seconds.
    """
    return Metrics(
        seconds / (payload * 8 / ideal),
        efficiency(sent, retransmitted),
        None if rtt is None else (rtt - baseline) / baseline,
    )
