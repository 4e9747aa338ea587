"""The steps of RFC 6349 between two hosts: path MTU, baseline round trip, bottleneck bandwidth, TCP."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from functools import cache

import msgspec
from msgspec.structs import replace

from engpass import _engpass
from engpass.campaign import ENGINES, MODEL, Plan, choose
from engpass.error import nearest
from engpass.jsondata import Json
from engpass.measure import MeasureError, Session
from engpass.measure.answers import End, TcpEdges, TcpInfo, end_of
from engpass.memory import MOST, need
from engpass.path.dilation import scaled_back, slowed
from engpass.path.metrics import (
    FRACTIONS,
    TCP_IP_BYTES,
    TIMESTAMPS_BYTES,
    efficiency,
    expected_bit_per_s,
    ideal_bit_per_s,
    metrics,
    product_bytes,
)
from engpass.path.mtu import BASE, largest, patient
from engpass.plan import point_plan
from engpass.results.path import PathFound, Transfer
from engpass.search.trial import SearchError
from engpass.search.trial_runner import check_slow, session_of
from engpass.store import Finished, RunRecord, Store, new_record
from engpass.testbed import Testbed
from engpass.types.agent import FlowRequests, Limits, Prepare, Schedule, Socket
from engpass.types.plan import FlowPlan, PointPlan

METHOD = "rfc6349"

ENGINES_OF_PATHS = tuple(engine for engine in ENGINES if engine not in MODEL)

_UDP_IP_BYTES = 28
_NS = 1_000_000_000
_PROBES = 5
_PROBE_GAPS_NS = (10_000_000, 100_000_000, 600_000_000)
"""Nanoseconds between probes; longer gaps are tried until a probe arrives. A path may take seconds, and the
receiver listens as long as probes are sent."""

_TOO_LONG = "does not fit the path"
"""Part of the agent's error for a datagram that is longer than the path MTU."""
CONFORMING_SECONDS = 30.0
"""The RFC wants transfers of more seconds than this, which exercise the buffers of the path (section 5)."""

CONNECTIONS_AT_MOST = 128
"""Maximum number of connections that an agent opens for one flow."""

_AS_GOOD_AS_CAN_BE = 0.995
"""A transfer time ratio from this on rounds to 1."""

_SLOWEST = 12
"""A transfer is ended after this many times its planned duration."""


class Asked(msgspec.Struct, frozen=True):
    """The settings of a path measurement."""

    seconds: float = 5.0
    """Seconds that the transfer with each window takes, if it reaches the expected rate."""
    rtt_seconds: float = 2.0
    bandwidth: int | None = None
    """Known bottleneck bandwidth for IP packets in bit/s (section 3.2.2 allows one); `None` measures it."""
    fractions: tuple[float, ...] = FRACTIONS
    connections: int = 1
    """Parallel connections that share each window (section 5.1), for hosts whose windows are too small."""
    slow: int = 1
    """Factor of time dilation of an emulated network; results are in the time of that network."""

    def to_json(self) -> dict[str, Json]:
        """The settings as JSON data."""
        own: dict[str, Json] = {} if self.slow == 1 else {"slow": self.slow}
        return own | {
            "seconds": self.seconds,
            "rtt_seconds": self.rtt_seconds,
            "bandwidth_bit_per_s": self.bandwidth,
            "fractions": list(self.fractions),
            "connections": self.connections,
        }

    def departures(self) -> list[str]:
        """A sentence for each departure of these settings from the RFC."""
        if self.seconds > CONFORMING_SECONDS:
            return []
        least = f"{CONFORMING_SECONDS:g} s, which exercise the buffers on the path (RFC 6349 section 5)"
        return [f"transfers take {self.seconds:g} s instead of more than {least}"]


Watch = Callable[[str, dict[str, Json]], None]
"""Called after each step with the name of the step and its results."""


