"""What the agents are asked to do for each traffic of a point: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from engpass.measure.agent import MeasureError
from engpass.measure.precision import LEAST_SAMPLES, Rule, Series
from engpass.types.outcome import Path

_SECOND_NS = 1_000_000_000
_LEAST_INTERVAL_NS = 100_000_000
_LEAST_SAMPLE_NS = 20_000_000
_BEYOND_NS = 10 * _SECOND_NS
_GIVEN_UP_NS = 100_000_000  # what is later than that when traffic ends leaves no more (docs/agent.md)
_STANDING_NS = 20_000_000
"""What comes later than this after the window has stood in a queue, and not in a host that stumbled."""
_DATAGRAMS = frozenset({"udp-stream", "poisson", "udp-on-off", "multicast"})


@dataclass(frozen=True)
class Flow:
    """A traffic of the testbed, with what both its ends are asked."""

    name: str
    kind: str
    sender: str
    receivers: tuple[str, ...]
    start_ns: int
    warmup_ns: int
    duration_ns: int
    """Of the measured window."""
    common: Mapping[str, Any]
    send: Mapping[str, Any]
    receive: Mapping[str, Any]
    group: str | None = None
    paths: tuple[Path, ...] = ()
    """The path to each receiver."""

    @property
    def asked_bit_per_s(self) -> float | None:
        """Mean rate of payload that its schedule asks of all its streams; `None` without a schedule."""
        schedule = self.send.get("schedule")
        if schedule is None:
            return None
        rate = float(schedule["rate_bit_per_s"]) * int(self.common.get("streams", 1))
        on, off = schedule.get("on_ns"), schedule.get("off_ns", 0)
        return rate * on / (on + off) if on is not None else rate

    def kept(self, sender: Mapping[str, Any]) -> float | None:
        """The share of its schedule that the sender's end kept; `None` without a schedule.

        Bursts and random times make more or less in a window than their mean: who was never late for long has
        sent all that was due.
        """
        asked = self.asked_bit_per_s
        if asked is None:
            return None
        latest = (sender.get("late") or {}).get("max_ns")
        if latest is not None and latest < _GIVEN_UP_NS:
            return 1.0
        sent = int(sender["bytes"]) + int(sender.get("unanswered") or 0) * int(self.common["message_bytes"])
        return min(1.0, sent * 8 * _SECOND_NS / self.duration_ns / asked)

    def arrived_ns(self, sender: Mapping[str, Any], receiver: Mapping[str, Any]) -> int:
        """The time in which came what was sent in the window: longer where a queue on the way filled up."""
        span = int(receiver.get("elapsed_ns") or 0)
        if self.kind == "tcp-stream":
            # The receiver's window goes on when a sender ends before its time: what the send buffer held
            # comes after the last write.
            return max(self.duration_ns, span) if sender.get("ended") == "stopped" else self.duration_ns
        if self.kind not in _DATAGRAMS:
            return self.duration_ns
        # What left late came late. A sender that is too late gives up, or is held back, and that is a queue.
        latest = int((sender.get("late") or {}).get("max_ns") or 0)
        late = latest if latest < _GIVEN_UP_NS else 0
        return span if span > self.duration_ns + late + _STANDING_NS else self.duration_ns

    @property
    def end_ns(self) -> int:
        """When its traffic ends, from the start of the run."""
        return self.start_ns + self.warmup_ns + self.duration_ns


def flows(numbers: Mapping[str, Any], seed: int) -> list[Flow]:
    """The flows of a point that send at all; raises `MeasureError` for what agents cannot do."""
    run = numbers["run"]
    found = []
    for flow in numbers["flows"]:
        if flow.get("cells"):
            raise MeasureError(
                f"traffic `{flow['name']}` is `{flow['kind']}`: it sends cells, and no host does",
                "use `udp-stream` with a `rate` for interfering traffic",
            )
        begin = flow["start_ns"]
        most = run["most_ns"]
        end = min(most, flow["stop_ns"] if flow["stop_ns"] is not None else most)
        opened = max(begin, run["warmup_ns"])
        if end <= opened:
            continue
        found.append(_flow(flow, begin, opened - begin, end - opened, seed, _interval(run, end - opened)))
    if not found:
        raise MeasureError(
            "no traffic is left after the warm-up", "let it start earlier or the run last longer"
        )
    return found


def _interval(run: Mapping[str, Any], duration: int) -> int:
    """How long the records of a time series are: ten of a run, or as many as the stop rule needs at least."""
    if run["precision"] is None:
        return min(_SECOND_NS, max(_LEAST_INTERVAL_NS, duration // 10))
    least = int(run["duration_ns"]) - int(run["warmup_ns"])
    return min(_SECOND_NS, max(_LEAST_SAMPLE_NS, least // LEAST_SAMPLES))


def rule(numbers: Mapping[str, Any], planned: Sequence[Flow]) -> Rule | None:
    """The stop rule of a point, if it has one: over what comes in at every receiver, or is answered."""
    asked = numbers["run"]["precision"]
    if asked is None:
        return None
    series = {}
    for flow in planned:
        told = flow.kind == "request-response"
        for host in (flow.sender,) if told else flow.receivers:
            of = "messages" if told else "bytes"
            series[flow.name, host] = Series(flow.common["interval_ns"], flow.warmup_ns, of)
    return Rule(asked, series)


def _flow(flow: Mapping[str, Any], start: int, warmup: int, duration: int, seed: int, interval: int) -> Flow:
    kind = flow["kind"]
    udp = kind in _DATAGRAMS or flow.get("transport") == "udp"
    live = flow["live"]
    whole = warmup + duration
    common: dict[str, Any] = {
        "kind": "udp-stream" if kind in _DATAGRAMS else kind,
        "message_bytes": flow["message_bytes"],
        "warmup_ns": warmup,
        "duration_ns": duration,
        "interval_ns": interval,
        "limits": {"duration_ns": whole + _BEYOND_NS},
    }
    common |= _given(flow, "streams", "transport", "response_bytes")
    common |= _given(live, "mptcp", "segmentation")
    schedule = _schedule(flow, seed)
    # The receiver stamps what comes at a rate.
    gaps = {"gaps": True} if schedule is not None and common["kind"] == "udp-stream" else {}
    send = common | _given(live, "pacing", "burst_messages", "method")
    send |= {"schedule": schedule} if schedule is not None else {}
    receive = common | gaps | _given(live, "truncate")
    send |= {"cores": live["send_cores"]} if live["send_cores"] else {}
    receive |= {"cores": live["receive_cores"]} if live["receive_cores"] else {}
    send["socket"], receive["socket"] = _sockets(flow, udp=udp)
    return Flow(
        flow["name"], kind, flow["from"], tuple(flow["to"]), start, warmup, duration, common, send, receive,
        flow.get("group"), msgspec.convert(flow["paths"], tuple[Path, ...]),
    )  # fmt: skip


def _given(table: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: table[key] for key in keys if table.get(key) is not None}


def _schedule(flow: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    if flow["kind"] == "request-response":
        every = flow["every_ns"]
        if every is None:
            return None
        # Agents count rates of payload.
        return {"kind": "cbr", "rate_bit_per_s": max(1, flow["message_bytes"] * 8 * _SECOND_NS // every)}
    rate = flow.get("rate_bit_per_s")
    if rate is None:
        return None
    if flow["kind"] == "poisson":
        return {"kind": "poisson", "rate_bit_per_s": rate, "seed": seed}
    if flow["kind"] == "udp-on-off":
        times = {key: flow[key] for key in ("on_ns", "off_ns", "lengths")}
        return {"kind": "on-off", "rate_bit_per_s": rate, "seed": seed, **times}
    return {"kind": "cbr", "rate_bit_per_s": rate}


def _sockets(flow: Mapping[str, Any], *, udp: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    live = flow["live"]
    both: dict[str, Any] = {"dscp": live["dscp"], "dont_fragment": live["dont_fragment"]}
    if flow["ttl"] != 64 or flow["kind"] == "multicast":
        both["ttl"] = flow["ttl"]
    if flow["priority"]:
        both["priority"] = flow["priority"]
    send, receive = dict(both), dict(both)
    if udp:
        send["send_buffer_bytes"] = live["send_buffer_bytes"]
        receive["receive_buffer_bytes"] = flow["receive_buffer_bytes"]
    else:
        for side, tcp in zip((send, receive), flow["tcp"], strict=True):
            for key in ("mss_bytes", "send_buffer_bytes", "receive_buffer_bytes", "nodelay", "congestion"):
                side[key] = tcp[key]
    given = [{key: value for key, value in side.items() if value is not None} for side in (send, receive)]
    return given[0], given[1]


def untold(numbers: Mapping[str, Any]) -> list[str]:
    """What of a testbed no real host can be told: a sentence for each key."""
    found: dict[str, None] = {}
    for flow in numbers["flows"]:
        for host, tcp in zip((flow["from"], *flow["to"][:1]), flow.get("tcp") or (), strict=False):
            keys = tcp["untold"]
            if keys:
                words = ", ".join(f"`{key}`" for key in keys)
                found[
                    f"TCP of host `{host}` is the kernel's own: {words} of `tcp` cannot be told to a socket"
                ] = None
    return list(found)
