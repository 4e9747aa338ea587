"""What RFC 6349 makes of a transfer: its three metrics, and what they are held against. Pure."""

from __future__ import annotations

from dataclasses import dataclass

TCP_IP_BYTES = 40
"""Headers of TCP and IPv4 without options."""
TIMESTAMPS_BYTES = 12

FRACTIONS = (0.25, 0.5, 0.75, 1.0, 2.0)
"""Windows as shares of the bandwidth-delay product: below it, at it, and one that cannot be the limit."""


@dataclass(frozen=True)
class Metrics:
    """The three metrics of section 4."""

    transfer_time_ratio: float
    """Time that the transfer took over the time of the ideal one (section 4.1): 1 is as good as can be."""
    efficiency: float
    """Share of the bytes sent that were no retransmissions (section 4.2), over all connections."""
    buffer_delay: float | None
    """What the round trip grew by during the transfer, as a share of the baseline (section 4.3)."""


def efficiency(sent: int, retransmitted: int) -> float:
    """Share of the bytes sent that were no retransmissions (section 4.2)."""
    return (sent - retransmitted) / sent if sent else 1.0


def ideal_bit_per_s(bandwidth: float, mtu: int, options: int = TIMESTAMPS_BYTES) -> float:
    """The most that TCP can carry of a bottleneck bandwidth of IP packets, in bit/s of payload.

    Section 4.1.1 takes headers of the link off its line rate, and then those of IP and TCP off each packet;
    here the bandwidth was measured above the link, so that only the latter are left. It counts them without
    `options`; Linux sends timestamps.
    """
    return bandwidth * (mtu - TCP_IP_BYTES - options) / mtu


def product_bytes(bandwidth: float, rtt: float) -> float:
    """The bandwidth-delay product: the least window that can fill the path (section 3.3.1)."""
    return bandwidth * rtt / 8


def expected_bit_per_s(window: float, rtt: float, ideal: float) -> float:
    """What a window allows: one window in a round trip, and no more than the path carries (section 3.3.1)."""
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
    """The metrics of a transfer of so many bytes of payload.

    `ideal` in bit/s, `sent` and `retransmitted` in bytes, `rtt` the mean during the transfer and `baseline`
    that of the empty path, in seconds.
    """
    return Metrics(
        seconds / (payload * 8 / ideal),
        efficiency(sent, retransmitted),
        None if rtt is None else (rtt - baseline) / baseline,
    )
