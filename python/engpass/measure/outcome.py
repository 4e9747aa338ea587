"""From what agents collected to an outcome as the other engines write it: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from engpass.measure.agent import MeasureError
from engpass.measure.counters import changes, thinned
from engpass.measure.flows import Flow
from engpass.measure.kept import Kept
from engpass.measure.pacing import pacing
from engpass.measure.precision import Rule
from engpass.measure.why import explained

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
        found.append(replace(flow, duration_ns=int(end["elapsed_ns"])) if ended else flow)
    return found


def outcome_flows(
    flows: Sequence[Flow],
    results: Mapping[str, Mapping[str, Any]],
    hosts: Mapping[str, Any],
    limits: Mapping[str, Any],
    kept: Kept,
) -> dict[str, Any]:
    """The flows of an outcome, in the order of the file; `hosts` as `outcome_hosts` gives them."""
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
    limit: Mapping[str, Any] | None,
    kept: Kept,
) -> dict[str, Any]:
    sender = end_of(results, flow, flow.sender, "send")
    receivers = {host: end_of(results, flow, host, "receive") for host in flow.receivers}
    first = next(iter(receivers.values()))
    seconds = flow.duration_ns / _S
    if flow.kind == "request-response":
        found = _conversation(flow, sender, seconds)
    elif flow.kind == "tcp-stream":
        found = _rates(flow, sender, first) | _tcp(sender)
    elif flow.kind == "multicast":
        found = _group(flow, sender, receivers)
    else:
        found = _rates(flow, sender, first) | _datagrams(sender, first)
    ends = {flow.sender: sender, **receivers}
    cpu = {host: _cpu(end, found["goodput_bit_per_s"] * seconds / 8) for host, end in ends.items()}
    found |= {
        "sender_cpu_s_per_gb": cpu[flow.sender],
        "receiver_cpu_s_per_gb": cpu[flow.receivers[0]],
    }
    found |= {"paths": list(flow.paths), "schedule_kept": flow.kept(sender)}
    found |= explained(flow, found, ends, hosts, limit, kept.lines(flow.name))
    if (regularity := pacing(sender, first)) is not None:
        found["pacing"] = regularity
    # The rest is kept as it came: numbers of the kernel with its names.
    found["ends"] = {host: thinned(end) for host, end in ends.items()}
    return {key: value for key, value in found.items() if value is not None}


def _rates(flow: Flow, sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": flow.kind,
        "goodput_bit_per_s": receiver["bytes"] * 8 * _S / flow.arrived_ns(sender, receiver),
        "offered_bit_per_s": sender["bytes"] * 8 * _S / flow.duration_ns,
    }


def _datagrams(sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> dict[str, Any]:
    sequence = receiver.get("sequence") or {}
    sent, received = sender["messages"], sequence.get("received", receiver["messages"])
    gaps = receiver.get("gaps") or {}
    return {
        "sent_datagrams": sent,
        "received_datagrams": received,
        "lost_datagrams": max(0, sent - received),
        "duplicate_datagrams": sequence.get("duplicate"),
        "reordered_datagrams": sequence.get("reordered"),
        "gap_mean_s": _seconds(gaps.get("mean_ns")),
        "gap_sd_s": _seconds(gaps.get("sd_ns")),
        "gap_mad_s": _seconds(gaps.get("mad_ns")),
        "gap_p99_s": _seconds(gaps.get("p99_ns")),
        "gap_p999_s": _seconds(gaps.get("p999_ns")),
        "worst_ms_datagrams": gaps.get("worst_ms"),
    }


def _tcp(sender: Mapping[str, Any]) -> dict[str, Any]:
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

    rest = {
        f"{word}_share": share(name)
        for word, name in (
            ("receive_window_limited", "rwnd_limited_us"),
            ("send_buffer_limited", "sndbuf_limited_us"),
        )
    }
    rtt, least = close.get("rtt_us"), close.get("min_rtt_us")
    return {
        "retransmitted_segments": counted("total_retrans"),
        "timeouts": counted("total_rto"),
        "timeout_share": timeouts_ms * 1000 / busy if busy and timeouts_ms is not None else None,
        "smoothed_rtt_s": rtt / 1e6 if rtt is not None else None,
        "minimum_rtt_s": least / 1e6 if least is not None else None,
        **rest,
    }


def _conversation(flow: Flow, asker: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    latency = asker.get("latency") or {}
    answered = latency.get("count", asker["messages"])
    goodput = answered * flow.common["message_bytes"] * 8 / seconds
    missed = (asker.get("unanswered") or 0) * flow.common["message_bytes"] * 8 / seconds
    return {
        "kind": flow.kind,
        "goodput_bit_per_s": goodput,
        "offered_bit_per_s": goodput + missed,
        "transactions_per_s": answered / seconds,
        "unanswered": asker.get("unanswered"),
        **{
            f"latency_{name}_s": _seconds(latency.get(f"{name}_ns"))
            for name in ("min", "mean", "p50", "p90", "p99", "p999", "max")
        },
    }


def _group(
    flow: Flow, sender: Mapping[str, Any], receivers: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Figures of the receiver that got least, and of each."""
    each = {host: {**_rates(flow, sender, end), **_datagrams(sender, end)} for host, end in receivers.items()}
    worst = min(each.values(), key=lambda one: one["goodput_bit_per_s"])
    return {**worst, "receivers": each}


def _cpu(end: Mapping[str, Any], carried_bytes: float) -> float | None:
    cpu = end.get("cpu")
    if not cpu or carried_bytes <= 0:
        return None
    return float(cpu.get("user_ns", 0) + cpu.get("system_ns", 0)) / carried_bytes


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _S


def add_precision(outcome: dict[str, Any], planned: Sequence[Flow], rule: Rule) -> None:
    """Say of every flow, and of the point, how well its mean is known, and whether that was asked."""
    reached = []
    for flow in planned:
        found = outcome["flows"][flow.name]
        told = flow.kind == "request-response"
        # Answers are counted in requests, whose payload is what `goodput` means there.
        per_sample = 8.0 * (flow.common["message_bytes"] if told else 1)
        hosts = (flow.sender,) if told else flow.receivers
        each = [rule.told(flow.name, host, per_sample) for host in hosts]
        known = [one for one in each if one is not None]
        worst = min(known, key=lambda one: (one["reached"], -(one.get("share") or 0.0)))
        found["precision"] = worst
        # As a column, beside the mean that it belongs to.
        found["precision_share"] = worst.get("share")
        found["precision_reached"] = worst["reached"]
        reached.append(worst["reached"])
    outcome["measured"]["precision"] = {"asked": rule.asked, "reached": all(reached)}


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
