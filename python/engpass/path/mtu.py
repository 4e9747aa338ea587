"""The largest packet that a path carries whole: probed end to end, as RFC 4821 and RFC 8899 do. Pure.

Nothing relies on ICMP: a probe that does not arrive was too large, whether somebody said so or not.
"""

from __future__ import annotations

from collections.abc import Callable

BASE = 1200
"""What every path should carry (RFC 8899 section 5.1.2, BASE_PLPMTU); the search begins above it."""
LEAST = 68
"""The smallest MTU of IPv4 (RFC 791)."""

_USUAL = (1280, 1400, 1476, 1492, 1500, 4352, 8192, 9000, 9180)
"""Sizes that links have, GRE and PPPoE among them: tried before anything is halved."""


def largest(passes: Callable[[int], bool], most: int, hint: int | None = None) -> int | None:
    """The largest size up to `most` of which probes arrive; `None` where not even the smallest does.

    `hint` is what the kernel thinks: where it is right, two probes do.
    """
    low, high = min(BASE, most), most + 1
    if not passes(low):
        if low <= LEAST or not passes(LEAST):
            return None
        low, high = LEAST, low
    while high - low > 1:
        size = _next(low, high, most, hint)
        low, high = (size, high) if passes(size) else (low, size)
    return low


def _next(low: int, high: int, most: int, hint: int | None) -> int:
    """What to try between a size that arrives and one that does not, or was not tried."""
    if hint is not None and low < hint < high:
        return hint
    if low == hint or low in _USUAL:
        # It is likely to be the one: the next larger one tells.
        return low + 1
    if high > most:
        return most
    return max((size for size in _USUAL if low < size < high), default=(low + high) // 2)
