"""Requests to the agents for each flow of a point. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from engpass.measure.agent import MeasureError
from engpass.measure.answers import End
from engpass.measure.precision import LEAST_SAMPLES, Rule, Series
from engpass.measure.requests import Limits, Prepare, Schedule, Socket
from engpass.types.outcome import Path
from engpass.types.plan import FlowPlan, LivePlan, PointPlan, RunPlan

_SECOND_NS = 1_000_000_000
_LEAST_INTERVAL_NS = 100_000_000
_LEAST_SAMPLE_NS = 20_000_000
_BEYOND_NS = 10 * _SECOND_NS
_GIVEN_UP_NS = 100_000_000  # messages later than this are not sent once traffic ends (docs/agent.md)
_STANDING_NS = 20_000_000
"""Datagrams that arrive later than this after the window were queued; a stalled host delays them less."""
DATAGRAMS = frozenset({"udp-stream", "poisson", "udp-on-off", "video", "multicast"})


@dataclass(frozen=True)
class Flow:
    """One flow of the testbed, with the requests for its two ends."""

    name: str
    kind: str
    sender: str
    receivers: tuple[str, ...]
    start_ns: int
    warmup_ns: int
    duration_ns: int
    """Length of the measurement window in ns."""
    send: Prepare
    receive: Prepare
    group: str | None = None
    paths: tuple[Path, ...] = ()
    """The path to each receiver, in the order of the receivers."""

    @property
    def asked_bit_per_s(self) -> float | None:
        """Scheduled payload rate of all streams together in bit/s; `None` without a schedule."""
        schedule = self.send.schedule
        if schedule is None:
            return None
        rate = float(schedule.rate_bit_per_s) * (self.send.streams or 1)
        on, off = schedule.on_ns, schedule.off_ns or 0
        return rate * on / (on + off) if on is not None else rate

    def kept(self, sender: End) -> float | None:
        """The share of the schedule that the sender met; `None` without a schedule.

        Within one window, bursts and random gaps send more or less than the mean rate. Therefore a sender
        that was never as late as `_GIVEN_UP_NS` has met its schedule.
        """
        asked = self.asked_bit_per_s
        if asked is None:
            return None
        latest = sender.late.max_ns
        if latest is not None and latest < _GIVEN_UP_NS:
            return 1.0
        sent = sender.bytes + (sender.unanswered or 0) * self.send.message_bytes
        return min(1.0, sent * 8 * _SECOND_NS / self.duration_ns / asked)

    def arrived_ns(self, sender: End, receiver: End) -> int:
        """Time in which the window's data arrived; longer than the window if a queue on the path filled."""
        span = receiver.elapsed_ns
        if self.kind == "tcp-stream":
            # If the sender was stopped, the receiver's window goes on, because the send buffer still empties.
            return max(self.duration_ns, span) if sender.ended == "stopped" else self.duration_ns
        if self.kind not in DATAGRAMS:
            return self.duration_ns
        # A late departure causes a late arrival, so it is subtracted. A sender that was later than
        # `_GIVEN_UP_NS` gave up, or a queue held it back.
        latest = sender.late.max_ns or 0
        late = latest if latest < _GIVEN_UP_NS else 0
        return span if span > self.duration_ns + late + _STANDING_NS else self.duration_ns

    @property
    def end_ns(self) -> int:
        """End of the flow's traffic, in ns from the start of the run."""
        return self.start_ns + self.warmup_ns + self.duration_ns


def flows(numbers: PointPlan, seed: int) -> list[Flow]:
    """Plan the flows of a point that still send after the warm-up.

    Raises `MeasureError` for traffic that agents cannot make, and if no flow is left.
    """
    run = numbers.run
    found = []
    for flow in numbers.flows:
        if flow.cells:
            raise MeasureError(
                f"traffic `{flow.name}` is `{flow.kind}`: it sends cells, but hosts cannot",
                "use `udp-stream` with a `rate` for interfering traffic",
            )
        begin = flow.start_ns
        most = run.most_ns
        end = min(most, flow.stop_ns if flow.stop_ns is not None else most)
        opened = max(begin, run.warmup_ns)
        if end <= opened:
            continue
        found.append(_flow(flow, begin, opened - begin, end - opened, seed, _interval(run, end - opened)))
    if not found:
        raise MeasureError(
            "no traffic is sent after the warm-up", "start it earlier, or increase the duration of the run"
        )
    return found


