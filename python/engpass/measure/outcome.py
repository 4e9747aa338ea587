"""Builds the flows and hosts of an outcome from the agents' results. Pure functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from engpass.jsondata import Json
from engpass.measure.agent import MeasureError
from engpass.measure.answers import Counter, End, Hello, HostResult, HostSeen, Line, Numbers, Problem, TcpInfo
from engpass.measure.bottleneck import explained
from engpass.measure.counters import changes, thinned
from engpass.measure.flows import Flow
from engpass.measure.line_usage import Kept
from engpass.measure.pacing import pacing
from engpass.measure.precision import Rule
from engpass.types.outcome import (
    Datagrams,
    FlowOutcome,
    Gaps,
    Latency,
    PointPrecision,
    RealFlow,
    Receiver,
    Requests,
    Tcp,
)
from engpass.types.plan import PointPlan

_S = 1e9


def lasted(planned: Sequence[Flow], results: Mapping[str, HostResult]) -> list[Flow]:
    """The flows with the lengths of the windows that were measured: a stop rule may have ended them early."""
    found = []
    for flow in planned:
        end = _end(results, flow, flow.sender, "send") or End()
        stopped = end.ended == "stopped" and end.elapsed_ns
        found.append(dataclasses.replace(flow, duration_ns=end.elapsed_ns) if stopped else flow)
    return found


def outcome_flows(
    flows: Sequence[Flow],
    results: Mapping[str, HostResult],
    hosts: Mapping[str, HostSeen],
    limits: Mapping[str, FlowOutcome],
    kept: Kept,
) -> dict[str, FlowOutcome]:
    """The flows of an outcome, in the order of the file.

    `hosts` are those of `outcome_hosts`, parsed; `limits` are the flows' outcomes in the limit engine.
    """
    return {flow.name: _flow(flow, results, hosts, limits.get(flow.name), kept) for flow in flows}


_EARLY = {
    "peer": "the peer closed the connection early",
    "limit-rate": "the owner of that host does not allow this rate",
    "limit-bytes": "the owner of that host does not allow more bytes",
    "limit-time": "the owner of that host does not allow more time",
    "silent": "nothing arrived",
}


def refuse_early_end(flow: str, host: str, end: End | Line) -> None:
    """Raise `MeasureError` if an end of a flow failed or ended before its time."""
    error = end.error or Problem()
    usual = {None, "duration", "bytes", "stopped"}
    if end.ended in usual or (end.role == "receive" and end.ended == "peer"):
        return
    cause = error.cause or _EARLY.get(str(end.ended), "no reason given")
    raise MeasureError(f"traffic `{flow}` failed at host `{host}`: {cause}", error.help)


def _end(results: Mapping[str, HostResult], flow: Flow, host: str, role: str) -> End | None:
    return results[host].ends.get((flow.name, role)) if host in results else None


def end_of(results: Mapping[str, HostResult], flow: Flow, host: str, role: str) -> End:
    """The result of a flow's end at a host; raises `MeasureError` if it is missing or the end failed."""
    end = _end(results, flow, host, role)
    if end is None:
        raise MeasureError(
            f"host `{host}` gave no result for traffic `{flow.name}`", "report this as a bug of Engpass"
        )
    refuse_early_end(flow.name, host, end)
    return end


def own_congestion(
    numbers: PointPlan, planned: Sequence[Flow], results: Mapping[str, HostResult]
) -> list[str]:
    """A sentence for each flow whose TCP used another congestion control than the model does."""
    sides = {flow.name: flow.tcp[0] for flow in numbers.flows if flow.tcp}
    found = []
    for flow in planned:
        side = sides.get(flow.name)
        if flow.kind != "tcp-stream" or side is None or side.congestion is not None:
            continue
        streams = end_of(results, flow, flow.sender, "send").streams
        granted = streams[0].granted.congestion if streams else None
        if granted is not None and granted != side.model_congestion:
            found.append(
                f"TCP of `{flow.name}` uses the kernel's congestion control, `{granted}`, but the model uses"
                f' `{side.model_congestion}`: `tcp = {{ congestion = "{granted}" }}` sets both'
            )
    return found


