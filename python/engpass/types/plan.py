"""The types of points and drawings: generated from `crates/engpass-testbed` by `make gen`."""

from __future__ import annotations

import msgspec


class Drawing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nodes, links, circuits, tunnels, bonds and flows of a point. Runs keep it in the store. Readers
    ignore unknown keys."""

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
    """Name of the node."""
    kind: str
    """Kind of the node: `host`, `router`, `atm switch` or `ethernet switch`."""


class DrawnLink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link."""

    name: str
    """Name of the link."""
    ends: list[str]
    """The two nodes that the link connects."""
    medium: str
    """Medium of the link, as in the file."""
    rates_bit_per_s: list[int] = []
    """Line rate at each end in bit/s; empty in runs of old versions."""


class DrawnCircuit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A circuit."""

    name: str
    """Name of the circuit."""
    from_: str = msgspec.field(name="from")
    """Node at which the circuit begins."""
    to: str
    """Node at which the circuit ends."""
    route: list[str] = []
    """The nodes that the circuit crosses."""


class DrawnTunnel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tunnel."""

    name: str
    """Name of the tunnel."""
    header: str
    """Kind of the outer header, and the tunnel that carries this one, if any."""
    ends: list[str]
    """The routers at the ends of the tunnel."""
    mtu_bytes: int
    """MTU of the tunnel in bytes, without the outer headers."""
    route: list[str] = []
    """The nodes that the outer packets cross."""


