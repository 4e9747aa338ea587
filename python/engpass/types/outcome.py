"""The types of outcomes: generated from `crates/engpass-outcome` by `make gen`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

VERSION = 3
"""The version of this format."""

BottleneckKind: TypeAlias = Literal[
    "link",
    "shaper",
    "policer",
    "token-bucket",
    "buffer",
    "tunnel",
    "time-to-live",
    "router",
    "sending-path",
    "sending-memory",
    "sending-bus",
    "sending-host",
    "receiving-path",
    "receiving-memory",
    "receiving-bus",
    "receiving-host",
    "socket-buffers",
    "application",
    "acknowledgements",
    "round-trip",
    "sender",
    "large-packets",
    "receive-window",
    "send-buffer",
    "retransmission-timer",
    "congestion-window",
    "loss-on-the-way",
    "loss-of-fragments",
    "receiver-socket-buffer",
    "receiver-backlog",
    "other-load",
    "hypervisor",
    "unknown",
]
"""Kind of a bottleneck."""

SetBy: TypeAlias = Literal[
    "receive-buffer",
    "window-field",
    "send-buffer",
]
"""The setting that determines the size of a window."""

Engine: TypeAlias = Literal[
    "limit",
    "simulate",
    "emulate",
    "measure",
]
"""An engine."""


class Results(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part of an outcome that `limit` and `simulate` compute."""

    flows: dict[str, FlowOutcome]
    """Flows by the name of their traffic table, in the order of the file."""
    links: dict[str, LinkOutcome]
    """Links by name, in the order of the file."""
    nodes: dict[str, NodeOutcome] = {}
    """Nodes whose engines take time, by name: hosts with CPU costs and routers with a processing time, in
    the order of the file."""
    drops: list[Drop] = []
    """Losses by location, cause and flow."""
    events: int | None = None
    """Number of events that the simulation processed."""


class FlowOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of a flow."""

    kind: str
    """Kind of traffic, as in the file."""
    paths: list[Path] = []
    """Paths of its packets; for a multicast group, one per member. If routers choose among equal-cost
    paths there may be several. They are ordered by falling share; at most 64 are listed, so their shares
    may add up to less than 1."""
    goodput_bit_per_s: float
    """Payload received, in bit/s. With `limit`: the max-min fair share."""
    offered_bit_per_s: float
    """Payload sent, in bit/s. With `limit`: equal to the goodput."""
    datagrams: Datagrams | None = None
    """Counts of datagrams, TCP segments or generator cells, if the engine counts them."""
    efci_pdus: int | None = None
    """PDUs (for a generator: cells) that arrived complete, with the EFCI mark in the last cell."""
    delay_s: Delays | None = None
    """One-way delays; absent for a generator."""
    tcp: Tcp | None = None
    """TCP counters and times."""
    transfer: Transfer | None = None
    """The transfer of a flow with a `count`, as its receiver measures it; of a whole run, the warm-up
    included."""
    outage: Outage | None = None
    """Effect of link outages on the flow; only if the file has events."""
    receivers: dict[str, Receiver] = {}
    """Members of a multicast group by host, in the order of the file. The flow's own figures are those of
    the member with the lowest goodput."""
    bottleneck: Bottleneck | None = None
    """The tightest bottleneck of the flow."""
    next_bottleneck: Bottleneck | None = None
    """The bottleneck after the first one is removed."""
    summary: str | None = None
    """The bottleneck, its reason and the next one, as a sentence."""
    limit: FlowLimit | None = None
    """Further results of `limit`."""
    real: RealFlow | None = None
    """Further results of real hosts."""


class Path(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A path of a flow's packets."""

    share: float
    """Share of the flow's packets on this path while all links are up, 0 to 1. In a multicast group,
    every member's path has share 1. If a router chooses by a hash, it is the share of the flow's
    connections. If lengths vary as well, half of the packets count as fragments, whose ports the hash
    does not see."""
    steps: list[Step]
    """Links from the sender to the receiver."""


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A link of a path, in the direction of travel."""

    link: str
    """Name of the link."""
    from_: str = msgspec.field(name="from")
    """Sending node."""
    to: str
    """Receiving node."""


class Datagrams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Counts of datagrams, TCP segments or generator cells."""

    sent: int
    """Number sent."""
    received: int
    """Number received complete."""
    lost: int
    """Number lost, completely or in part."""
    in_flight: int | None = None
    """Number sent, but neither received nor lost at the end of the run."""
    duplicate: int | None = None
    """Number received more than once."""
    reordered: int | None = None
    """Number received after one that was sent later."""


