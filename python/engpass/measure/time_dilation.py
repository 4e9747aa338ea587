"""Time dilation: a network that is too fast for the machine runs N times slower than wall-clock time.

Results are in the model's time, but agents work in wall-clock time. Their work is therefore stretched before
a run, and their results are scaled back after it. Pure functions.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import asdict, replace

from engpass.measure.answers import End
from engpass.measure.requests import Prepare
from engpass.types.outcome import (
    Delays,
    FlowOutcome,
    Gaps,
    Latency,
    Outage,
    Precision,
    Quantiles,
    RealFlow,
    Receiver,
    Requests,
    Tcp,
    Transfer,
)
from engpass.types.plan import FlowPlan, PointPlan


def slowed(numbers: PointPlan, slow: int) -> PointPlan:
    """The point as agents get it: with all times N times longer and all rates N times lower."""
    if slow == 1:
        return numbers
    run = replace(
        numbers.run,
        duration_ns=numbers.run.duration_ns * slow,
        warmup_ns=numbers.run.warmup_ns * slow,
        most_ns=numbers.run.most_ns * slow,
    )
    return replace(numbers, run=run, flows=[_slowed(flow, slow) for flow in numbers.flows])


def _slowed(flow: FlowPlan, slow: int) -> FlowPlan:
    def longer(time_ns: int | None) -> int | None:
        return None if time_ns is None else time_ns * slow

    return replace(
        flow,
        start_ns=flow.start_ns * slow,
        stop_ns=longer(flow.stop_ns),
        every_ns=longer(flow.every_ns),
        on_ns=longer(flow.on_ns),
        off_ns=longer(flow.off_ns),
        micro_frames_per_s=flow.micro_frames_per_s // slow if flow.micro_frames_per_s else None,
        rate_bit_per_s=max(1, flow.rate_bit_per_s // slow) if flow.rate_bit_per_s else flow.rate_bit_per_s,
    )


def scaled_back(flow: FlowOutcome, slow: int) -> FlowOutcome:
    """Convert a flow between real hosts from wall-clock time to the model's time.

    Times are divided: `delay_s`; `longest_s` of the outage; `duration_s` of the transfer; `smoothed_rtt_s`,
    `min_rtt_s` and `rtt_s` of `tcp`; gaps and delays of `receivers`; and of `real` the gaps, the latency of
    requests and `interval_s` of the precision. Rates are multiplied: goodput and offered load, also of
    receivers and transfers, `per_s` of requests, and the mean rate of the precision with its half width.

    The rest is unchanged: counts and shares; CPU time of the hosts for each GB; datagrams within a
    millisecond of wall-clock time; sentences; and the agents' results. A measured flow has no `limit`.
    """
    if slow == 1:
        return flow
    return replace(
        flow,
        goodput_bit_per_s=flow.goodput_bit_per_s * slow,
        offered_bit_per_s=flow.offered_bit_per_s * slow,
        delay_s=None if flow.delay_s is None else _delays(flow.delay_s, slow),
        tcp=None if flow.tcp is None else _tcp(flow.tcp, slow),
        outage=None if flow.outage is None else _outage(flow.outage, slow),
        transfer=None if flow.transfer is None else _transfer(flow.transfer, slow),
        receivers={host: _receiver(one, slow) for host, one in flow.receivers.items()},
        real=None if flow.real is None else _real(flow.real, slow),
    )


def slowed_end(end: Prepare, slow: int) -> Prepare:
    """Convert the rate and the intervals of a request from the model's time to wall-clock time."""
    if slow == 1:
        return end
    schedule = end.schedule
    if schedule is not None:
        schedule = replace(schedule, rate_bit_per_s=max(1, schedule.rate_bit_per_s // slow))
    return replace(
        end, schedule=schedule, interval_ns=None if end.interval_ns is None else end.interval_ns * slow
    )


def scaled_back_end(end: End, slow: int) -> End:
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


Times = TypeVar("Times", Quantiles, Gaps, Latency)


def _times(times: Times, slow: int) -> Times:
    """Scale a distribution of gaps or latencies, whose fields are all times."""
    seconds: dict[str, float | None] = asdict(times)
    return replace(times, **{name: _time(value, slow) for name, value in seconds.items()})


def _delays(delays: Delays, slow: int) -> Delays:
    return Delays(
        network=_times(delays.network, slow),
        queueing=None if delays.queueing is None else _times(delays.queueing, slow),
        message=None if delays.message is None else _times(delays.message, slow),
    )


def _time(seconds: float | None, slow: int) -> float | None:
    return None if seconds is None else seconds / slow


def _rate(per_second: float | None, slow: int) -> float | None:
    return None if per_second is None else per_second * slow


def _transfer(transfer: Transfer, slow: int) -> Transfer:
    duration, rate = transfer.duration_s, transfer.goodput_bit_per_s
    return replace(
        transfer,
        duration_s=None if duration is None else duration / slow,
        goodput_bit_per_s=None if rate is None else rate * slow,
    )


def _outage(outage: Outage, slow: int) -> Outage:
    return replace(outage, longest_s=outage.longest_s / slow)


def _tcp(tcp: Tcp, slow: int) -> Tcp:
    return replace(
        tcp,
        smoothed_rtt_s=_time(tcp.smoothed_rtt_s, slow),
        min_rtt_s=_time(tcp.min_rtt_s, slow),
        rtt_s=None if tcp.rtt_s is None else _times(tcp.rtt_s, slow),
    )


def _real(real: RealFlow, slow: int) -> RealFlow:
    return replace(
        real,
        gap_s=None if real.gap_s is None else _times(real.gap_s, slow),
        requests=None if real.requests is None else _requests(real.requests, slow),
        precision=None if real.precision is None else _precision(real.precision, slow),
    )


def _requests(requests: Requests, slow: int) -> Requests:
    latency = requests.latency_s
    return replace(
        requests,
        per_s=requests.per_s * slow,
        latency_s=None if latency is None else _times(latency, slow),
    )


def _precision(precision: Precision, slow: int) -> Precision:
    return replace(
        precision,
        interval_s=precision.interval_s / slow,
        mean_bit_per_s=_rate(precision.mean_bit_per_s, slow),
        half_width_bit_per_s=_rate(precision.half_width_bit_per_s, slow),
    )


def _receiver(receiver: Receiver, slow: int) -> Receiver:
    return replace(
        receiver,
        goodput_bit_per_s=receiver.goodput_bit_per_s * slow,
        offered_bit_per_s=receiver.offered_bit_per_s * slow,
        delay_s=None if receiver.delay_s is None else _delays(receiver.delay_s, slow),
        outage=None if receiver.outage is None else _outage(receiver.outage, slow),
        gap_s=None if receiver.gap_s is None else _times(receiver.gap_s, slow),
        join_delay_s=_time(receiver.join_delay_s, slow),
        leave_delay_s=_time(receiver.leave_delay_s, slow),
    )
