"""Carries packets between namespaces by veth pairs that TBF shapes, for `--engine measure`."""

from __future__ import annotations

from collections.abc import Mapping

from engpass.formatting import duration, listed
from engpass.netlab.kernel import INDEPENDENT, Kernel
from engpass.netlab.layout import (
    BRIDGE,
    HEAVIEST,
    LEAST_IPV6_BYTES,
    Layout,
    Node,
    Port,
    Route,
    Shape,
    hops,
    lightest,
)
from engpass.results.run_notes import NAMED, another_hash
from engpass.types.plan import LinkPlan, PointPlan

OWN_DELAY_NS = 100_000
"""Greatest delay in ns that is left out: namespaces and the scheduler already add as much."""

NOTED_DELAY_NS = 10_000
"""Delays in ns from this on are noted where they are left out; shorter ones are common and matter less."""

WHOLE_FRAMES_BIT_PER_S = 1_000_000_000
"""Up to this rate (bit/s) a link carries single frames, as on a wire; above it GSO packets, which count the
framing once.
"""

UNSHAPED_BIT_PER_S = 100_000_000_000
"""From this rate (bit/s) on a link is not limited: it is as fast as the kernel."""

_HOST_QUEUE_BYTES = 32 << 20  # socket buffers hold senders back before this is full
_BURST_NS = 250_000  # a timer may be late by this much without loss of throughput
_SUPER_PACKET_BYTES = 66_000


def cannot(numbers: PointPlan) -> list[str]:
    """Reasons why veth pairs cannot carry a testbed; empty if they can."""
    reasons = []
    for name, between in numbers.between.items():
        if between.kind == "atm switch":
            reasons.append(f"`{name}` is an ATM switch")
        elif between.delay_ns > OWN_DELAY_NS:
            reasons.append(f"`{name}` has a processing time of {duration(between.delay_ns / 1e9)} per packet")
        elif between.ecmp is not None and between.hash is None:
            reasons.append(
                f"`{name}` chooses a path for each packet (`{between.ecmp}`), but Linux chooses one for each"
                " flow"
            )
    for link in numbers.links:
        reasons += [f"link `{link.name}` {why}" for why in _link_cannot(link)]
    reasons += _routes_cannot(numbers)
    reasons += [f"tunnel `{tunnel}` is not supported by this engine" for tunnel in numbers.tunnels]
    reasons += [f"bond `{bond.name}` is not supported by this engine" for bond in numbers.bonds]
    reasons += [f"event `{event}` changes a link" for event in numbers.events]
    return list(dict.fromkeys(reasons))


def _routes_cannot(numbers: PointPlan) -> list[str]:
    reasons = []
    for gateway in numbers.gateways:
        weights = lightest([hop.weight for hop in hops(gateway, numbers.between)])
        if max(weights) > HEAVIEST:
            said = ":".join(str(weight) for weight in weights)
            reasons.append(f"`{gateway.at}` has weights {said}, but Linux supports at most {HEAVIEST}")
    for way in numbers.ways:
        if way.other_last_links:
            links = ", ".join(f"`{link}`" for link in (way.last_link, *way.other_last_links))
            reasons.append(
                f"packets can arrive at `{way.to}` on several links ({links}), but a real host has a separate"
                " address on each"
            )
    return reasons


def _link_cannot(link: LinkPlan) -> list[str]:
    if link.framing == "cells":
        return ["carries cells"]
    reasons = []
    if link.delay_ns > OWN_DELAY_NS:
        reasons.append(f"has a delay of {duration(link.delay_ns / 1e9)}")
    for there, word in ((link.jitter_ns, "jitter"), (link.loses, "loss"), (link.reorders, "reordering")):
        if there:
            reasons.append(f"has {word}")
    for queue in link.queues:
        if queue is not None and queue.kind != "drop-tail":
            reasons.append(f"has a queue `{queue.kind}`")
        elif queue is not None and queue.marks:
            reasons.append("has a queue with ECN marking")
    return reasons


def notes(numbers: PointPlan) -> list[str]:
    """A sentence for each small difference between the testbed and its file."""
    found = []
    routers = [f"`{name}`" for name, between in numbers.between.items() if between.ecmp is not None]
    if routers:
        found.append(another_hash(routers))
    found += [
        f"router `{name}` is as fast as this machine: its work of up to {duration(between.delay_ns / 1e9)}"
        " on a packet is left out"
        for name, between in numbers.between.items()
        if between.kind == "router" and between.delay_ns
    ]
    found += _left_out(numbers)
    for link in numbers.links:
        fastest = max(link.rates_bit_per_s)
        if fastest >= UNSHAPED_BIT_PER_S:
            found.append(f"link `{link.name}` is as fast as this machine: its rate is not limited")
        elif fastest > WHOLE_FRAMES_BIT_PER_S:
            found.append(
                f"link `{link.name}` carries GSO packets: preamble, gap and padding count once per GSO packet"
            )
    return found


def _left_out(numbers: PointPlan) -> list[str]:
    """A sentence on the delays that are left out, for each kind of place."""
    links = {f"`{link.name}`": link.delay_ns for link in numbers.links}
    switches = {
        f"`{name}`": between.delay_ns
        for name, between in numbers.between.items()
        if between.kind == "ethernet switch"
    }
    found = []
    for what, several, delays in (("link", "links", links), ("switch", "switches", switches)):
        long = {name: delay for name, delay in delays.items() if delay >= NOTED_DELAY_NS}
        if not long:
            continue
        names = list(long)
        if more := names[NAMED:]:
            names = [*names[:NAMED], f"{len(more):,} more"]
        most, verb = duration(max(long.values()) / 1e9), "is" if len(long) == 1 else "are"
        of = f"the delay of {what}" if len(long) == 1 else f"delays of {several}"
        upto = most if len(set(long.values())) == 1 else f"up to {most}"
        found.append(
            f"{of} {listed(names)}, {upto}, {verb} left out: the namespaces have a delay of their own"
        )
    return found


