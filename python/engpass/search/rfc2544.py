"""RFC 2544's throughput: the highest load without loss, by bisection (section 26.1)."""

from __future__ import annotations

import msgspec

from engpass.jsondata import Json
from engpass.search.trial import Budget, Measurer

TRIAL_SECONDS = 60.0
"""Seconds of a trial (section 24)."""

RESIDUE_SECONDS = 2.0
"""Seconds after a trial in which datagrams may still arrive; later ones count as lost (section 23)."""

SETTLE_SECONDS = 5.0
"""Seconds of rest for the devices after that (section 23)."""

LEARNING_SECONDS = 2.0
"""Seconds before a trial in which routers learn hardware addresses (section 23)."""

FRAMES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Sizes of Ethernet frames in bytes, FCS included (section 9.1)."""


class Throughput(msgspec.Struct, frozen=True):
    """The highest load without loss and the lowest load with loss, in bit/s."""

    lossless: int | None
    lossy: int | None
    finished: bool
    """True if the two loads are as close as the resolution requires."""

    def to_json(self) -> dict[str, Json]:
        """The result as JSON data."""
        return {
            "throughput_bit_per_s": self.lossless,
            "lowest_lossy_bit_per_s": self.lossy,
            "finished": self.finished,
        }


def throughput(
    measure: Measurer,
    least: int,
    most: int,
    *,
    duration: float = TRIAL_SECONDS,
    resolution: float = 0.01,
    budget: Budget | None = None,
) -> Throughput:
    """Bisect between two loads in bit/s until the bounds differ by at most `resolution` of the upper one."""
    budget = budget or Budget(float("inf"))

    def passes(load: int) -> bool:
        return budget.spend(measure(load, duration)).loss == 0.0

    if passes(most):
        return Throughput(most, None, finished=True)
    lossless: int | None = None
    lossy = most
    while True:
        floor = least if lossless is None else lossless
        near = lossy - floor <= max(1, resolution * lossy)
        if (near and lossless is not None) or lossy == least:
            return Throughput(lossless, lossy, finished=True)
        if budget.over:
            return Throughput(lossless, lossy, finished=False)
        # The smallest load is tried only when no other load is left.
        load = least if near else (floor + lossy) // 2
        if passes(load):
            lossless = load
        else:
            lossy = load


def payload_of(frame: int, *, vlan: bool = False) -> int:
    """UDP payload in bytes of an Ethernet frame of `frame` bytes, FCS included.

    Header and FCS take 18 bytes, a tag 4, IPv4 20 and UDP 8.
    """
    return frame - 18 - (4 if vlan else 0) - 28