def run_path(
    testbed: Testbed,
    store: Store,
    asked: Asked,
    *,
    traffic: str | None = None,
    engine: str = "measure",
    variant: str | None = None,
    watch: Watch | None = None,
    max_memory: int | None = MOST,
) -> RunRecord:
    """Measure the path of a traffic table, store every step, and return the stored record.

    Without `traffic` it is the path of the first TCP stream, else of the first traffic. The hosts are those
    of `measure`, or those of a network that `emulate` carries.

    Raises `SearchError`, `ChoiceError`, the errors of `measure`, and `NeedsMemoryError` if more than
    `max_memory` bytes are needed.
    """
    from engpass.environment import environment

    (variant,) = choose("variant", [variant or testbed.variants[0]], testbed.variants)
    (engine,) = choose("engine with real stacks", [engine], ENGINES_OF_PATHS)
    check_slow(engine, asked.slow)
    need(testbed.campaign, [engine], [variant]).check(max_memory)
    numbers = point_plan(testbed.campaign, variant, [])
    flow = _flow_of(numbers, traffic)
    record = new_record(
        testbed,
        Plan((engine,), (variant,), (), 1),
        environment(1, "path"),
        method=METHOD,
        traffic=flow.name,
        settings=asked.to_json() | {"from": flow.from_, "to": flow.to[0]},
    )
    run_id, started = store.begin(record, fresh=True)
    with session_of(
        engine, testbed.campaign, testbed.source, testbed.overrides, lambda: False, asked.slow
    ) as session:
        path = _Path(session, variant, numbers, flow, asked)
        steps = _Steps(store, run_id, started, watch)
        try:
            result = path.measure(steps)
        except _engpass.Interrupted:
            raise KeyboardInterrupt from None
    store.end(started, msgspec.to_builtins(result))
    return store.run(run_id, any_method=True)


def _flow_of(numbers: PointPlan, traffic: str | None) -> FlowPlan:
    flows = {flow.name: flow for flow in numbers.flows if not flow.cells}
    if not flows:
        raise SearchError(
            "the testbed has no traffic between hosts",
            "add traffic: its end hosts define the path to measure",
        )
    if traffic is None:
        streams = [flow for flow in flows.values() if flow.kind == "tcp-stream"]
        return (streams or list(flows.values()))[0]
    if traffic not in flows:
        raise SearchError(f"unknown traffic `{traffic}`", nearest(traffic, flows))
    return flows[traffic]


class _RoundTrip(msgspec.Struct, frozen=True):
    """The baseline round trip time in seconds: minimum, median and 99th percentile."""

    rtt_s: float
    rtt_p50_s: float
    rtt_p99_s: float
    answers: int


class _Steps:
    """Stores the results of each step, and how long it took."""

    def __init__(self, store: Store, run_id: str, session: int, watch: Watch | None) -> None:
        self._store, self._run_id, self._session, self._watch = store, run_id, session, watch
        self._begin, self._position = time.perf_counter(), 0

    def done(self, step: str, found: dict[str, Json]) -> None:
        seconds = time.perf_counter() - self._begin
        told = json.dumps({"step": step, **found}, ensure_ascii=False)
        self._store.write(self._run_id, self._session, [Finished(self._position, seconds, None, None, told)])
        self._begin, self._position = time.perf_counter(), self._position + 1
        if self._watch is not None:
            self._watch(step, found)