class DrawnBond(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A bond."""

    name: str
    """Name of the bond."""
    node: str
    """The host or switch that has the bond as an interface."""
    to: str
    """The node to which the bond's links lead."""
    links: list[str]
    """The bond's links, in the order in which the mode counts them."""
    mode: str
    """Kind of the bond's mode."""


class DrawnFlow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A traffic table."""

    name: str
    """Name of the flow."""
    kind: str = ""
    """Kind of traffic."""
    from_: str = msgspec.field(name="from")
    """Sending host."""
    to: str
    """Receiving host; for a multicast group the first one."""
    receivers: list[str] = []
    """Receiving hosts of a multicast group, if there are several."""
    route: list[str] = []
    """The nodes that the flow crosses; for a multicast group those to the first receiver."""
    steps: list[DrawnStep] = []
    """If routers or bonds choose among several paths, or there are several receivers: the links that its
    packets cross, each once."""


class DrawnStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link that packets of a flow cross, in one direction."""

    link: str
    """Name of the link."""
    from_: str = msgspec.field(name="from")
    """Node that sends on the link."""
    to: str
    """Node that receives from the link."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Times and seed of a run."""

    duration_ns: int
    """Length of a run, warm-up included."""
    warmup_ns: int
    """Warm-up."""
    seed: int
    """Seed of the first repeat."""


class HostPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A host."""

    reach: str | None = None
    """How the controller reaches the host's agent."""
    address: str | None = None
    """Address of the host."""
    receive_buffer_bytes: int
    """Receive buffer of the host's sockets."""


class NodePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A switch or router."""

    kind: str
    """Kind of the node: `router`, `atm switch` or `ethernet switch`."""
    delay_ns: int
    """Time for each packet."""
    ecmp: str | None = None
    """Kind of the node's ECMP policy, if it has a choice on the path between any two hosts."""
    hash: str | None = None
    """Header fields that the policy hashes: `layer-3` or `layer-4`; none unless the policy is a hash."""
    draws: bool = False
    """Of an ATM switch: true if its discard policy draws random numbers."""
    arp: bool = False
    """Of a router: true if it asks for hardware addresses (ARP)."""


class LinkPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A link."""

    name: str
    """Name of the link."""
    ends: list[str]
    """The two nodes that the link connects."""
    medium: str
    """Medium of the link, as in the file."""
    framing: str
    """How packets are framed: `cells`, `ethernet` or `packets`."""
    rates_bit_per_s: list[int]
    """Line rate at each end."""
    mtu_bytes: int
    """Largest IP packet (MTU)."""
    overhead_bytes: int
    """Bytes that framing adds to an IP packet on the line; 0 with `cells` framing."""
    least_bytes: int
    """Fewest bytes that a packet takes on the line; 0 if short packets are not padded."""
    delay_ns: int
    """Propagation delay."""
    jitter_ns: int
    """Largest random extra delay."""
    loses: bool
    """True if the link loses packets at random."""
    reorders: bool
    """True if packets may overtake others."""
    queues: list[QueuePlan | None]
    """Queue discipline of the transmitter at each end."""


class QueuePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A queue discipline."""

    kind: str
    """Kind of the discipline, as in the file."""
    packets: int | None = None
    """Largest number of packets in a drop-tail queue; none if unlimited."""
    bytes: int | None = None
    """Largest number of bytes in a drop-tail queue; none if unlimited."""
    marks: bool
    """True if the discipline marks packets (ECN)."""
    keeps_order: bool
    """True if packets leave in the order of their arrival, one whenever the line is free."""
    draws: bool = False
    """True if the discipline draws random numbers."""


class WayPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The path from one host to another."""

    from_: str = msgspec.field(name="from")
    """Sending host."""
    to: str
    """Receiving host."""
    last_link: str
    """Link over which the receiver receives."""
    other_last_links: list[str] = []
    """Other links over which packets may arrive, if policies choose among them."""
    mtu_bytes: int
    """Smallest MTU on the path."""
    first_mtu_bytes: int
    """MTU of the first link of the path."""
    discovers_mtu: bool
    """True if the sender discovers the smallest MTU, in some traffic on this path or in all that the host
    sends. Otherwise it knows that MTU from the start."""
    circuit: CircuitPlan | None = None
    """The circuit, if one leads from host to host."""


class CircuitPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits of a sending NIC on a circuit."""

    rate_bit_per_s: int
    """Rate of whole cells, without the framing of the medium."""
    overhead_bytes: int
    """Bytes added to an IP packet before it is segmented into cells, without the padding of short bridged
    frames."""


class GatewayPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The next hops towards one end of a link. An end is a link and the node at that end."""

    at: str
    """Sending node."""
    to: list[str]
    """End to reach."""
    hops: list[HopPlan]
    """Next hops, in the order of the file; several if a policy chooses."""


class HopPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A next hop."""

    over: str
    """Link over which packets leave."""
    via: list[str]
    """Link end at the next router on the path, or at the receiver."""
    weight: int
    """Weight of the next hop in the policy."""


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
    start_ns: int
    """Start time."""
    stop_ns: int | None = None
    """Stop time; none if the traffic lasts until the end of the run."""
    tcp: SocketPlan | None = None
    """TCP of the sending host."""
    message_bytes: int | None = None
    """Payload of a message, datagram or request."""
    rate_bit_per_s: int | None = None
    """Payload rate; none means as fast as possible."""
    on_ns: int | None = None
    """Mean length of a burst."""
    off_ns: int | None = None
    """Mean length of a pause between bursts."""
    lengths: str | None = None
    """Distribution of the lengths of bursts and pauses."""
    micro_frames_per_s: int | None = None
    """Frame rate of a video, in millionths of a frame per second."""
    group_of_pictures: int | None = None
    """Frames in a group of pictures."""
    intra_size_ppb: int | None = None
    """Size of an intra frame in 10^-9 of any other frame."""
    group: str | None = None
    """Address of a multicast group."""
    cells: bool = False
    """True for a generator of cells."""


class SocketPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """TCP options for a real socket."""

    mss_bytes: int | None = None
    """Maximum segment size."""
    nodelay: bool | None = None
    """True if Nagle's algorithm is off."""
    congestion: str | None = None
    """Congestion control."""


class BondPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Links of a node that form one interface."""

    name: str
    """Name of the bond."""
    node: str
    """The node that has the bond as an interface."""
    links: list[str]
    """Names of the links of the bond."""
    rate_bit_per_s: int
    """Largest total rate of these links in the direction from this node."""


class PointPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A point for real hosts and namespaces. Keys name their unit."""

    run: RunPlan
    """Times and seed of the run."""
    hosts: dict[str, HostPlan]
    """Hosts by name."""
    between: dict[str, NodePlan]
    """Switches and routers by name."""
    links: list[LinkPlan]
    """Links, in the order of the file."""
    ways: list[WayPlan]
    """Paths from each host to every host that it can reach."""
    gateways: list[GatewayPlan]
    """Next hops at hosts and routers."""
    flows: list[FlowPlan]
    """Traffic, in the order of the file."""
    tunnels: list[str] = []
    """Names of the tunnels that are up."""
    bonds: list[BondPlan] = []
    """Bonds that are up."""
    events: list[str] = []
    """Names of the events that change links."""
