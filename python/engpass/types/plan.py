"""The types of points and drawings: generated from `crates/engpass-testbed` by `make gen`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from engpass.types.outcome import Path


class Drawing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nodes, links, circuits, tunnels, bonds and flows of a point. Runs keep it in the store; readers
    ignore keys that they do not know."""

    nodes: list[DrawnNode] = []
    """Hosts, switches and routers."""
    links: list[DrawnLink] = []
    """Links, in the order of the file."""
    circuits: list[DrawnCircuit] = []
    """Circuits, in the order of the file."""
    tunnels: list[DrawnTunnel] = []
    """Tunnels, in the order of the file."""
    bonds: list[DrawnBond] = []
    """Bonds that are up, in the order of the file."""
    flows: list[DrawnFlow] = []
    """Traffic, in the order of the file."""


class DrawnNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node."""

    name: str
    """Its name."""
    kind: str
    """`host`, `router`, `atm switch` or `ethernet switch`."""


class DrawnLink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link."""

    name: str
    """Its name."""
    ends: list[str]
    """Its two nodes."""
    medium: str
    """Its medium, as in the file."""
    rates_bit_per_s: list[int] = []
    """Line rate of the transmitter at each end; none in runs of old versions."""


class DrawnCircuit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A circuit."""

    name: str
    """Its name."""
    from_: str = msgspec.field(name="from")
    """Node at which it begins."""
    to: str
    """Node at which it ends."""
    route: list[str] = []
    """The nodes that it crosses."""


class DrawnTunnel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tunnel."""

    name: str
    """Its name."""
    header: str
    """What stands around the packets in it: the kind of its header, and the tunnel that carries it, if
    one does."""
    ends: list[str]
    """The routers at its ends."""
    mtu_bytes: int
    """The largest packet that enters it, in bytes, without the outer headers."""
    route: list[str] = []
    """The nodes that its outer packets cross."""