def build(kernel: Kernel, layout: Layout, names: Mapping[str, str]) -> None:
    """Make the namespaces, links and routes of a layout; `names` has the namespace of each node.

    Raises `LabError`, and does not remove what was made before.
    """
    kernel.batch("ip", None, [f"netns add {names[node]}" for node in layout.nodes])
    kernel.batch(
        "ip",
        None,
        [
            f"link add name {one.device} netns {names[a]} mtu {one.mtu} type veth"
            f" peer name {other.device} netns {names[b]} mtu {other.mtu}"
            for (a, one), (b, other) in layout.links
        ],
    )
    for node in layout.nodes.values():
        kernel.batch("ip", names[node.name], _devices(node))
        kernel.batch("tc", names[node.name], [line for port in node.ports for line in _shaped(node, port)])
        if node.kind != "ethernet switch":
            kernel.sets(names[node.name], _settings(node))
    # Routes come last, because the kernel accepts a gateway only if its network is up.
    for node in layout.nodes.values():
        kernel.batch("ip", names[node.name], [_route(route) for route in node.routes])


def _route(route: Route) -> str:
    if len(route.hops) == 1:
        (hop,) = route.hops
        return f"route add {route.to}/32 via {hop.via} dev {hop.device}"
    several = (f" nexthop via {hop.via} dev {hop.device} weight {hop.weight}" for hop in route.hops)
    return f"route add {route.to}/32{''.join(several)}"


def _devices(node: Node) -> list[str]:
    lines = ["link set lo up"]
    if node.kind == "ethernet switch":
        mtu = min((port.mtu for port in node.ports), default=1500)
        lines += [
            f"link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"link set {BRIDGE} mtu {mtu}{_no_own_addresses(mtu)} up",
        ]
    for port in node.ports:
        told = _no_own_addresses(port.mtu)
        if port.shape.rate_bit_per_s <= WHOLE_FRAMES_BIT_PER_S:
            told += " gso_max_segs 1"
        if told:
            lines.append(f"link set dev {port.device}{told}")
        if port.address is None:
            lines.append(f"link set dev {port.device} master {BRIDGE}")
        else:
            lines.append(f"address add {port.address} broadcast + dev {port.device}")
        lines.append(f"link set dev {port.device} up")
    if node.kind == "host" and node.ports:
        lines.append(f"route add 224.0.0.0/4 dev {node.ports[0].device}")
    return lines


def _no_own_addresses(mtu: int) -> str:
    """The option of `ip link` against automatic addresses, whose discovery would be undeclared traffic.

    A device below the least MTU of IPv6 has no such addresses, and the kernel refuses the option.
    """
    return " addrgenmode none" if mtu >= LEAST_IPV6_BYTES else ""


def _settings(node: Node) -> dict[str, str]:
    values = {"net/ipv4/conf/all/rp_filter": "0", "net/ipv4/conf/default/rp_filter": "0"}
    values |= INDEPENDENT
    values |= {f"net/ipv4/conf/{port.device}/rp_filter": "0" for port in node.ports}
    if node.kind == "router":
        values["net/ipv4/ip_forward"] = "1"
        # Set only if a route has several next hops, because a kernel may lack the setting.
        if any(len(route.hops) > 1 for route in node.routes):
            values["net/ipv4/fib_multipath_hash_policy"] = "1" if node.hashes_ports else "0"
        # If a router has two links to a switch, only the link with the requested address may answer ARP, so
        # that frames arrive there.
        values["net/ipv4/conf/all/arp_ignore"] = "1"
    return values


def _shaped(node: Node, port: Port) -> list[str]:
    shape = port.shape
    if shape.rate_bit_per_s >= UNSHAPED_BIT_PER_S:
        return []
    burst = max(3 * (port.mtu + 64), shape.rate_bit_per_s * _BURST_NS // 8_000_000_000)
    if shape.rate_bit_per_s > WHOLE_FRAMES_BIT_PER_S:
        burst = max(burst, 2 * _SUPER_PACKET_BYTES)
    limit = _limit(node, shape)
    lines = [
        (
            f"qdisc add dev {port.device} root handle 1: {_counted(shape, port.mtu)}"
            f" tbf rate {shape.rate_bit_per_s}bit burst {burst} limit {limit}"
        )
    ]
    if node.kind != "host" and shape.queue_packets is not None:
        lines.append(f"qdisc add dev {port.device} parent 1:1 handle 10: pfifo limit {shape.queue_packets}")
    return lines


def _limit(node: Node, shape: Shape) -> int:
    if node.kind == "host" or shape.queue_bytes is None:
        return _HOST_QUEUE_BYTES
    return max(shape.queue_bytes, 1)


def _counted(shape: Shape, mtu: int) -> str:
    """The size table as `tc` takes it (`stab`): bytes that a frame takes on the line."""
    if shape.minimum_bytes == 0 and shape.overhead_bytes == 0:
        return ""
    if shape.minimum_bytes == 0:
        return f"stab overhead {shape.overhead_bytes} linklayer ethernet"
    # One entry for each byte of size, so that nothing is rounded.
    table = 2048
    while table < mtu + 64:
        table *= 2
    return (
        f"stab mtu {table} tsize {table} mpu {shape.minimum_bytes} overhead {shape.overhead_bytes}"
        " linklayer ethernet"
    )
