"""Time dilation of a path: agents work in wall-clock time, N times slower than the emulated network. Pure."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from engpass.measure.answers import End
from engpass.types.agent import Prepare


def slowed(end: Prepare, slow: int) -> Prepare:
    """Convert the rate and the intervals of a request from the model's time to wall-clock time."""
    if slow == 1:
        return end
    schedule = end.schedule
    if schedule is not None:
        schedule = replace(schedule, rate_bit_per_s=max(1, schedule.rate_bit_per_s // slow))
    return replace(
        end, schedule=schedule, interval_ns=None if end.interval_ns is None else end.interval_ns * slow
    )


def scaled_back(end: End, slow: int) -> End:
    """Convert the time, the latency and the round trips of an agent's answer to the model's time."""
    if slow == 1:
        return end
    series = [
        one if one.tcp is None else replace(one, tcp=replace(one.tcp, rtt_ns=one.tcp.rtt_ns // slow))
        for one in end.series
    ]
    latency: dict[str, int | None] = {
        name: value // slow if name.endswith("_ns") and value is not None else value
        for name, value in asdict(end.latency).items()
    }
    return replace(
        end,
        elapsed_ns=end.elapsed_ns // slow,
        latency=replace(end.latency, **latency),
        series=series,
    )