class Delays(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One-way delays from application to application, by what they include."""

    network: Quantiles
    """One-way delay from the sending to the receiving application, of datagrams or TCP segments that
    arrive. Every transmission of a segment counts separately."""
    queueing: Quantiles | None = None
    """Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines.
    Absent if packets of one datagram took different paths. Minimum, mean and maximum are exact. The
    percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram."""
    message: Quantiles | None = None
    """Time from the first transmission of a datagram or TCP segment until its receiving application can
    read all of it. It includes the waits for retransmissions and, with TCP, for earlier data. Every
    segment counts once."""


class Quantiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Minimum, mean, quantiles and maximum of times, in seconds. Minimum, mean and maximum are exact; the
    quantiles are within 1.6 %."""

    min: float
    """Minimum."""
    mean: float | None = None
    """Mean. Absent in results of earlier versions."""
    p50: float
    """Median."""
    p90: float
    """90th percentile."""
    p99: float
    """99th percentile."""
    p99_9: float
    """99.9th percentile."""
    max: float
    """Maximum."""


class Tcp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Counters and times of the senders of a TCP flow."""

    retransmitted_segments: int | None = None
    """Retransmitted segments."""
    timeouts: int | None = None
    """Number of expiries of the retransmission timer."""
    fast_retransmits: int | None = None
    """Number of entries into fast recovery."""
    smoothed_rtt_s: float | None = None
    """Smoothed round-trip time of the first connection at the end, in seconds."""
    min_rtt_s: float | None = None
    """Minimum round-trip time of the first connection, as its kernel measured it, in seconds."""
    rtt_s: Quantiles | None = None
    """Round-trip times as the senders measured them, in seconds."""
    timeout_share: float | None = None
    """Fraction of the busy time in which the sender waited for its retransmission timer."""
    receive_window_limited_share: float | None = None
    """Fraction of the busy time in which the receive window limited the sender."""
    send_buffer_limited_share: float | None = None
    """Fraction of the busy time in which the send buffer limited the sender."""


class Transfer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A transfer of a given number of messages, by the clock of its receiver."""

    received_bytes: int
    """Payload of messages received."""
    duration_s: float | None = None
    """Time from the first to the last byte of payload; with sentinels, from the first of them that
    arrives to the next one. Absent if the transfer did not end in the run, or took no time."""
    goodput_bit_per_s: float | None = None
    """Payload received, per second of this time."""


class Outage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Effect of link outages on a flow."""

    longest_s: float
    """Longest time without a received datagram, in seconds, between the first one and the end of the run,
    of the flow's traffic, or of a transfer that has arrived whole."""
    lost: int
    """Datagrams lost on links that were down, or in queues in front of them."""


class Receiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A member of a multicast group."""

    goodput_bit_per_s: float
    """Payload received, in bit/s."""
    offered_bit_per_s: float
    """Payload sent, in bit/s; of a receiver that joins and leaves, while it was a member."""
    datagrams: Datagrams | None = None
    """Counts of datagrams, if the engine counts them."""
    delay_s: Delays | None = None
    """One-way delays."""
    outage: Outage | None = None
    """Effect of link outages on this member; only if the file has events."""
    bottleneck: Bottleneck | None = None
    """The tightest bottleneck on the path to this member."""
    next_bottleneck: Bottleneck | None = None
    """The bottleneck after the first one is removed."""
    summary: str | None = None
    """The bottleneck, its reason and the next one, as a sentence."""
    limit: FlowLimit | None = None
    """Further results of `limit`."""
    gap_s: Gaps | None = None
    """Gaps between datagrams."""
    max_datagrams_per_ms: int | None = None
    """Maximum number of datagrams received within a millisecond."""
    member_share: float | None = None
    """Share of the measurement window in which it was a member; only if it joins or leaves by an event."""
    join_delay_s: float | None = None
    """Time from joining the group to the first datagram (RFC 3918 section 5), in seconds; the longest of
    several."""
    leave_delay_s: float | None = None
    """Time from leaving the group to the last datagram, in seconds; the longest of several."""
    join_unknown: str | None = None
    """Reason why the join delay is unknown."""
    leave_unknown: str | None = None
    """Reason why the leave delay is unknown."""


class Bottleneck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A bottleneck of a flow."""

    kind: BottleneckKind
    """Kind of the bottleneck."""
    name: str | None = None
    """Name of the link, circuit, host, router or traffic; absent if the bottleneck has no name in the
    file."""
    title: str
    """Title of the bottleneck for tables and sentences, such as "link `receiver`"."""


class FlowLimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bound, window, waterfall and candidates of a flow."""

    bound: Bound | None = None
    """Upper bound of the goodput; absent in outcomes of format version 1."""
    window: WindowLimit | None = None
    """Window of each connection; only for `tcp-stream`."""
    idle_delay_s: float | None = None
    """One-way delay of a message, or of a full TCP segment, in an idle network, in seconds; the minimum
    over all paths. Absent for generators."""
    ignored_events: list[str] = []
    """Names of events that the fair share ignores. The fair share applies to the time before the first of
    them, when all links are up. The bound holds despite them."""
    stages: list[Stage]
    """The waterfall: from the line rate of the tightest link to the goodput, with the rate after each
    step."""
    candidates: list[Candidate]
    """Everything that could limit the flow: links along its path, shaper, policer, token buckets,
    routers, hosts with their memory and buses, application, and for TCP the acknowledgements."""


class Bound(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Upper bound of the goodput of a flow."""

    bit_per_s: float
    """Goodput that neither `limit` nor `simulate` exceeds in the measurement window, except for the
    backlog at the end of the warm-up."""
    bottleneck: Bottleneck
    """Candidate with the smallest bound."""
    summary: str
    """The bound and its bottleneck, as a sentence."""


class WindowLimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The window of a TCP connection, given by its socket buffers, and the window that would fill the
    path."""

    bytes: int
    """Maximum payload in flight, in bytes."""
    set_by: SetBy
    """What determines this size."""
    round_trip_s: float
    """Minimum round-trip time of a full segment and its acknowledgement, hosts included, in seconds. If
    packets take several paths: by the longest forward path and the shortest return path, for the
    connection with the largest value."""
    bandwidth_delay_product_bytes: float
    """Line rate of the slowest line on the path times the round-trip time, in bytes."""
    filling_bytes: float
    """Payload in flight that fills this line, in bytes: the size that both socket buffers of each
    connection need."""


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of the waterfall from line rate to goodput."""

    name: str
    """Name of the loss or overhead that this step subtracts."""
    rate_bit_per_s: float
    """Rate after this step, in bit/s."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A possible bottleneck of a flow."""

    bottleneck: Bottleneck
    """The possible bottleneck."""
    goodput_bit_per_s: float
    """Goodput in bit/s if nothing else limited this flow and the other flows had their fair shares."""
    bound_bit_per_s: float | None = None
    """Bound in bit/s if nothing else limited this flow; absent if random traffic has no bound. If packets
    may take one of several parallel links, it is the joint bound of these links, given what can arrive at
    each."""


class Gaps(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Gaps between datagrams, in seconds."""

    mean: float | None = None
    """Mean."""
    sd: float | None = None
    """Standard deviation."""
    mad: float | None = None
    """Median absolute deviation."""
    p99: float | None = None
    """99th percentile."""
    p99_9: float | None = None
    """99.9th percentile."""


class RealFlow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Results of a flow between real hosts."""

    sender_cpu_s_per_gb: float | None = None
    """CPU seconds of the sending threads per GB of payload."""
    receiver_cpu_s_per_gb: float | None = None
    """CPU seconds of the receiving threads per GB of payload."""
    schedule_kept: float | None = None
    """Fraction of its schedule that the sender kept, 0 to 1."""
    gap_s: Gaps | None = None
    """Gaps between datagrams at the receiver."""
    max_datagrams_per_ms: int | None = None
    """Maximum number of datagrams received within a millisecond."""
    requests: Requests | None = None
    """Requests and responses; only for `request-response`."""
    pacing: GapDeviation | None = None
    """Regularity of a paced flow, and how much of its deviation the sender caused."""
    precision: Precision | None = None
    """Precision of the mean rate."""
    findings: list[Finding] = []
    """All observed limits of the flow, in order of falling weight."""
    ends: dict[str, Any] = {}
    """Reports of the agents by host. Kernel counters keep the kernel's names."""


class Requests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Requests and their responses."""

    per_s: float
    """Answered requests per second."""
    unanswered: int | None = None
    """Number of requests without a response."""
    latency_s: Latency | None = None
    """Time from a request to its response."""


class Latency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Times from requests to responses, in seconds."""

    min: float | None = None
    """Minimum."""
    mean: float | None = None
    """Mean."""
    p50: float | None = None
    """Median."""
    p90: float | None = None
    """90th percentile."""
    p99: float | None = None
    """99th percentile."""
    p99_9: float | None = None
    """99.9th percentile."""
    max: float | None = None
    """Maximum."""


class GapDeviation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Deviation of the gaps of a paced flow."""

    method: str | None = None
    """How the sender waits for the next send time."""
    scheduling_class: str | None = None
    """Scheduling class of the sending thread."""
    cpu_latency_held: bool | None = None
    """Whether the host kept its cores out of deep sleep states."""
    stalls: Any = None
    """Stalls of the sender by cause, as its agent reported them."""
    explained_share: float | None = None
    """Fraction of the variance of the gaps that the stalls explain."""
    summary: str | None = None
    """The explained share, as a sentence."""


class Precision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Precision of a mean rate."""

    asked: float
    """Requested half width of the confidence interval, as a fraction of the mean."""
    reached: bool
    """Whether the requested precision was reached."""
    confidence: float
    """Confidence, 0 to 1."""
    intervals: int
    """Number of intervals."""
    interval_s: float
    """Length of an interval in seconds."""
    mean_bit_per_s: float | None = None
    """Mean rate in bit/s."""
    half_width_bit_per_s: float | None = None
    """Half width of the confidence interval of the mean in bit/s."""
    share: float | None = None
    """Half width as a fraction of the mean; absent if the mean is zero."""
    effective_samples: float | None = None
    """Number of independent samples that are equivalent to the intervals."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A possible limit of a flow, as observed by its hosts."""

    bottleneck: Bottleneck
    """The possible bottleneck."""
    weight: float
    """How close it was to its limit, or the fraction of time in which it limited the sender: 0 to 1."""
    evidence: str
    """The observation."""


class LinkOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of a link."""

    directions: list[DirectionOutcome]
    """Its two directions. The first one starts at the first of the link's `ends`."""


class DirectionOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One direction of a link."""

    from_: str = msgspec.field(name="from")
    """Sending node."""
    to: str
    """Receiving node."""
    utilisation: float | None = None
    """Fraction of time in which the line was busy. With `limit`: the share of the line used if every flow
    sends at its limit."""
    cells: CellCounts | None = None
    """Cell counts, on ATM links."""
    frames: FrameCounts | None = None
    """Frame counts, on other links."""
    queue: QueueOutcome | None = None
    """The queue in front of the line; only from `simulate`, at switches and routers."""
    ledger: Ledger | None = None
    """Use of the line's bit-times by account."""
    line_rate_bit_per_s: float | None = None
    """Line rate in bit/s; only from `limit`."""
    shares: list[Share] = []
    """Shares of the line by flow, in the order of the file; only from `limit`."""


class CellCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Cells on one direction of an ATM link."""

    capacity: int
    """Number of cells that the line could have carried."""
    sent: int
    """Number of cells sent."""
    clp1: int
    """Number of cells sent with CLP = 1."""
    efci: int
    """Number of cells sent with the EFCI mark."""
    lost: int
    """Number of cells lost in the queue of the line or in the policer in front of it."""


class FrameCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Frames on one direction of an Ethernet or point-to-point link."""

    sent: int
    """Number of frames sent."""
    bytes: int
    """Bytes of these frames on the line, preamble and gap included."""
    lost: int
    """Number of frames lost in the queue of the line or corrupted on the line."""


class QueueOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The queue of an output port in the measurement window; see `docs/model.md`, "Longest queues". The
    two longest queues are exact, and may belong to different instants."""

    longest_bytes: int
    """Longest queue in bytes, as the limit of the queue counts them: of frames with their headers,
    without preamble and gap; of the SDUs of packets in front of a circuit; 53 for a cell."""
    longest_packets: int | None = None
    """Longest queue in packets; not for cells."""
    longest_cells: int | None = None
    """Longest queue in cells, the cell being sent included; only at ATM switches."""
    ecn_marked: int | None = None
    """Number of packets that the queue discipline marked CE; not for cells. Packets that came with the
    mark do not count."""


class Ledger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bit-times of a line by account; see `docs/ledger.md`."""

    units_per_bit: int
    """Number of units per bit, chosen such that a cell is a whole number of units."""
    capacity: int
    """Sum of all accounts in units."""
    accounts: dict[str, int]
    """Units by account. Empty accounts are omitted."""


class Share(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Share of a line that one flow uses."""

    flow: str
    """Name of the flow."""
    kind: str
    """Kind of traffic; `acknowledgements` for the acknowledgements of a `tcp-stream`."""
    share: float
    """Share of the line, 0 to 1."""


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of a host or router."""

    engines: dict[str, EngineOutcome]
    """Engines that process its packets, by name: `cpu` at a host, `forwarding` at a router."""


class EngineOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An engine that processes packets one after the other."""

    load: float
    """Share of the measurement window in which the engine was busy, 0 to 1. With `limit`: the share of
    its time that it works if every flow sends at its limit, without the time that a host's memory or I/O
    bus takes."""


class Drop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Losses of one flow at one location with one cause."""

    place: Place
    """Output port or node where the loss happened."""
    cause: str
    """Cause of the loss, such as `buffer full`."""
    flow: str
    """Name of the traffic."""
    cells: int
    """Number of lost cells, or of lost packets on other links. It includes those of datagrams that had
    already lost a cell or fragment."""
    datagrams: int
    """Number of datagrams (for generators: cells) that lost their first cell or fragment here."""


class Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A node, or an output port of a node."""

    node: str
    """Name of the node."""
    link: str | None = None
    """Link of the output port; absent for a loss inside the node. In outcomes of format version 1 also
    absent if it is not certain."""
    to: str | None = None
    """Node at the other end of the link."""
    card: str | None = None
    """Line card of a router, for a loss in front of its engine."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A run over time."""

    duration_s: float
    """Length of the run in seconds, the warm-up included."""
    flows: dict[str, FlowLine]
    """Flows by the name of their traffic table, in the order of the file. A multicast traffic with
    several receivers has the payload of the receiver that has least, and each of its receivers a line of
    its own, `FLOW to HOST`."""
    queues: dict[str, QueueLine]
    """Queues of switches and routers on the paths of the traffic, by output port: `switch -> host`."""
    nodes: dict[str, NodeLine] = {}
    """Nodes whose engines take time, by name."""
    outages: dict[str, list[list[float]]] = {}
    """Outages by link, as pairs of begin and end in seconds. An outage that lasts to the end of the run
    ends there. At most 10 000 are listed."""
    tunnels_down: dict[str, list[list[float]]] = {}
    """Times in which an end of a tunnel takes it for down because its keepalives do not come back, by
    `TUNNEL at ROUTER`, as pairs of begin and end in seconds. At most 10 000 are listed."""
    memberships: dict[str, list[list[float]]] = {}
    """Times of membership of each multicast receiver that joins or leaves, by `FLOW to HOST`, as pairs of
    begin and end in seconds. At most 10 000 are listed."""


class FlowLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A flow over time."""

    time_s: list[float]
    """Sample times in seconds."""
    tcp: TcpLine | None = None
    """State of the congestion control of its connections; only for TCP."""
    datagrams: DatagramLine | None = None
    """Datagrams as the receiver counts them; only for UDP. A receiver that joins and leaves has none."""
    delivered_bytes: list[int]
    """Cumulative payload received; for TCP, payload received in order."""
    truncated: bool = False
    """Whether a list of events is incomplete because it was too long."""


class TcpLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The senders of a TCP flow over time, summed over the flow's connections."""

    congestion_window_bytes: list[int]
    """Congestion window."""
    receive_window_bytes: list[int]
    """Last announced receive window."""
    flight_bytes: list[int]
    """Bytes in flight as the sender estimates them."""
    retransmissions: list[float]
    """Times of retransmissions in seconds."""
    timeouts: list[float]
    """Times of retransmission timeouts in seconds."""


class DatagramLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The receiver of a UDP flow over time, as its sequence numbers show it. Counts are cumulative and
    include the warm-up."""

    received: list[int]
    """Datagrams received."""
    missing: list[int]
    """Datagrams missing: those that the sender began before the newest received one, less those received
    (RFC 3550 section 6.4.1, cumulative number of packets lost). A datagram that arrives late is no longer
    missing."""


class QueueLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A queue over time."""

    time_s: list[float]
    """Sample times in seconds."""
    length: list[int]
    """Queue length. For cells it includes the one in transmission. For frames it includes the one in
    transmission only in a FIFO."""
    unit: str
    """Unit of `length`: `cells` or `bytes`."""
    capacity: int | None = None
    """Capacity of the queue, or of the queue of each service category. `None` if the capacity is not in
    `unit`."""
    drops: list[float]
    """Times of losses in seconds. Consecutive lost cells count as one loss, at the time of the first."""
    truncated: bool = False
    """Whether the list of losses is incomplete because it was too long."""


class NodeLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A host or router over time."""

    engines: dict[str, EngineLine]
    """Its engines by name, as in the outcome: `cpu` at a host, `forwarding` at a router."""


class EngineLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An engine over time."""

    time_s: list[float]
    """Ends of intervals in seconds. The first interval begins with the run, each other one where the one
    before it ends."""
    load: list[float]
    """Share of each interval in which the engine was busy, 0 to 1."""


class SweptValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The value of a swept key: either `number` or `text`."""

    number: float | None = None
    """A quantity or number in base units: bit/s, bytes, seconds."""
    text: str | None = None
    """Text as written in the file."""


class MeasuredPoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Details of a point with real hosts."""

    at: str
    """End of the point, ISO 8601."""
    took_s: float
    """Duration of the point in seconds."""
    carrier: str
    """Network that carried the packets: `hosts`, `veth` or `model`."""
    notes: list[str]
    """Deviations from the file, and values that could not be observed."""
    precision: PointPrecision | None = None
    """Whether all flows reached the requested precision."""


class PointPrecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Result of the stopping rule of a point."""

    asked: float
    """Requested half width of the confidence interval, as a fraction of the mean."""
    reached: bool
    """Whether all flows reached it."""


class Emulated(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Details of an emulated point."""

    clock: str
    """How the driver waits for the next event."""
    slow: int
    """Time dilation: the factor by which the network runs slower than real time."""
    no_offload: bool
    """Whether every packet crosses separately, without segmentation offload."""
    max_lateness: str
    """Lateness above which a point is invalid, as text with unit."""
    tap: bool
    """Whether hosts have Ethernet devices (TAP)."""
    lateness: Any
    """Lateness of the packets, as the driver reported it."""
    host_pairs: dict[str, FlowOutcome] = {}
    """Counts of the network for each pair of hosts, by "A to B"."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of one point with one engine."""

    version: int
    """Version of this format."""
    variant: str
    """Name of the variant."""
    engine: Engine
    """Engine that produced this outcome."""
    repeat: int
    """Number of the repeat, from 0."""
    seed: int
    """Seed of the random streams."""
    sweep: dict[str, SweptValue]
    """Swept values, by the path of their key."""
    flows: dict[str, FlowOutcome]
    """Flows by the name of their traffic table, in the order of the file."""
    links: dict[str, LinkOutcome]
    """Links by name, in the order of the file."""
    nodes: dict[str, NodeOutcome] = {}
    """Nodes whose engines take time, by name: hosts with CPU costs and routers with a processing time, in
    the order of the file."""
    drops: list[Drop] = []
    """Losses by location, cause and flow."""
    events: int | None = None
    """Number of events that the simulation processed: a measure of its work."""
    without: dict[str, str] = {}
    """Traffic that the engine does not support and left out, with the reason."""
    hosts: dict[str, Any] = {}
    """Reports of the agents, by host: system, settings, timer, and increase of counters during the run."""
    measured: MeasuredPoint | None = None
    """Details of a point with real hosts."""
    emulated: Emulated | None = None
    """Details of an emulated point."""
    valid: bool | None = None
    """False if the point is invalid, for example because the emulated network was late."""
    invalid: str | None = None
    """Reason why the point is invalid."""
