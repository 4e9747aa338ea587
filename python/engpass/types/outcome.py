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
    "tunnel",
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
"""What limits."""

SetBy: TypeAlias = Literal[
    "receive-buffer",
    "window-field",
    "send-buffer",
]
"""The reason for the size of a window."""

Engine: TypeAlias = Literal[
    "limit",
    "simulate",
    "emulate",
    "measure",
]
"""An engine."""


class Results(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part of an outcome that an engine of the model gives."""

    flows: dict[str, FlowOutcome]
    """Flows by the name of their traffic table, in the order of the file."""
    links: dict[str, LinkOutcome]
    """Links by name, in the order of the file."""
    drops: list[Drop] = []
    """Losses by place, cause and flow."""
    events: int | None = None
    """Events that the simulation handled."""


class FlowOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of a flow."""

    kind: str
    """Kind of traffic, as in the file."""
    paths: list[Path] = []
    """Paths of its packets; for a multicast group one to each member. Where routers choose among equally
    short ways there may be several: the greatest share comes first, and at most 64 are listed, which may
    have less than all packets."""
    goodput_bit_per_s: float
    """Payload received, in bit/s; from `limit` its max-min fair share."""
    offered_bit_per_s: float
    """Payload sent, in bit/s; from `limit` the same as its goodput."""
    datagrams: Datagrams | None = None
    """Datagrams, TCP segments or cells of a generator, as far as the engine counts them."""
    efci_pdus: int | None = None
    """PDUs (of a generator: cells) that arrived whole with the EFCI mark in their last cell."""
    delay_s: Delays | None = None
    """One-way delays; none for a generator."""
    tcp: Tcp | None = None
    """Counts of TCP."""
    outage: Outage | None = None
    """What outages of lines did to it; only where the file has events."""
    receivers: dict[str, Receiver] = {}
    """Members of a multicast group by host, in the order of the file. The flow has the figures of the
    member that got least."""
    bottleneck: Bottleneck | None = None
    """What limits the flow most."""
    next_bottleneck: Bottleneck | None = None
    """What limits it once the bottleneck is gone."""
    summary: str | None = None
    """The bottleneck, its reason and the next one in a sentence."""
    limit: FlowLimit | None = None
    """What `limit` knows besides."""
    real: RealFlow | None = None
    """What real hosts tell besides."""


class Path(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A path that packets of a flow take."""

    share: float
    """Share of the flow's packets that take it while all links are up, 0 to 1. Each member of a multicast
    group gets all of them. Where the policy of a router chooses by a hash, it is the share of the flow's
    connections. Where it chooses by a hash and lengths vary, half of the packets count as fragments,
    whose ports the hash does not see."""
    steps: list[Step]
    """Links from the sender to the receiver."""


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A link of a path, in the direction in which it is taken."""

    link: str
    """Name of the link."""
    from_: str = msgspec.field(name="from")
    """Node that sends."""
    to: str
    """Node that receives."""


class Datagrams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Counts of datagrams, TCP segments or cells of a generator."""

    sent: int
    """Sent."""
    received: int
    """Received whole."""
    lost: int
    """Lost, in whole or in part."""
    in_flight: int | None = None
    """Sent and neither received nor lost at the end of the run."""
    duplicate: int | None = None
    """Received more than once."""
    reordered: int | None = None
    """Received behind one that was sent later."""


class Delays(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Delays by the way that they are measured."""

    network: Quantiles
    """One way from the sending to the receiving application, of datagrams or TCP segments that arrive;
    each transmission of a segment counts by itself."""


class Quantiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Minimum, quantiles and maximum of times, in seconds. The quantiles are within 1.6 %, the minimum
    and the maximum are exact."""

    min: float
    """Minimum."""
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
    """Counts and times of the sending ends of a TCP flow."""

    retransmitted_segments: int | None = None
    """Retransmitted segments."""
    timeouts: int | None = None
    """Expiries of the retransmission timer."""
    fast_retransmits: int | None = None
    """Entries into fast recovery."""
    smoothed_rtt_s: float | None = None
    """Smoothed round-trip time of the first connection at the end, in seconds."""
    min_rtt_s: float | None = None
    """Least round-trip time of the first connection, by its kernel, in seconds."""
    rtt_s: Quantiles | None = None
    """Round trips as the sending ends measured them, in seconds."""
    timeout_share: float | None = None
    """Share of the busy time that the sender waited for its retransmission timer."""
    receive_window_limited_share: float | None = None
    """Share of the busy time that the receive window held the sender."""
    send_buffer_limited_share: float | None = None
    """Share of the busy time that the send buffer held the sender."""


class Outage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What outages of lines did to a flow."""

    longest_s: float
    """The longest time in which nothing of it was received, in seconds: from its first reception to the
    end of the run or of its traffic."""
    lost: int
    """Datagrams lost on lines that were down, or in front of them."""


class Receiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A member of a multicast group."""

    goodput_bit_per_s: float
    """Payload received, in bit/s."""
    offered_bit_per_s: float
    """Payload sent, in bit/s."""
    datagrams: Datagrams | None = None
    """Datagrams, as far as the engine counts them."""
    delay_s: Delays | None = None
    """One-way delays."""
    outage: Outage | None = None
    """What outages of lines did to what it receives; only where the file has events."""
    bottleneck: Bottleneck | None = None
    """What limits what it receives most."""
    next_bottleneck: Bottleneck | None = None
    """What limits it once the bottleneck is gone."""
    summary: str | None = None
    """The bottleneck, its reason and the next one in a sentence."""
    limit: FlowLimit | None = None
    """What `limit` knows besides."""
    gap_s: Gaps | None = None
    """Gaps between datagrams."""
    max_datagrams_per_ms: int | None = None
    """Most datagrams that were received within a millisecond."""
    join_delay_s: float | None = None
    """From joining the group to its first datagram (RFC 3918 section 5), in seconds."""
    leave_delay_s: float | None = None
    """From leaving the group to its last datagram, in seconds."""
    join_unknown: str | None = None
    """Why the join delay is not known."""
    leave_unknown: str | None = None
    """Why the leave delay is not known."""


class Bottleneck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What limits a flow."""

    kind: BottleneckKind
    """What it is."""
    name: str | None = None
    """Name of the link, circuit, host, router or traffic; none for what has no name in the file."""
    title: str
    """Title in tables and sentences, like "link `receiver`"."""


class FlowLimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bound, window, waterfall and candidates of a flow."""

    bound: Bound | None = None
    """The bound; none in outcomes of the first version."""
    window: WindowLimit | None = None
    """The window of each connection; only of a `tcp-stream`."""
    idle_delay_s: float | None = None
    """One-way delay of a message, or of a full segment of TCP, that meets nothing else on its way, in
    seconds; the least of all ways. None for generators."""
    ignored_events: list[str] = []
    """Names of the events that the fair share does not look at: it is that of the time before the first
    of them, in which all links are up. The bound holds in spite of them."""
    stages: list[Stage]
    """From the line rate of the link that limits most to the goodput: the rate left after each step."""
    candidates: list[Candidate]
    """Everything that could limit the flow: links along its route, shaper, policer, token buckets,
    routers, hosts with their memories and buses, application, and for TCP the acknowledgements."""


class Bound(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The most goodput that a flow can reach."""

    bit_per_s: float
    """No engine of the model exceeds it over the counted time, apart from the backlog at the end of the
    warm-up."""
    bottleneck: Bottleneck
    """Candidate with the smallest bound."""
    summary: str
    """The bound and its bottleneck in a sentence."""


class WindowLimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The window that socket buffers give a TCP connection, and the window that would fill the line."""

    bytes: int
    """Most payload in flight, in bytes."""
    set_by: SetBy
    """The reason for this size."""
    round_trip_s: float
    """The shortest round trip of a full segment and its acknowledgement, hosts included, in seconds.
    Where packets take several ways: by the longest way there and the shortest way back, of the connection
    for which that takes longest."""
    bandwidth_delay_product_bytes: float
    """Line rate of the narrowest line on the path, times the round trip."""
    filling_bytes: float
    """Payload in flight that fills this line: the size that both socket buffers of each connection need."""


class Stage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of the waterfall from the line rate to the goodput."""

    name: str
    """What takes its part in this step."""
    rate_bit_per_s: float
    """Rate left after it."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that could limit a flow."""

    bottleneck: Bottleneck
    """What it is."""
    goodput_bit_per_s: float
    """Goodput if nothing else limited this flow and the others had their fair shares."""
    bound_bit_per_s: float | None = None
    """The bound if nothing else limited this flow; none where a random source has no bound. Where packets
    may take one of several links side by side, it is the bound of all of these together, with what can
    come to each."""


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
    """Figures of a flow between real hosts."""

    sender_cpu_s_per_gb: float | None = None
    """CPU seconds of the sending threads for each GB of payload."""
    receiver_cpu_s_per_gb: float | None = None
    """CPU seconds of the receiving threads for each GB of payload."""
    schedule_kept: float | None = None
    """Share of its schedule that the sender kept, 0 to 1."""
    gap_s: Gaps | None = None
    """Gaps between datagrams at the receiver."""
    max_datagrams_per_ms: int | None = None
    """Most datagrams that were received within a millisecond."""
    requests: Requests | None = None
    """Requests and answers, of `request-response`."""
    pacing: GapDeviation | None = None
    """Regularity of a paced flow, and the sender's part in its deviation."""
    precision: Precision | None = None
    """How well the mean is known."""
    findings: list[Finding] = []
    """Everything that was found to hold the flow back, the heaviest first."""
    ends: dict[str, Any] = {}
    """The results of the agents by host, with the kernel's own names."""


class Requests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Requests and their answers."""

    per_s: float
    """Answered requests per second."""
    unanswered: int | None = None
    """Requests without an answer."""
    latency_s: Latency | None = None
    """Time from a request to its answer."""


class Latency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Times from requests to answers, in seconds."""

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
    """How the sender waits for its next instant."""
    scheduling_class: str | None = None
    """Scheduling class of the sending thread."""
    cpu_latency_held: bool | None = None
    """Whether the host kept its cores from sleeping deeply."""
    stalls: Any = None
    """Stalls of the sender by cause, as its agent told them."""
    explained_share: float | None = None
    """Share of the variance of the gaps that the stalls explain."""
    summary: str | None = None
    """The same in a sentence."""


class Precision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How well a mean is known."""

    asked: float
    """Half width of the confidence interval that was asked for, as a share of the mean."""
    reached: bool
    """Whether it was reached."""
    confidence: float
    """Confidence, 0 to 1."""
    intervals: int
    """Intervals that were counted."""
    interval_s: float
    """Length of an interval in seconds."""
    mean_bit_per_s: float | None = None
    """Mean rate in bit/s."""
    half_width_bit_per_s: float | None = None
    """Half width of its confidence interval in bit/s."""
    share: float | None = None
    """Half width as a share of the mean; none for a mean of nothing."""
    effective_samples: float | None = None
    """Independent samples that the intervals are worth."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that may hold a flow back, from what its hosts saw."""

    bottleneck: Bottleneck
    """What it is."""
    weight: float
    """How near to its bound it was, or for which share of the time it held the sender: 0 to 1."""
    evidence: str
    """What was seen."""


class LinkOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A link."""

    directions: list[DirectionOutcome]
    """Its two directions, that from the link's first end first."""


class DirectionOutcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One direction of a link."""

    from_: str = msgspec.field(name="from")
    """Node that sends."""
    to: str
    """Node that receives."""
    utilisation: float | None = None
    """Share of the time that the line was busy; from `limit` the share that all flows at their limits
    take."""
    cells: CellCounts | None = None
    """Cells that it carried, on ATM."""
    frames: FrameCounts | None = None
    """Frames that it carried, elsewhere."""
    ledger: Ledger | None = None
    """Where its bit-times went."""
    line_rate_bit_per_s: float | None = None
    """Line rate; from `limit`."""
    shares: list[Share] = []
    """Shares of the line by flow, in the order of the file; from `limit`."""


class CellCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Cells of one direction of an ATM link."""

    capacity: int
    """Cells that it could have carried."""
    sent: int
    """Cells sent."""
    clp1: int
    """Cells sent with CLP = 1."""
    efci: int
    """Cells sent with the EFCI mark."""
    lost: int
    """Cells lost in the queue or in the policer in front of it."""


class FrameCounts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Frames of one direction of an Ethernet or point-to-point link."""

    sent: int
    """Frames sent."""
    bytes: int
    """Bytes of the line that they took, preamble and gap included."""
    lost: int
    """Frames lost in the queue in front of the line, or damaged on it."""


class Ledger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bit-times of a line by account: `docs/ledger.md`."""

    units_per_bit: int
    """Units in a bit: so many that a cell is a whole number of them."""
    capacity: int
    """The sum of all accounts, in units."""
    accounts: dict[str, int]
    """Units by account; accounts without any are left out."""


class Share(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The share of a line that one flow takes."""

    flow: str
    """Name of the flow."""
    kind: str
    """Kind of traffic; `acknowledgements` for those of a `tcp-stream`."""
    share: float
    """Share of the line, 0 to 1."""


class Drop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Losses of one flow at one place, for one cause."""

    place: Place
    """A transmitter, or a node."""
    cause: str
    """Cause of the loss, like `buffer full`."""
    flow: str
    """Name of the traffic."""
    cells: int
    """Cells, and packets on links of frames, lost here, those of a datagram that had lost one before
    included."""
    datagrams: int
    """Datagrams (for generators cells) that lost their first cell or fragment here."""


class Place(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A node, or a transmitter of a node."""

    node: str
    """Name of the node."""
    link: str | None = None
    """Link of the transmitter; none for a loss inside the node. Outcomes of the first version have none
    where it is not certain."""
    to: str | None = None
    """Node at the other end of that link."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A run over time."""

    duration_s: float
    """Length of the run in seconds, the warm-up included."""
    flows: dict[str, FlowLine]
    """Streams by the name of their traffic table, in the order of the file."""
    queues: dict[str, QueueLine]
    """Queues in switches and routers that traffic crosses, by transmitter: `switch -> host`."""
    outages: dict[str, list[list[float]]] = {}
    """Links that were down, by name, each with the outages in seconds: when it went down, and when it
    came up or the run ended; the first 10 000."""


class FlowLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stream over time."""

    time_s: list[float]
    """When the samples were taken, in seconds."""
    tcp: TcpLine | None = None
    """What its connections' control loops say, for TCP."""
    delivered_bytes: list[int]
    """Payload received from the beginning on; of TCP in order."""
    truncated: bool = False
    """A list of events was cut."""


class TcpLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The sending ends of a TCP flow over time, summed over its connections."""

    congestion_window_bytes: list[int]
    """Congestion window."""
    receive_window_bytes: list[int]
    """Window that the receiver announced last."""
    flight_bytes: list[int]
    """Bytes that the sender holds to be in the network."""
    retransmissions: list[float]
    """When a segment was sent again, in seconds."""
    timeouts: list[float]
    """When the retransmission timer expired, in seconds."""


class QueueLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A queue over time."""

    time_s: list[float]
    """When the samples were taken, in seconds."""
    length: list[int]
    """What was in the queue, the cell that is being sent included; of frames what waits, and in a first
    in, first out queue the one being sent."""
    unit: str
    """What `length` counts: `cells` or `bytes`."""
    capacity: int | None = None
    """What fits into it (for each service category, where they have queues of their own); `None` where it
    does not count in `unit`."""
    drops: list[float]
    """When it lost something, in seconds. Cells that were lost one after the other are one loss, at the
    first of them."""
    truncated: bool = False
    """The list of losses was cut."""


class SweptValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value of a swept key: one of the two."""

    number: float | None = None
    """A quantity or number, in base units: bit/s, bytes, seconds."""
    text: str | None = None
    """Text, as it stands in the file."""


class MeasuredPoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Circumstances of a point with real hosts."""

    at: str
    """When it ended, ISO 8601."""
    took_s: float
    """Seconds that it took."""
    carrier: str
    """What carried the packets: `hosts`, `veth` or `model`."""
    notes: list[str]
    """What was done otherwise than the file says, and what could not be seen."""
    precision: PointPrecision | None = None
    """Whether all flows reached the precision that was asked for."""


class PointPrecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The stop rule of a point."""

    asked: float
    """Half width of the confidence interval that was asked for, as a share of the mean."""
    reached: bool
    """Whether all flows reached it."""


class Emulated(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Circumstances of an emulated point."""

    clock: str
    """How the driver waits."""
    slow: int
    """Factor by which the network is slower than real time."""
    no_offload: bool
    """Whether each packet crosses by itself, without offload."""
    max_lateness: str
    """Lateness beyond which a point does not count, as text with its unit."""
    tap: bool
    """Whether hosts have Ethernet devices (TAP)."""
    lateness: Any
    """Lateness of the packets, as the driver told it."""
    host_pairs: dict[str, FlowOutcome] = {}
    """What the network counted between each pair of hosts, by "A to B"."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of one point by one engine."""

    version: int
    """Version of this format."""
    variant: str
    """Name of the variant."""
    engine: Engine
    """Engine that gave this outcome."""
    repeat: int
    """Number of the repeat, from 0."""
    seed: int
    """Seed of the random streams."""
    sweep: dict[str, SweptValue]
    """Swept values by path."""
    flows: dict[str, FlowOutcome]
    """Flows by the name of their traffic table, in the order of the file."""
    links: dict[str, LinkOutcome]
    """Links by name, in the order of the file."""
    drops: list[Drop] = []
    """Losses by place, cause and flow."""
    events: int | None = None
    """Events that the simulation handled: a measure of its work."""
    without: dict[str, str] = {}
    """Traffic that the engine left out, and why."""
    hosts: dict[str, Any] = {}
    """Hosts by name, as their agents describe them: system, settings, timer, growth of their counters."""
    measured: MeasuredPoint | None = None
    """Circumstances of a point with real hosts."""
    emulated: Emulated | None = None
    """Circumstances of an emulated point."""
    valid: bool | None = None
    """False if the point does not count: an emulated network was late."""
    invalid: str | None = None
    """Why it does not count."""
