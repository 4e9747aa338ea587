"""From what agents collected to an outcome: pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from engpass.measure.agent import MeasureError
from engpass.measure.counters import changes, thinned
from engpass.measure.flows import Flow
from engpass.measure.kept import Kept
from engpass.measure.pacing import pacing
from engpass.measure.precision import Rule
from engpass.measure.why import explained
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

_S = 1e9


def lasted(planned: Sequence[Flow], results: Mapping[str, Mapping[str, Any]]) -> list[Flow]:
    """The flows with the windows that they had: a stop rule may have ended them before their time."""
    found = []
    for flow in planned:
        ends = results.get(flow.sender, {}).get("flows", [])
        end: Mapping[str, Any] = next(
            (e for e in ends if e.get("flow") == flow.name and e.get("role") == "send"), {}
        )
        ended = end.get("ended") == "stopped" and end.get("elapsed_ns")
        found.append(dataclasses.replace(flow, duration_ns=int(end["elapsed_ns"])) if ended else flow)
    return found


def outcome_flows(
    flows: Sequence[Flow],
    results: Mapping[str, Mapping[str, Any]],
    hosts: Mapping[str, Any],
    limits: Mapping[str, FlowOutcome],
    kept: Kept,
) -> dict[str, FlowOutcome]:
    """The flows of an outcome, in the order of the file.

    `hosts` as `outcome_hosts` gives them, `limits` of the limit engine.
    """
    return {flow.name: _flow(flow, results, hosts, limits.get(flow.name), kept) for flow in flows}


_EARLY = {
    "peer": "the other end closed before its time",
    "limit-rate": "the owner of that host allows no such rate",
    "limit-bytes": "the owner of that host allows no more bytes",
    "limit-time": "the owner of that host allows no more time",
    "silent": "nothing came in",
}


def refuse_early_end(flow: str, host: str, end: Mapping[str, Any]) -> None:
    """Raise `MeasureError` for an end of a flow that did not last as long as it was asked to."""
    ended, error = end.get("ended"), end.get("error") or {}
    usual = {None, "duration", "bytes", "stopped"}
    if ended in usual or (end.get("role") == "receive" and ended == "peer"):
        return
    cause = error.get("cause") or _EARLY.get(str(ended), "no reason given")
    raise MeasureError(f"traffic `{flow}` failed at host `{host}`: {cause}", error.get("help"))


def end_of(results: Mapping[str, Mapping[str, Any]], flow: Flow, host: str, role: str) -> Mapping[str, Any]:
    """What the agent of a host told of its end of a flow; raises `MeasureError` if that failed."""
    for end in results.get(host, {}).get("flows", []):
        if end.get("flow") == flow.name and end.get("role") == role:
            refuse_early_end(flow.name, host, end)
            found: Mapping[str, Any] = end
            return found
    raise MeasureError(
        f"host `{host}` gave no result for traffic `{flow.name}`", "report this as a bug of Engpass"
    )


def own_congestion(
    numbers: Mapping[str, Any], planned: Sequence[Flow], results: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Whose TCP had the kernel's own congestion control where the model has another: a sentence for each."""
    sides = {flow["name"]: (flow.get("tcp") or [None])[0] for flow in numbers["flows"]}
    found = []
    for flow in planned:
        side = sides.get(flow.name)
        if flow.kind != "tcp-stream" or side is None or side["congestion"] is not None:
            continue
        streams = end_of(results, flow, flow.sender, "send").get("streams") or [{}]
        granted = (streams[0].get("granted") or {}).get("congestion")
        if granted is not None and granted != side["model_congestion"]:
            found.append(
                f"TCP of `{flow.name}` has the kernel's own congestion control, `{granted}`, and the model"
                f' `{side["model_congestion"]}`: `tcp = {{ congestion = "{granted}" }}` sets both'
            )
    return found


def _flow(
    flow: Flow,
    results: Mapping[str, Mapping[str, Any]],
    hosts: Mapping[str, Any],
    limit: FlowOutcome | None,
    kept: Kept,
) -> FlowOutcome:
    sender = end_of(results, flow, flow.sender, "send")
    receivers = {host: end_of(results, flow, host, "receive") for host in flow.receivers}
    ends = {flow.sender: sender, **receivers}
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
    why = explained(flow, found, ends, hosts, limit, kept.lines(flow.name))
    return replace(
        found,
        bottleneck=why.bottleneck,
        next_bottleneck=why.next,
        summary=why.summary,
        # The rest is kept as it came: numbers of the kernel with its names.
        real=replace(real, findings=why.findings, ends={host: thinned(end) for host, end in ends.items()}),
    )


def _figures(
    flow: Flow, sender: Mapping[str, Any], receivers: Mapping[str, Mapping[str, Any]]
) -> tuple[FlowOutcome, RealFlow]:
    """Rates and counts of a flow: what all engines tell, and what only real hosts do."""
    if flow.kind == "request-response":
        return _conversation(flow, sender)
    if flow.kind == "multicast":
        each = {host: _receiver(flow, sender, end) for host, end in receivers.items()}
        # Of the receiver that got least.
        least = min(each.values(), key=lambda one: one.goodput_bit_per_s)
        rates, counts = Rates(least.goodput_bit_per_s, least.offered_bit_per_s), least.datagrams
        real = RealFlow(gap_s=least.gap_s, max_datagrams_per_ms=least.max_datagrams_per_ms, receivers=each)
        return _outcome(flow, rates, datagrams=counts), real
    first = next(iter(receivers.values()))
    rates = _rates(flow, sender, first)
    if flow.kind == "tcp-stream":
        return _outcome(flow, rates, tcp=_tcp(sender)), RealFlow()
    real = RealFlow(gap_s=_gaps(first), max_datagrams_per_ms=_most_per_ms(first))
    return _outcome(flow, rates, datagrams=_datagrams(sender, first)), real