class _Path:
    """Measures the path between the two ends of a flow."""

    def __init__(
        self,
        session: Session,
        variant: str,
        numbers: PointPlan,
        flow: FlowPlan,
        asked: Asked,
    ) -> None:
        self._session, self._variant, self._numbers = session, variant, numbers
        self._flow, self._asked = flow, asked
        self._sender, self._receiver = flow.from_, flow.to[0]
        self._path_mtu: int | None = None
        self.invalid = 0
        """Number of runs in which an emulated network was too late."""

    def measure(self, steps: _Steps) -> PathFound:
        """Make all steps in the order of the RFC and return the results."""
        mtu = self._mtu()
        steps.done("path MTU", {"section": "3.1", "mtu_bytes": mtu, "kernel_bytes": self._path_mtu})
        rtt = self._round_trip(mtu)
        steps.done("baseline round trip", {"section": "3.2.1", **msgspec.to_builtins(rtt)})
        rate = self._bandwidth(mtu, steps)
        baseline = rtt.rtt_s
        ideal = ideal_bit_per_s(rate, mtu)
        product = product_bytes(rate, baseline)
        transfers: list[Transfer] = []
        for fraction in self._asked.fractions:
            window = self._window(fraction, product, mtu)
            if any(one.window_bytes == window for one in transfers):
                # A window has at least two segments per connection, so small fractions give equal windows.
                continue
            found = self._transfer(fraction, window, mtu, ideal, baseline)
            steps.done("TCP", {"section": "3.3", **msgspec.to_builtins(found)})
            transfers.append(found)
        known = self._asked.bandwidth is not None
        return PathFound(
            mtu_bytes=mtu,
            rtt_s=baseline,
            rtt_p50_s=rtt.rtt_p50_s,
            bandwidth_bit_per_s=rate,
            bandwidth_known=known,
            bdp_bytes=product,
            ideal_bit_per_s=ideal,
            transfers=transfers,
            connections=self._asked.connections,
            invalid_runs=self.invalid,
            departures=self._asked.departures(),
            notes=[
                *self._session.notes(self._numbers),
                *faster_than_ideal([one.transfer_time_ratio for one in transfers], known=known),
            ],
        )

    def _run(self, seconds: float, send: Prepare, receive: Prepare) -> tuple[End, End]:
        """Run one flow over the path; returns the results of sender and receiver, in the network's time."""
        slow = self._asked.slow
        duration = round(seconds * _NS) * slow
        limits = Limits(duration_ns=duration + 10 * _NS * slow)
        send, receive = (
            replace(slowed(end, slow), warmup_ns=0, duration_ns=duration, limits=limits)
            for end in (send, receive)
        )
        flow = FlowRequests(
            name="path",
            kind=send.kind,
            sender=self._sender,
            receivers=[self._receiver],
            start_ns=0,
            warmup_ns=0,
            duration_ns=duration,
            send=send,
            receive=receive,
        )
        collected = self._session.collect(self._variant, self._numbers, [flow])
        self.invalid += not collected.valid
        results = collected.results
        return (
            scaled_back(end_of(results[self._sender], "path", "send"), slow),
            scaled_back(end_of(results[self._receiver], "path", "receive"), slow),
        )

    # Section 3.1

    def _mtu(self) -> int:
        passes = cache(patient(self._arrives, _PROBE_GAPS_NS))
        # The first probe also yields the kernel's path MTU.
        passes(BASE)
        found = largest(passes, max(self._interface_mtu(), BASE), self._path_mtu)
        if found is None:
            raise SearchError(
                f"no datagram of `{self._sender}` reaches `{self._receiver}`",
                "check the links between them, and firewalls",
            )
        return found

    def _interface_mtu(self) -> int:
        """The largest MTU of the sender's interfaces in bytes, above which packets are fragmented."""
        addresses = self._session.hello(self._sender).addresses
        outward = [one for one in addresses if one.interface != "lo"] or addresses
        return max((one.mtu or 0 for one in outward), default=0) or (self._path_mtu or BASE)

    def _arrives(self, size: int, gap_ns: int) -> bool:
        """Send packets of this size, which routers must not fragment; true if any arrives."""
        message = size - _UDP_IP_BYTES
        receive = Prepare(kind="udp-stream", message_bytes=message, interval_ns=0)
        schedule = Schedule(kind="cbr", rate_bit_per_s=message * 8 * _NS // gap_ns)
        send = replace(receive, schedule=schedule, socket=Socket(dont_fragment=True))
        try:
            sender, receiver = self._run(_PROBES * gap_ns / _NS, send, receive)
        except MeasureError as error:
            if _TOO_LONG in error.message:
                return False
            raise
        for stream in sender.streams:
            self._path_mtu = stream.granted.path_mtu_bytes or self._path_mtu
        return receiver.sequence is not None and receiver.sequence.received > 0

    # Section 3.2

    def _round_trip(self, mtu: int) -> _RoundTrip:
        """Measure the round trip time of the empty path, with full packets and short responses, as in TCP."""
        message = mtu - _UDP_IP_BYTES
        rate = message * 8 * _NS // _PROBE_GAPS_NS[0]
        both = Prepare(
            kind="request-response",
            message_bytes=message,
            transport="udp",
            response_bytes=64,
            interval_ns=0,
        )
        send = replace(both, schedule=Schedule(kind="cbr", rate_bit_per_s=rate))
        asker, _ = self._run(self._asked.rtt_seconds, send, both)
        latency = asker.latency
        if not latency.count:
            raise SearchError("no request was answered", "check the return path")
        last = latency.max_ns if latency.p99_ns is None else latency.p99_ns
        return _RoundTrip(
            (latency.min_ns or 0) / _NS, (latency.p50_ns or 0) / _NS, (last or 0) / _NS, latency.count
        )

    def _bandwidth(self, mtu: int, steps: _Steps) -> float:
        """Bandwidth for IP packets in bit/s: the given one, or the rate at which full packets arrive."""
        step, section = "bottleneck bandwidth", {"section": "3.2.2"}
        if self._asked.bandwidth is not None:
            rate = float(self._asked.bandwidth)
            steps.done(step, {**section, "bandwidth_bit_per_s": rate, "known": True})
            return rate
        message = mtu - _UDP_IP_BYTES
        both = Prepare(kind="udp-stream", message_bytes=message, interval_ns=0)
        sender, receiver = self._run(self._asked.rtt_seconds, both, both)
        received = 0 if receiver.sequence is None else receiver.sequence.received
        elapsed = receiver.elapsed_ns
        if received < 2 or not elapsed:
            raise SearchError("no datagram arrived", "check the path")
        # The time from the first to the last arrival has one gap fewer than there are datagrams.
        rate = (received - 1) * mtu * 8 * _NS / elapsed
        found = {
            "bandwidth_bit_per_s": rate,
            "sent": sender.messages,
            "received": received,
            "loss": 1.0 - received / max(1, sender.messages),
        }
        steps.done(step, {**section, **found})
        return rate

    # Section 3.3

    def _transfer(self, fraction: float, window: int, mtu: int, ideal: float, baseline: float) -> Transfer:
        connections = self._asked.connections
        expected = expected_bit_per_s(window, baseline, ideal)
        size = max(100 * _segment(mtu), int(expected * self._asked.seconds / 8 / connections))
        socket = self._socket()
        both = Prepare(kind="tcp-stream", message_bytes=min(65_536, size), streams=connections)
        send = replace(both, bytes=size, interval_ns=50_000_000, socket=socket)
        # Linux doubles SO_RCVBUF and keeps a half for bookkeeping (`man 7 socket`): the value is the window.
        socket = replace(socket, receive_buffer_bytes=window // connections)
        receive = replace(both, interval_ns=0, socket=socket)
        sender, receiver = self._run(self._asked.seconds * _SLOWEST, send, receive)
        seconds = receiver.elapsed_ns / _NS
        carried = receiver.bytes
        if not seconds or not carried:
            raise SearchError("no byte of a transfer arrived", "check the path")
        infos = [stream.tcp or TcpEdges() for stream in sender.streams]
        last = [info.end or info.close or TcpInfo() for info in infos]
        windows = [info.close.snd_wnd for info in infos if info.close and info.close.snd_wnd is not None]
        sent = [info.bytes_sent or 0 for info in last]
        again = [info.bytes_retrans or 0 for info in last]
        trips = [record.tcp.rtt_ns for record in sender.series if record.tcp]
        rtt = sum(trips) / len(trips) / _NS if trips else None
        found = metrics(
            seconds=seconds,
            payload=carried,
            ideal=ideal,
            sent=sum(sent) or carried,
            retransmitted=sum(again),
            rtt=rtt,
            baseline=baseline,
        )
        return Transfer(
            fraction=fraction,
            window_bytes=window,
            granted_bytes=sum(windows) if windows and len(windows) == len(infos) else None,
            bytes=carried,
            seconds=seconds,
            finished=sender.ended == "bytes",
            expected_bit_per_s=expected,
            achieved_bit_per_s=carried * 8 / seconds,
            rtt_s=rtt,
            efficiencies=[efficiency(*one) for one in zip(sent, again, strict=True) if one[0]],
            **msgspec.to_builtins(found),
        )

    def _window(self, fraction: float, product: float, mtu: int) -> int:
        """The window of all connections together, as a fraction of the bandwidth-delay product.

        Each connection has at least two segments: with less, TCP waits for delayed acknowledgments.
        """
        connections = self._asked.connections
        return connections * max(2 * _segment(mtu), math.ceil(product * fraction / connections))

    def _socket(self) -> Socket:
        """The TCP options of the traffic, without its buffers, which this measurement varies."""
        tcp = self._flow.tcp
        if self._flow.kind != "tcp-stream" or tcp is None:
            return Socket()
        return Socket(congestion=tcp.congestion, mss_bytes=tcp.mss_bytes, nodelay=tcp.nodelay)


def faster_than_ideal(ratios: Sequence[float], *, known: bool) -> list[str]:
    """A note if a transfer took less than the ideal time; `known` if the user gave the bandwidth."""
    least = min(ratios, default=1.0)
    if least >= _AS_GOOD_AS_CAN_BE:
        return []
    more = f"a transfer time ratio of {least:.2f}: TCP got {1 / least - 1:.1%} more than its ideal throughput"
    if known:
        return [f"{more}, so the path carries more than the given `--bandwidth`"]
    why = (
        "the time starts with the first arriving bytes, and a token bucket passes a burst of them at once;"
        " or other traffic used a part of the path while its bandwidth was measured"
    )
    return [f"{more}: {why}"]


def _segment(mtu: int) -> int:
    return mtu - TCP_IP_BYTES - TIMESTAMPS_BYTES
