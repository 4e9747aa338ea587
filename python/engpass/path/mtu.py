"""Finds the path MTU with end-to-end probes, as RFC 4821 and RFC 8899 do. Pure functions.

No ICMP message is needed: a probe that does not arrive counts as too large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

BASE = 1200
"""Packet size in bytes that every path should carry (RFC 8899 section 5.1.2, BASE_PLPMTU): probed first."""
LEAST = 68
"""The smallest MTU of IPv4 in bytes (RFC 791)."""

_USUAL = (1280, 1400, 1476, 1492, 1500, 4352, 8192, 9000, 9180)
"""Common MTUs, including those of GRE and PPPoE: tried before the search halves an interval."""


def largest(passes: Callable[[int], bool], most: int, hint: int | None = None) -> int | None:
    """The largest packet size up to `most` at which probes arrive; `None` if even the smallest do not.

    `hint` is the kernel's path MTU: if it is right, two probes after the first are enough.
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


def patient(arrives: Callable[[int, int], bool], gaps: Sequence[int]) -> Callable[[int], bool]:
    """A function for `largest` that sends lost probes again, with a longer gap between them.

    `arrives` takes the size of a probe in bytes and the gap. The receiver listens as long as probes are sent,
    so a gap can be too short for the delay of the path. All gaps are tried until a probe arrives. After that,
    one longer gap: a busy receiver listens longer than it was asked to, which makes one gap seem enough.
    """
    left, tries = gaps, len(gaps)

    def passes(size: int) -> bool:
        nonlocal left, tries
        for number, gap in enumerate(left[:tries]):
            if arrives(size, gap):
                left, tries = left[number:], 2
                return True
        return False

    return passes


def _next(low: int, high: int, most: int, hint: int | None) -> int:
    """The next size to probe: more than `low`, which arrives, and less than `high`, which does not."""
    if hint is not None and low < hint < high:
        return hint
    if low == hint or low in _USUAL:
        # The kernel's hint or a usual MTU seems to be right: a probe of one byte more decides.
        return low + 1
    if high > most:
        return most
    return max((size for size in _USUAL if low < size < high), default=(low + high) // 2)
