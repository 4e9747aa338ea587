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
    """What the requests are for."""

    engine: Engine
    """What lies between the hosts."""
    seed: int
    """Seed of the repeat."""
    slow: int
    """Factor of time dilation of an emulated network, at least 1; 1 for real time."""
    fixed: bool = False
    """True if a run lasts for `duration`, whatever its `precision`."""
    congestion: Congestion | None = None
    """Congestion controls of the machine that emulates."""


class Congestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Congestion controls of a kernel."""

    own: str
    """The default one."""
    known: list[str]
    """Those that a socket may request."""


class FlowRequests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The requests of a flow."""

    name: str
    """Name of the traffic."""
    kind: str
    """Kind of traffic."""
    sender: str
    """Sending host."""
    receivers: list[str]
    """Receiving hosts."""
    start_ns: int
    """Start of the traffic after that of the run."""
    warmup_ns: int
    """Warm-up of the flow."""
    duration_ns: int
    """Length of the measurement window."""
    send: Prepare
    """Request to the sender."""
    receive: Prepare
    """Request to each receiver."""
    group: str | None = None
    """Address of a multicast group."""


class Prepare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A request to prepare one end of a flow. The controller adds run, peers and addresses."""

    kind: str
    """Kind of traffic of the agent: `tcp-stream`, `udp-stream` or `request-response`."""
    message_bytes: int
    """Payload of a message."""
    warmup_ns: int | None = None
    """Warm-up."""
    duration_ns: int | None = None
    """Length of the measurement window."""
    interval_ns: int | None = None
    """Length of the intervals of the time series; 0 for none."""
    limits: Limits | None = None
    """Limits that the agent enforces."""
    streams: int | None = None
    """Number of connections or sockets."""
    transport: str | None = None
    """Transport of requests: `tcp` or `udp`."""
    response_bytes: int | None = None
    """Payload of a response."""
    bytes: int | None = None
    """Payload of a transfer."""
    mptcp: bool | None = None
    """True for MPTCP."""
    segmentation: bool | None = None
    """True if the kernel segments large writes into datagrams."""
    schedule: Schedule | None = None
    """When messages are due."""
    gaps: bool | None = None
    """True if the receiver takes time stamps and reports gaps."""
    pacing: str | None = None
    """How the sender waits for the next send time."""
    burst_messages: int | None = None
    """Messages sent at a time."""
    method: str | None = None
    """System call or interface that hands messages to the kernel."""
    truncate: bool | None = None
    """True if the receiver discards payload in the kernel."""
    cores: list[int] | None = None
    """Cores of the threads."""
    socket: Socket | None = None
    """Socket options."""
    run: str | None = None
    """Token of the run."""
    flow: str | None = None
    """Name of the flow."""
    side: str | None = None
    """`listen` or `connect`."""
    peers: list[str] | None = None
    """Addresses that may connect."""
    to: list[str] | None = None
    """Addresses and ports to connect to."""
    group: str | None = None
    """Address and port of a multicast group."""
    interface: str | None = None
    """Interface at which a receiver joins the group."""
    joined: bool | None = None
    """False if the receiver joins only on request."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits on a flow that an agent enforces."""

    duration_ns: int
    """Longest time that the flow may take."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The schedule by which a sender sends messages."""

    kind: str
    """`cbr`, `poisson`, `on-off` or `video`."""
    rate_bit_per_s: int
    """Payload rate of each stream; of `on-off`, while it is on."""
    seed: int | None = None
    """Seed of random gaps or times."""
    on_ns: int | None = None
    """Mean length of a burst."""
    off_ns: int | None = None
    """Mean length of a pause."""
    lengths: Lengths | None = None
    """Distribution of the lengths of bursts and pauses."""
    micro_frames_per_s: int | None = None
    """Frame rate, in millionths of a frame per second."""
    group_of_pictures: int | None = None
    """Frames in a group of pictures."""
    intra_size_ppb: int | None = None
    """Size of an intra frame in 10^-9 of any other frame."""


class Socket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Socket options; the host's defaults apply to those that are absent."""

    dscp: int | None = None
    """Differentiated services code point."""
    dont_fragment: bool | None = None
    """True if routers must not fragment packets."""
    ttl: int | None = None
    """Time to live of the packets."""
    priority: int | None = None
    """Priority class of the packets."""
    mss_bytes: int | None = None
    """Maximum segment size."""
    send_buffer_bytes: int | None = None
    """Send buffer."""
    receive_buffer_bytes: int | None = None
    """Receive buffer."""
    nodelay: bool | None = None
    """True if Nagle's algorithm is off."""
    congestion: str | None = None
    """Congestion control."""


class StopRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a run may end before its time: when the mean of every series is precise enough."""

    asked: float
    """Wanted half width of the confidence interval, as a share of the mean."""
    series: list[Series]
    """The series to watch."""


class Series(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A series of samples, one for each interval that an agent reports."""

    flow: str
    """Name of the traffic."""
    host: str
    """Host that reports."""
    interval_ns: int
    """Length of an interval."""
    warmup_ns: int
    """Warm-up, whose intervals do not count."""
    of: str
    """What a sample counts: `bytes` or `messages`."""
    bits: int
    """Bits of payload for each byte or message."""


class Requests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The requests of a point."""

    flows: list[FlowRequests]
    """Flows that still send after the warm-up."""
    notes: list[str]
    """Deviations from the file, as sentences."""
    stop: StopRule | None = None
    """When the run may end before its time."""
