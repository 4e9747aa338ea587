"""RFC 2544's throughput: the highest load of which nothing is lost, by halves (section 26.1)."""

from __future__ import annotations

from dataclasses import dataclass

from engpass.jsondata import Json
from engpass.search.trial import Budget, Measurer

TRIAL_SECONDS = 60.0
"""What section 24 asks of a trial."""

RESIDUE_SECONDS = 2.0
SETTLE_SECONDS = 5.0
"""Section 23: wait so long for what is left of a trial, and let the devices rest before the next."""

FRAMES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Sizes of Ethernet frames in bytes, FCS included (section 9.1)."""


@dataclass(frozen=True)
class Throughput:
    """The highest load without loss, and the lowest that lost something; in bit/s."""

    lossless: int | None
    lossy: int | None
    finished: bool
    """Whether they are as near as was asked."""

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
    """Search between two loads in bit/s, until the bounds are within a share of the upper one."""
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
        # The smallest load is only tried when nothing else is left.
        load = least if near else (floor + lossy) // 2
        if passes(load):
            lossless = load
        else:
            lossy = load


def payload_of(frame: int, *, vlan: bool = False) -> int:
    """Payload of the UDP datagram that makes an Ethernet frame of so many bytes, FCS included.

    Header and FCS take 18 bytes, a tag 4, IPv4 20 and UDP 8.
    """
    return frame - 18 - (4 if vlan else 0) - 28