def _interval(run: RunPlan, duration: int) -> int:
    """Length in ns of the intervals of a time series: a tenth of the window, or shorter for a stop rule."""
    if run.precision is None:
        return min(_SECOND_NS, max(_LEAST_INTERVAL_NS, duration // 10))
    least = run.duration_ns - run.warmup_ns
    return min(_SECOND_NS, max(_LEAST_SAMPLE_NS, least // LEAST_SAMPLES))


def rule(numbers: PointPlan, planned: Sequence[Flow]) -> Rule | None:
    """The stop rule of a point, or `None`. It watches bytes at each receiver, or answers to requests."""
    asked = numbers.run.precision
    if asked is None:
        return None
    series = {}
    for flow in planned:
        told = flow.kind == "request-response"
        for host in (flow.sender,) if told else flow.receivers:
            series[flow.name, host] = Series(
                flow.receive.interval_ns or 0, flow.warmup_ns, "messages" if told else "bytes"
            )
    return Rule(asked, series)


def _flow(flow: FlowPlan, start: int, warmup: int, duration: int, seed: int, interval: int) -> Flow:
    kind = flow.kind
    udp = kind in DATAGRAMS or flow.transport == "udp"
    live = flow.live or LivePlan(send_cores=[], receive_cores=[])
    common = Prepare(
        kind="udp-stream" if kind in DATAGRAMS else kind,
        message_bytes=flow.message_bytes or 0,
        warmup_ns=warmup,
        duration_ns=duration,
        interval_ns=interval,
        limits=Limits(duration_ns=warmup + duration + _BEYOND_NS),
        streams=flow.streams,
        transport=flow.transport,
        response_bytes=flow.response_bytes,
        mptcp=live.mptcp,
        segmentation=live.segmentation,
    )
    schedule = _schedule(flow, seed)
    to_send, to_receive = _sockets(flow, live, udp=udp)
    send = replace(
        common,
        schedule=schedule,
        pacing=live.pacing,
        burst_messages=live.burst_messages,
        method=live.method,
        cores=live.send_cores or None,
        socket=to_send,
    )
    receive = replace(
        common,
        # If the sender has a schedule, the receiver takes timestamps and reports the gaps between datagrams.
        gaps=True if schedule is not None and common.kind == "udp-stream" else None,
        truncate=live.truncate,
        cores=live.receive_cores or None,
        socket=to_receive,
    )
    return Flow(
        flow.name, kind, flow.from_, tuple(flow.to), start, warmup, duration, send, receive, flow.group,
        tuple(flow.paths),
    )  # fmt: skip


def _schedule(flow: FlowPlan, seed: int) -> Schedule | None:
    if flow.kind == "request-response":
        every = flow.every_ns
        if every is None:
            return None
        # Agents take the rate of the payload alone.
        rate = max(1, (flow.message_bytes or 0) * 8 * _SECOND_NS // every)
        return Schedule(kind="cbr", rate_bit_per_s=rate)
    if flow.rate_bit_per_s is None:
        return None
    steady = Schedule(kind="cbr", rate_bit_per_s=flow.rate_bit_per_s)
    if flow.kind == "poisson":
        return replace(steady, kind="poisson", seed=seed)
    if flow.kind == "udp-on-off":
        times = {"on_ns": flow.on_ns, "off_ns": flow.off_ns, "lengths": flow.lengths}
        return replace(steady, kind="on-off", seed=seed, **times)
    if flow.micro_frames_per_s is not None:
        return replace(
            steady,
            kind="video",
            micro_frames_per_s=flow.micro_frames_per_s,
            group_of_pictures=flow.group_of_pictures,
            intra_size_ppb=flow.intra_size_ppb,
        )
    return steady


def _sockets(flow: FlowPlan, live: LivePlan, *, udp: bool) -> list[Socket]:
    """The socket options of the sender and of the receiver."""
    both = Socket(
        dscp=live.dscp,
        dont_fragment=live.dont_fragment,
        ttl=flow.ttl if flow.ttl != 64 or flow.kind == "multicast" else None,
        priority=flow.priority or None,
    )
    if udp:
        return [
            replace(both, send_buffer_bytes=live.send_buffer_bytes),
            replace(both, receive_buffer_bytes=flow.receive_buffer_bytes),
        ]
    return [
        replace(
            both,
            mss_bytes=tcp.mss_bytes,
            send_buffer_bytes=tcp.send_buffer_bytes,
            receive_buffer_bytes=tcp.receive_buffer_bytes,
            nodelay=tcp.nodelay,
            congestion=tcp.congestion,
        )
        for tcp in flow.tcp or ()
    ]


def untold(numbers: PointPlan, engine: str) -> list[str]:
    """TCP keys of a testbed that this engine cannot set on a real host: a sentence for each end of a flow."""
    by_routes = {"path_mtu"} if engine == "emulate" else set()
    found: dict[str, None] = {}
    for flow in numbers.flows:
        for host, tcp in zip((flow.from_, *flow.to[:1]), flow.tcp or (), strict=False):
            keys = [key for key in tcp.untold if key not in by_routes]
            if keys:
                words = ", ".join(f"`{key}`" for key in keys)
                found[
                    f"TCP of host `{host}` is the kernel's: {words} of `tcp` cannot be set for a socket"
                ] = None
    return list(found)