class DrawnBond(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A bond."""

    name: str
    """Its name."""
    node: str
    """The host or switch whose interface it is."""
    to: str
    """The node to which its links lead."""
    links: list[str]
    """Its links, in the order in which its mode counts them."""
    mode: str
    """Kind of its mode."""


class DrawnFlow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A traffic table."""

    name: str
    """Its name."""
    kind: str = ""
    """Kind of traffic."""
    from_: str = msgspec.field(name="from")
    """Sending host."""
    to: str
    """Receiving host; of a multicast group the first."""
    receivers: list[str] = []
    """Receiving hosts of a multicast group, if there are several."""
    route: list[str] = []
    """The nodes that it crosses; of a multicast group to the first receiver."""
    steps: list[DrawnStep] = []
    """Where routers or bonds choose among several ways, or there are several receivers, the links that
    its packets cross, each once."""


class DrawnStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link that packets of a flow cross, in their direction."""

    link: str
    """Name of the link."""
    from_: str = msgspec.field(name="from")
    """Node that sends."""
    to: str
    """Node that receives."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Times and seed of a run."""

    duration_ns: int
    """Length, warm-up included."""
    warmup_ns: int
    """Warm-up."""
    precision: float | None = None
    """Half width of the confidence interval that is asked for, as a share of the mean."""
    most_ns: int
    """Longest time until the precision is reached."""
    seed: int
    """Seed of the first repeat."""


class HostPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A host."""

    reach: str | None = None
    """How its agent is reached."""
    address: str | None = None
    """Its address."""
    receive_buffer_bytes: int
    """Receive buffer of its sockets."""


class NodePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A switch or router."""

    kind: str
    """`router`, `atm switch` or `ethernet switch`."""
    delay_ns: int
    """Time for each packet."""
    ecmp: str | None = None
    """Kind of its ECMP policy, where that has a choice between any hosts."""
    hash: str | None = None
    """Headers that its policy hashes, if it is a hash: `layer-3` or `layer-4`."""


class LinkPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A link."""

    name: str
    """Its name."""
    ends: list[str]
    """Its two nodes."""
    medium: str
    """Its medium, as in the file."""
    framing: str
    """`cells`, `ethernet` or `packets`."""
    rates_bit_per_s: list[int]
    """Line rate of the transmitter at each end."""
    mtu_bytes: int
    """Largest IP packet."""
    overhead_bytes: int
    """Bytes beside an IP packet, where it carries packets."""
    vlan: bool
    """Whether frames have a VLAN tag."""
    delay_ns: int
    """Propagation delay."""
    jitter_ns: int
    """Most that a packet is late besides."""
    loses: bool
    """Whether it loses packets at random."""
    reorders: bool
    """Whether packets may overtake others."""
    queues: list[QueuePlan | None]
    """Queue of the transmitter at each end."""


class QueuePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A queue discipline."""

    kind: str
    """Its kind, as in the file."""
    packets: int | None = None
    """Most packets of a drop-tail queue; none without a bound."""
    bytes: int | None = None
    """Most bytes of a drop-tail queue; none without a bound."""
    marks: bool
    """Whether it marks packets (ECN)."""


class WayPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The path from a host to another."""

    from_: str = msgspec.field(name="from")
    """Sending host."""
    to: str
    """Receiving host."""
    last_link: str
    """Link at which the receiver is reached."""
    other_last_links: list[str] = []
    """Other links at which its packets may arrive, where policies choose among them."""
    mtu_bytes: int
    """Smallest MTU on the path."""
    first_mtu_bytes: int
    """MTU of its first link."""
    discovers_mtu: bool
    """Whether the sender discovers the smallest one, in some traffic on this path or in all that the host
    sends. Else it knows it."""
    circuit: CircuitPlan | None = None
    """The circuit, where one leads from host to host."""


class CircuitPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a sending NIC keeps to on a circuit."""

    rate_bit_per_s: int
    """Rate of whole cells, without the framing of the medium."""
    overhead_bytes: int
    """Bytes beside an IP packet before cells are filled, without the padding of short bridged frames."""


class GatewayPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The next hops towards one end of a link. Ends are a link and the node at that end of it."""

    at: str
    """Node that sends."""
    to: list[str]
    """End that is reached."""
    hops: list[HopPlan]
    """Next hops, in the order of the file: several where a policy chooses."""


class HopPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A next hop."""

    over: str
    """Link on which packets leave."""
    via: list[str]
    """End of the next router on the way, or of the receiver."""
    weight: int
    """Weight that the policy gives it."""


class FlowPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A traffic table."""

    name: str
    """Name of the table."""
    kind: str
    """Kind of traffic."""
    from_: str = msgspec.field(name="from")
    """Sending host."""
    to: list[str]
    """Receiving hosts."""
    paths: list[Path]
    """A path to each receiver."""
    start_ns: int
    """Beginning."""
    stop_ns: int | None = None
    """End, if it ends before the run."""
    priority: int
    """Class of its packets at priority queues."""
    ttl: int | None = None
    """Time to live of its packets."""
    live: LivePlan | None = None
    """What only real hosts do."""
    receive_buffer_bytes: int | None = None
    """Receive buffer of its sockets, where it differs from the host's."""
    tcp: list[SocketPlan] | None = None
    """TCP of the sending and of the receiving host."""
    message_bytes: int | None = None
    """Payload of a message, datagram or request."""
    response_bytes: int | None = None
    """Payload of an answer."""
    rate_bit_per_s: int | None = None
    """Payload rate; none for as fast as possible."""
    streams: int | None = None
    """Parallel connections."""
    sizes: str | None = None
    """Distribution of the sizes of `poisson`."""
    on_ns: int | None = None
    """Mean length of a burst."""
    off_ns: int | None = None
    """Mean length of a silence."""
    lengths: str | None = None
    """Distribution of the lengths of bursts and silences."""
    transport: str | None = None
    """Transport of requests: `tcp` or `udp`."""
    every_ns: int | None = None
    """Time between requests; none for one after the answer to the other."""
    group: str | None = None
    """Address of a multicast group."""
    cells: bool = False
    """True for a generator of cells."""


class LivePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Keys of traffic that only real hosts have."""

    dscp: int | None = None
    """Differentiated services code point."""
    pacing: str | None = None
    """Who paces: the agent or the kernel."""
    burst_messages: int | None = None
    """Messages sent at a time."""
    method: str | None = None
    """How messages are handed to the kernel."""
    segmentation: bool | None = None
    """Whether the kernel cuts large writes of datagrams."""
    truncate: bool | None = None
    """Whether the receiver throws payload away in the kernel."""
    dont_fragment: bool | None = None
    """Whether routers may not cut packets."""
    mptcp: bool | None = None
    """Whether it is MPTCP."""
    send_buffer_bytes: int | None = None
    """Send buffer."""
    send_cores: list[int]
    """Cores of the sending threads."""
    receive_cores: list[int]
    """Cores of the receiving threads."""


class SocketPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a real TCP socket can be told, and the keys that it cannot."""

    mss_bytes: int | None = None
    """Maximum segment size."""
    send_buffer_bytes: int | None = None
    """Send buffer."""
    receive_buffer_bytes: int | None = None
    """Receive buffer."""
    nodelay: bool | None = None
    """Whether Nagle's rule is off."""
    congestion: str | None = None
    """Congestion control."""
    model_congestion: str
    """Congestion control of the model where the file gives none: that of its profile."""
    untold: list[str]
    """Keys that a socket cannot be told."""


class BondPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Links of a node that are one interface."""

    name: str
    """Its name."""
    node: str
    """The node whose interface it is."""
    links: list[str]
    """Its links."""
    rate_bit_per_s: int
    """The most bits per second that its links carry together, from this node."""


class PointPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A point as hosts and namespaces carry it. Keys name their unit."""

    run: RunPlan
    """Times and seed of the run."""
    hosts: dict[str, HostPlan]
    """Hosts by name."""
    between: dict[str, NodePlan]
    """Switches and routers by name."""
    links: list[LinkPlan]
    """Links, in the order of the file."""
    ways: list[WayPlan]
    """Paths from each host to each other that it can reach."""
    gateways: list[GatewayPlan]
    """Next hops at hosts and routers."""
    flows: list[FlowPlan]
    """Traffic, in the order of the file."""
    tunnels: list[str] = []
    """Names of the tunnels that are up."""
    bonds: list[BondPlan] = []
    """Bonds that are up."""
    events: list[str] = []
    """Names of the events."""