def _flow(
    flow: Flow,
    results: Mapping[str, HostResult],
    hosts: Mapping[str, HostSeen],
    limit: FlowOutcome | None,
    kept: Kept,
) -> FlowOutcome:
    sender = end_of(results, flow, flow.sender, "send")
    receivers = {host: end_of(results, flow, host, "receive") for host in flow.receivers}
    ends = {flow.sender: sender, **receivers}
    told = {host: results[host].kept(flow.name, "receive") for host in flow.receivers}
    told = {flow.sender: results[flow.sender].kept(flow.name, "send"), **told}
    first = next(iter(receivers.values()))
    found, real = _figures(flow, sender, receivers)
    carried_bytes = found.goodput_bit_per_s * (flow.duration_ns / _S) / 8
    real = replace(
        real,
        sender_cpu_s_per_gb=_cpu(sender, carried_bytes),
        receiver_cpu_s_per_gb=_cpu(first, carried_bytes),
        schedule_kept=flow.kept(sender),
        pacing=pacing(sender, first),
    )
    found = replace(found, paths=list(flow.paths), real=real)
    why = explained(flow, found, ends, hosts, limit, kept.lines(flow.name), kept.worst_drop(flow.name))
    return replace(
        found,
        bottleneck=why.bottleneck,
        next_bottleneck=why.next,
        summary=why.summary,
        # The results of agents keep the kernel's names; only histograms and time series are shortened.
        real=replace(real, findings=why.findings, ends={host: thinned(end) for host, end in told.items()}),
    )


def _figures(flow: Flow, sender: End, receivers: Mapping[str, End]) -> tuple[FlowOutcome, RealFlow]:
    """Rates and counts of a flow: those common to all engines, and those that only real hosts give."""
    if flow.kind == "request-response":
        return _conversation(flow, sender)
    if flow.kind == "multicast":
        each = {host: _receiver(flow, sender, end) for host, end in receivers.items()}
        # A flow with several receivers has the figures of the receiver with the lowest goodput.
        least = min(each.values(), key=lambda one: one.goodput_bit_per_s)
        rates, counts = Rates(least.goodput_bit_per_s, least.offered_bit_per_s), least.datagrams
        real = RealFlow(gap_s=least.gap_s, max_datagrams_per_ms=least.max_datagrams_per_ms)
        return replace(_outcome(flow, rates, datagrams=counts), receivers=each), real
    first = next(iter(receivers.values()))
    rates = _rates(flow, sender, first)
    if flow.kind == "tcp-stream":
        return _outcome(flow, rates, tcp=_tcp(sender)), RealFlow()
    real = RealFlow(gap_s=_gaps(first), max_datagrams_per_ms=first.gaps.worst_ms)
    return _outcome(flow, rates, datagrams=_datagrams(sender, first)), real


class Rates(NamedTuple):
    """Payload rates in bit/s."""

    goodput_bit_per_s: float
    offered_bit_per_s: float


def _outcome(
    flow: Flow, rates: Rates, datagrams: Datagrams | None = None, tcp: Tcp | None = None
) -> FlowOutcome:
    return FlowOutcome(
        kind=flow.kind,
        goodput_bit_per_s=rates.goodput_bit_per_s,
        offered_bit_per_s=rates.offered_bit_per_s,
        datagrams=datagrams,
        tcp=tcp,
    )


def _rates(flow: Flow, sender: End, receiver: End) -> Rates:
    return Rates(
        receiver.bytes * 8 * _S / flow.arrived_ns(sender, receiver),
        sender.bytes * 8 * _S / flow.duration_ns,
    )


def _receiver(flow: Flow, sender: End, receiver: End) -> Receiver:
    rates = _rates(flow, sender, receiver)
    return Receiver(
        goodput_bit_per_s=rates.goodput_bit_per_s,
        offered_bit_per_s=rates.offered_bit_per_s,
        datagrams=_datagrams(sender, receiver),
        gap_s=_gaps(receiver),
        max_datagrams_per_ms=receiver.gaps.worst_ms,
    )


def _datagrams(sender: End, receiver: End) -> Datagrams:
    sequence = receiver.sequence or Numbers(received=receiver.messages)
    sent, received = sender.messages, sequence.received
    return Datagrams(
        sent=sent,
        received=received,
        lost=max(0, sent - received),
        duplicate=sequence.duplicate,
        reordered=sequence.reordered,
    )


