"""Fields of requests to agents (docs/agent.md)."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits on a flow that agents enforce."""

    duration_ns: int


class Schedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The schedule by which a sender sends messages."""

    kind: str
    """`cbr`, `poisson`, `on-off` or `video`."""
    rate_bit_per_s: int
    """Payload rate of each stream."""
    seed: int | None = None
    on_ns: int | None = None
    off_ns: int | None = None
    lengths: str | None = None
    micro_frames_per_s: int | None = None
    group_of_pictures: int | None = None
    intra_size_ppb: int | None = None


class Socket(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Socket options; the host's defaults apply to those that are `None`."""

    dscp: int | None = None
    dont_fragment: bool | None = None
    ttl: int | None = None
    priority: int | None = None
    mss_bytes: int | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    nodelay: bool | None = None
    congestion: str | None = None


class Prepare(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to prepare one end of a flow. The fields from `run` on are about run, peers and addresses."""

    kind: str
    message_bytes: int
    warmup_ns: int | None = None
    duration_ns: int | None = None
    interval_ns: int | None = None
    limits: Limits | None = None
    streams: int | None = None
    transport: str | None = None
    response_bytes: int | None = None
    bytes: int | None = None
    mptcp: bool | None = None
    segmentation: bool | None = None
    schedule: Schedule | None = None
    gaps: bool | None = None
    pacing: str | None = None
    burst_messages: int | None = None
    method: str | None = None
    truncate: bool | None = None
    cores: list[int] | None = None
    socket: Socket | None = None
    run: str | None = None
    flow: str | None = None
    side: str | None = None
    peers: list[str] | None = None
    to: list[str] | None = None
    group: str | None = None
    interface: str | None = None
    joined: bool | None = None


class About(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Any other request: the run that it concerns, and the flow if it concerns only one."""

    run: str
    flow: str | None = None
    after_ns: int | None = None
    """Of `start`: delay in ns until the senders begin."""
