"""The types of requests to agents: generated from `crates/engpass-measured` by `make gen`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Engine: TypeAlias = Literal[
    "measure",
    "emulate",
]
"""An engine with real hosts."""

Lengths: TypeAlias = Literal[
    "fixed",
    "exponential",
]
"""Distribution of on-times and off-times."""


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The run for which requests are made."""

    engine: Engine
    """Engine of the run."""
    seed: int
    """Seed of the repeat."""
    slow: int
    """Factor of time dilation of an emulated network, at least 1; 1 for real time."""
    fixed: bool = False
    """True if a run lasts for `duration`, whatever its `precision`."""
    congestion: Congestion | None = None
    """Congestion controls of the machine that emulates the network; absent in `measure`."""


class Congestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Congestion controls of a kernel."""

    own: str
    """Default congestion control."""
    known: list[str]
    """Congestion controls that a socket may request."""


class FlowRequests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The requests of a flow."""

    name: str
    """Name of the traffic."""
    kind: str
    """Kind of traffic, as in the file."""
    sender: str
    """Name of the sending host."""
    receivers: list[str]
    """Names of the receiving hosts: one, or the members of a multicast group."""
    start_ns: int
    """Time from the start of the run to the start of the traffic, in nanoseconds."""
    warmup_ns: int
    """Warm-up of the flow, in nanoseconds."""
    duration_ns: int
    """Length of the measurement window, in nanoseconds."""
    send: Prepare
    """Request to the sender."""
    receive: Prepare
    """Request to each receiver."""
    group: str | None = None
    """IP address of the multicast group; absent without multicast."""


class Prepare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request to prepare one end of a flow. Absent fields have the agent's defaults."""

    kind: str
    """Kind of traffic of the agent: `tcp-stream`, `udp-stream` or `request-response`."""
    message_bytes: int
    """Payload of a message, in bytes."""
    warmup_ns: int | None = None
    """Warm-up, in nanoseconds."""
    duration_ns: int | None = None
    """Length of the measurement window, in nanoseconds."""
    interval_ns: int | None = None
    """Length of the intervals of the time series, in nanoseconds; 0 for no series."""
    limits: Limits | None = None
    """Limits that the agent enforces."""
    streams: int | None = None
    """Number of connections or sockets."""
    transport: str | None = None
    """Transport of requests: `tcp` or `udp`."""
    response_bytes: int | None = None
    """Payload of a response, in bytes."""
    bytes: int | None = None
    """Payload after which each connection or socket ends, in bytes; absent if only time ends it."""
    mptcp: bool | None = None
    """True if connections use MPTCP."""
    segmentation: bool | None = None
    """True if the kernel segments large writes into datagrams."""
    schedule: Schedule | None = None
    """Times at which messages are due; absent for as fast as possible."""
    gaps: bool | None = None
    """True if the receiver takes timestamps and reports the gaps between datagrams."""
    pacing: str | None = None
    """Method by which the sender waits for the next send time, such as `sleep`."""
    burst_messages: int | None = None
    """Number of messages that the sender sends at once."""
    method: str | None = None
    """System call or interface that hands messages to the kernel."""
    truncate: bool | None = None
    """True if the receiver discards payload in the kernel."""
    cores: list[int] | None = None
    """Indices of the cores to which the threads are bound."""
    socket: Socket | None = None
    """Socket options."""
    run: str | None = None
    """Token of the run, which both ends must know."""
    flow: str | None = None
    """Name of the flow."""
    side: str | None = None
    """Side of this end at the set-up of connections: `listen` or `connect`."""
    peers: list[str] | None = None
    """IP addresses that may connect."""
    to: list[str] | None = None
    """IP addresses and ports to which this end connects."""
    group: str | None = None
    """IP address and port of the multicast group."""
    interface: str | None = None
    """Name of the interface at which a receiver joins the group."""
    joined: bool | None = None
    """False if the receiver joins only on request."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits on a flow that an agent enforces."""

    duration_ns: int
    """Longest time that the flow may take, in nanoseconds."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The schedule by which a sender sends messages."""

    kind: str
    """`cbr`, `poisson`, `on-off` or `video`."""
    rate_bit_per_s: int
    """Payload rate of each stream in bit/s; for `on-off`, the rate within a burst."""
    seed: int | None = None
    """Seed of the random gaps, bursts and pauses."""
    on_ns: int | None = None
    """Mean length of a burst, in nanoseconds."""
    off_ns: int | None = None
    """Mean length of a pause, in nanoseconds."""
    lengths: Lengths | None = None
    """Distribution of the lengths of bursts and pauses."""
    micro_frames_per_s: int | None = None
    """Frame rate, in millionths of a frame per second."""
    group_of_pictures: int | None = None
    """Number of frames in a group of pictures."""
    intra_size_ppb: int | None = None
    """Size of an intra frame as a share of another frame, in billionths."""


class Socket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Socket options. An absent option keeps the host's default."""

    dscp: int | None = None
    """Differentiated services code point of the packets (RFC 2474)."""
    dont_fragment: bool | None = None
    """True if routers must not fragment packets."""
    ttl: int | None = None
    """Time to live of the packets, in hops."""
    priority: int | None = None
    """Priority class of the packets (`SO_PRIORITY`)."""
    mss_bytes: int | None = None
    """Maximum segment size of TCP, in bytes."""
    send_buffer_bytes: int | None = None
    """Size of the send buffer, in bytes."""
    receive_buffer_bytes: int | None = None
    """Size of the receive buffer, in bytes."""
    nodelay: bool | None = None
    """True if Nagle's algorithm is off."""
    congestion: str | None = None
    """Name of TCP's congestion control."""


class StopRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rule by which a run may end before its time: the mean of every series is precise enough."""

    asked: float
    """Largest half width of the confidence interval, as a share of the mean."""
    series: list[Series]
    """Series whose means must be precise enough."""


class Series(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A series of samples, one for each interval that an agent reports."""

    flow: str
    """Name of the traffic."""
    host: str
    """Name of the host that reports."""
    interval_ns: int
    """Length of an interval, in nanoseconds."""
    warmup_ns: int
    """Warm-up in nanoseconds; its intervals are no samples."""
    of: str
    """Unit of a sample: `bytes` or `messages`."""
    bits: int
    """Bits of payload for each byte or message."""


class Requests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The requests of a point."""

    flows: list[FlowRequests]
    """Flows that still send after the warm-up."""
    notes: list[str]
    """Deviations of real hosts from the file, as sentences."""
    stop: StopRule | None = None
    """Rule by which the run may end before its time; absent without `precision`."""