def _gaps(receiver: End) -> Gaps | None:
    gaps = receiver.gaps
    found = Gaps(
        mean=_seconds(gaps.mean_ns),
        sd=_seconds(gaps.sd_ns),
        mad=_seconds(gaps.mad_ns),
        p99=_seconds(gaps.p99_ns),
        p99_9=_seconds(gaps.p999_ns),
    )
    return None if found == Gaps() else found


def _tcp(sender: End) -> Tcp | None:
    """TCP's counts, summed over all streams in the window; times are the first stream's at its end."""
    edges = [stream.tcp for stream in sender.streams if stream.tcp is not None]
    pairs = [(edge.open or TcpInfo(), edge.close or TcpInfo()) for edge in edges]

    def counted(counter: Counter) -> int | None:
        both = [(first.counted(counter) or 0, last.counted(counter)) for first, last in pairs]
        known = [last - first for first, last in both if last is not None]
        return sum(known) if known else None

    close = pairs[0][1] if pairs else TcpInfo()
    busy = counted("busy_us")
    timeouts_ms = counted("total_rto_time_ms")

    def share(counter: Counter) -> float | None:
        limited = counted(counter)
        return limited / busy if busy and limited is not None else None

    rtt, least = close.rtt_us, close.min_rtt_us
    found = Tcp(
        retransmitted_segments=counted("total_retrans"),
        timeouts=counted("total_rto"),
        smoothed_rtt_s=rtt / 1e6 if rtt is not None else None,
        min_rtt_s=least / 1e6 if least is not None else None,
        timeout_share=timeouts_ms * 1000 / busy if busy and timeouts_ms is not None else None,
        receive_window_limited_share=share("rwnd_limited_us"),
        send_buffer_limited_share=share("sndbuf_limited_us"),
    )
    return None if found == Tcp() else found


def _conversation(flow: Flow, asker: End) -> tuple[FlowOutcome, RealFlow]:
    seconds = flow.duration_ns / _S
    latency = asker.latency
    answered = asker.messages if latency.count is None else latency.count
    goodput = answered * flow.send.message_bytes * 8 / seconds
    missed = (asker.unanswered or 0) * flow.send.message_bytes * 8 / seconds
    times = Latency(
        min=_seconds(latency.min_ns),
        mean=_seconds(latency.mean_ns),
        p50=_seconds(latency.p50_ns),
        p90=_seconds(latency.p90_ns),
        p99=_seconds(latency.p99_ns),
        p99_9=_seconds(latency.p999_ns),
        max=_seconds(latency.max_ns),
    )
    requests = Requests(
        per_s=answered / seconds,
        unanswered=asker.unanswered,
        latency_s=None if times == Latency() else times,
    )
    return _outcome(flow, Rates(goodput, goodput + missed)), RealFlow(requests=requests)


def _cpu(end: End, carried_bytes: float) -> float | None:
    return None if end.cpu is None or carried_bytes <= 0 else end.cpu.used_ns / carried_bytes


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _S


def with_precision(
    flows: Mapping[str, FlowOutcome], planned: Sequence[Flow], rule: Rule
) -> tuple[dict[str, FlowOutcome], PointPrecision]:
    """The flows with the precision of their means added; and whether all reached the target."""
    found = dict(flows)
    reached = True
    for flow in planned:
        told = flow.kind == "request-response"
        # A sample is a number of answered requests per second, whose payload is the goodput.
        per_sample = 8.0 * (flow.send.message_bytes if told else 1)
        hosts = (flow.sender,) if told else flow.receivers
        each = [rule.told(flow.name, host, per_sample) for host in hosts]
        known = [one for one in each if one is not None]
        worst = min(known, key=lambda one: (one.reached, -(one.share or 0.0)))
        before = found[flow.name]
        found[flow.name] = replace(before, real=replace(before.real or RealFlow(), precision=worst))
        reached = reached and worst.reached
    return found, PointPrecision(asked=rule.asked, reached=reached)


def outcome_hosts(
    hellos: Mapping[str, Hello], results: Mapping[str, HostResult]
) -> dict[str, dict[str, Json]]:
    """The hosts of an outcome: the greeting of each agent, and the growth of the host's counters."""
    return {
        host: {
            "host": hellos[host].told.get("host"),
            "settings": hellos[host].told.get("settings"),
            "timer": hellos[host].told.get("timer"),
            "changes": changes(result.told.get("before"), result.told.get("after")),
        }
        for host, result in results.items()
    }