class Rates(NamedTuple):
    """Payload in bit/s."""

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


def _rates(flow: Flow, sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> Rates:
    return Rates(
        receiver["bytes"] * 8 * _S / flow.arrived_ns(sender, receiver),
        sender["bytes"] * 8 * _S / flow.duration_ns,
    )


def _receiver(flow: Flow, sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> Receiver:
    rates = _rates(flow, sender, receiver)
    return Receiver(
        goodput_bit_per_s=rates.goodput_bit_per_s,
        offered_bit_per_s=rates.offered_bit_per_s,
        datagrams=_datagrams(sender, receiver),
        gap_s=_gaps(receiver),
        max_datagrams_per_ms=_most_per_ms(receiver),
    )


def _datagrams(sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> Datagrams:
    sequence = receiver.get("sequence") or {}
    sent, received = sender["messages"], sequence.get("received", receiver["messages"])
    return Datagrams(
        sent=sent,
        received=received,
        lost=max(0, sent - received),
        duplicate=sequence.get("duplicate"),
        reordered=sequence.get("reordered"),
    )


def _gaps(receiver: Mapping[str, Any]) -> Gaps | None:
    gaps = receiver.get("gaps") or {}
    found = Gaps(
        mean=_seconds(gaps.get("mean_ns")),
        sd=_seconds(gaps.get("sd_ns")),
        mad=_seconds(gaps.get("mad_ns")),
        p99=_seconds(gaps.get("p99_ns")),
        p99_9=_seconds(gaps.get("p999_ns")),
    )
    return None if found == Gaps() else found


def _most_per_ms(receiver: Mapping[str, Any]) -> int | None:
    most: int | None = (receiver.get("gaps") or {}).get("worst_ms")
    return most


def _tcp(sender: Mapping[str, Any]) -> Tcp | None:
    """Counts of all streams over the window, times of the first at its end."""
    edges = [stream["tcp"] for stream in sender.get("streams", []) if stream.get("tcp")]

    def counted(name: str) -> int | None:
        pairs = [((e.get("open") or {}).get(name), (e.get("close") or {}).get(name)) for e in edges]
        known = [(before or 0, after) for before, after in pairs if after is not None]
        return sum(after - before for before, after in known) if known else None

    close = (edges[0].get("close") or {}) if edges else {}
    busy = counted("busy_us")
    timeouts_ms = counted("total_rto_time_ms")

    def share(name: str) -> float | None:
        limited = counted(name)
        return limited / busy if busy and limited is not None else None

    rtt, least = close.get("rtt_us"), close.get("min_rtt_us")
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


def _conversation(flow: Flow, asker: Mapping[str, Any]) -> tuple[FlowOutcome, RealFlow]:
    seconds = flow.duration_ns / _S
    latency = asker.get("latency") or {}
    answered = latency.get("count", asker["messages"])
    goodput = answered * flow.common["message_bytes"] * 8 / seconds
    missed = (asker.get("unanswered") or 0) * flow.common["message_bytes"] * 8 / seconds
    times = Latency(
        min=_seconds(latency.get("min_ns")),
        mean=_seconds(latency.get("mean_ns")),
        p50=_seconds(latency.get("p50_ns")),
        p90=_seconds(latency.get("p90_ns")),
        p99=_seconds(latency.get("p99_ns")),
        p99_9=_seconds(latency.get("p999_ns")),
        max=_seconds(latency.get("max_ns")),
    )
    requests = Requests(
        per_s=answered / seconds,
        unanswered=asker.get("unanswered"),
        latency_s=None if times == Latency() else times,
    )
    return _outcome(flow, Rates(goodput, goodput + missed)), RealFlow(requests=requests)


def _cpu(end: Mapping[str, Any], carried_bytes: float) -> float | None:
    cpu = end.get("cpu")
    if not cpu or carried_bytes <= 0:
        return None
    return float(cpu.get("user_ns", 0) + cpu.get("system_ns", 0)) / carried_bytes


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _S


def with_precision(
    flows: Mapping[str, FlowOutcome], planned: Sequence[Flow], rule: Rule
) -> tuple[dict[str, FlowOutcome], PointPrecision]:
    """The flows, each with how well its mean is known; and whether all are known as well as was asked."""
    found = dict(flows)
    reached = True
    for flow in planned:
        told = flow.kind == "request-response"
        # Answers are counted in requests, whose payload is what `goodput` means there.
        per_sample = 8.0 * (flow.common["message_bytes"] if told else 1)
        hosts = (flow.sender,) if told else flow.receivers
        each = [rule.told(flow.name, host, per_sample) for host in hosts]
        known = [one for one in each if one is not None]
        worst = min(known, key=lambda one: (one.reached, -(one.share or 0.0)))
        before = found[flow.name]
        found[flow.name] = replace(before, real=replace(before.real or RealFlow(), precision=worst))
        reached = reached and worst.reached
    return found, PointPrecision(asked=rule.asked, reached=reached)


def outcome_hosts(
    hellos: Mapping[str, Mapping[str, Any]], results: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """What is known of each host: what its agent said of it, and what its counters grew by."""
    return {
        host: {
            "host": hellos[host].get("host"),
            "settings": hellos[host].get("settings"),
            "timer": hellos[host].get("timer"),
            "changes": changes(result.get("before"), result.get("after")),
        }
        for host, result in results.items()
    }
