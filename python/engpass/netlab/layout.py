"""Plans the namespaces, links, addresses and routes of a testbed. Pure functions.

A host or router is a namespace, an Ethernet switch is a namespace with a bridge, and a link is a pair of veth
devices. Links that bridges join are one segment with one IPv4 network. Every host behind a router has its own
route: the core names the next hops (`gateways` of `Campaign.numbers`).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from math import gcd

import msgspec

from engpass.types.plan import GatewayPlan, HopPlan, LinkPlan, NodePlan, PointPlan

POOL = ipaddress.IPv4Network("10.64.0.0/10")
"""Pool of IPv4 addresses; they exist only in the testbed's own namespaces."""

POOL6 = ipaddress.IPv6Network("fd65:6e67:7061:7373::/64")
"""Pool of IPv6 addresses (RFC 4193; its identifier spells the name of the program)."""

DEVICE, TAP = "tun0", "tap0"
"""Name of the only device of a host in an emulated network, without and with Ethernet."""

LEAST_IPV6_BYTES = 1280
"""Least MTU in bytes of a link that carries IPv6 (RFC 8200 section 5)."""

BRIDGE = "bridge"
"""Name of the bridge device in the namespace of a switch."""

HEAVIEST = 256
"""Greatest weight of a next hop that `ip route` accepts; the least is 1."""

COUNTED_BYTES = 14
"""Bytes that the kernel counts for a frame of an Ethernet device in addition to its IP packet."""

_NAME_BYTES = 15  # IFNAMSIZ less the terminator


class Shape(msgspec.Struct, frozen=True):
    """How the transmitter at one end of a link is limited to a rate."""

    rate_bit_per_s: int
    overhead_bytes: int
    """Bytes that a frame takes on the line beyond those that the kernel counts; may be negative."""
    minimum_bytes: int
    """Least bytes that a frame takes on the line."""
    queue_packets: int | None
    queue_bytes: int | None


class Port(msgspec.Struct, frozen=True):
    """One end of a link: the device of a node."""

    link: int
    device: str
    mtu: int
    address: ipaddress.IPv4Interface | None
    """IPv4 address of the device with its network; `None` at a bridge."""
    shape: Shape


class NextHop(msgspec.Struct, frozen=True):
    """One of the next hops of a route."""

    via: ipaddress.IPv4Address
    device: str
    weight: int
    """Weight of the next hop among those of its route, from 1 to `HEAVIEST`."""


class Route(msgspec.Struct, frozen=True):
    """A route to an address in another network."""

    to: ipaddress.IPv4Address
    hops: tuple[NextHop, ...]
    """The next hops; if there are several, a hash of the packet's headers chooses one."""


class Node(msgspec.Struct):
    """A node of the testbed, which becomes a namespace."""

    name: str
    kind: str
    """`host`, `router` or `ethernet switch`."""
    label: str
    """A form of the node's name that a namespace can have, unique in the testbed."""
    ports: list[Port] = msgspec.field(default_factory=list)
    routes: list[Route] = msgspec.field(default_factory=list)
    hashes_ports: bool = True
    """True if a router's hash covers ports, in addition to addresses and protocol."""


class Layout(msgspec.Struct, frozen=True):
    """The nodes, links and addresses of a testbed, for the kernel."""

    nodes: dict[str, Node]
    links: list[tuple[tuple[str, Port], tuple[str, Port]]]
    ways: dict[tuple[str, str], ipaddress.IPv4Address]
    """By sender and receiver: the receiver's address on the link where the shortest path ends."""

    def hosts(self) -> list[Node]:
        """The nodes that are hosts, in the order of the file."""
        return [node for node in self.nodes.values() if node.kind == "host"]


def layout(numbers: PointPlan) -> Layout:
    """The layout of a testbed that veth can carry; `numbers` as `Campaign.numbers` gives them."""
    kinds = dict.fromkeys(numbers.hosts, "host")
    kinds |= {name: between.kind for name, between in numbers.between.items()}
    labels = _unique({name: _label(name) for name in kinds})
    nodes = {name: Node(name, kind, labels[name]) for name, kind in kinds.items()}
    for name, between in numbers.between.items():
        nodes[name].hashes_ports = between.hash != "layer-3"
    links = numbers.links
    devices = _devices([link.name for link in links])
    addresses = _addresses(links, kinds)
    pairs = []
    for index, link in enumerate(links):
        pair = []
        for end, name in enumerate(link.ends):
            port = Port(
                index, devices[index], link.mtu_bytes, addresses.get((index, name)), _shape(link, end)
            )
            nodes[name].ports.append(port)
            pair.append((name, port))
        pairs.append((pair[0], pair[1]))
    at = {(links[port.link].name, name): port for name, node in nodes.items() for port in node.ports}
    for gateway in numbers.gateways:
        taken = hops(gateway, numbers.between)
        weights = lightest([hop.weight for hop in taken])
        found = tuple(
            NextHop(_address(at, hop.via), at[hop.over, gateway.at].device, weight)
            for hop, weight in zip(taken, weights, strict=True)
        )
        nodes[gateway.at].routes.append(Route(_address(at, gateway.to), found))
    ways = {(way.from_, way.to): _address(at, (way.last_link, way.to)) for way in numbers.ways}
    return Layout(nodes, pairs, ways)


def hops(gateway: GatewayPlan, between: Mapping[str, NodePlan]) -> list[HopPlan]:
    """The next hops that a node uses: all if its ECMP policy is a hash, else the first one."""
    node = between.get(gateway.at)
    return gateway.hops if node is not None and node.hash is not None else gateway.hops[:1]


def lightest(weights: Sequence[int]) -> list[int]:
    """The smallest whole numbers in the ratios of the weights."""
    divisor = gcd(*weights)
    return [weight // divisor for weight in weights]


def _address(at: Mapping[tuple[str, str], Port], end: Sequence[str]) -> ipaddress.IPv4Address:
    """The address at an end of a link, given as link and node; the node must not be a switch."""
    link, name = end
    address = at[link, name].address
    assert address is not None  # noqa: S101 (only switches have none)
    return address.ip


class Station(msgspec.Struct, frozen=True):
    """A host of an emulated network: a namespace with one device, one IPv4 and one IPv6 address."""

    name: str
    label: str
    address: ipaddress.IPv4Address
    address6: ipaddress.IPv6Address


def stations(numbers: PointPlan) -> dict[str, Station]:
    """The hosts of an emulated network, in the order of the file; the model holds all other nodes."""
    labels = _unique({name: _label(name) for name in numbers.hosts})
    return {
        name: Station(name, labels[name], POOL[number], POOL6[number])
        for number, name in enumerate(numbers.hosts, 1)
    }


def routers(numbers: PointPlan) -> dict[str, tuple[str, str]]:
    """Source addresses of ICMP messages by router of an emulated network; they follow those of the hosts."""
    names = [name for name, between in numbers.between.items() if between.kind == "router"]
    first = len(numbers.hosts) + 1
    return {name: (str(POOL[number]), str(POOL6[number])) for number, name in enumerate(names, first)}


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:48]


def _unique(names: dict[str, str]) -> dict[str, str]:
    used: set[str] = set()
    for key, name in names.items():
        candidate, number = name or "_", 2
        while candidate in used:
            candidate, number = f"{name}_{number}", number + 1
        used.add(candidate)
        names[key] = candidate
    return names


def _devices(links: list[str]) -> list[str]:
    """Names of the devices of links: the link's name if the kernel accepts it, else `link` and a number."""
    taken = {"lo", BRIDGE, ".", "..", "all", "default"}
    found = []
    for index, link in enumerate(links):
        fit = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", link) and len(link) <= _NAME_BYTES
        name = link if fit and link not in taken else f"link{index}"
        while name in taken:
            name = f"{name}_"
        taken.add(name)
        found.append(name)
    return found


def _addresses(
    links: list[LinkPlan], kinds: Mapping[str, str]
) -> dict[tuple[int, str], ipaddress.IPv4Interface]:
    """An address for every end of a link except at switches, by the link's index and the node."""
    segment = list(range(len(links)))

    def find(link: int) -> int:
        while segment[link] != link:
            link = segment[link]
        return link

    first_at: dict[str, int] = {}
    for index, link in enumerate(links):
        for name in link.ends:
            if kinds[name] == "ethernet switch":
                other = first_at.setdefault(name, index)
                low, high = sorted((find(index), find(other)))
                segment[high] = low
    members: dict[int, list[tuple[int, str]]] = {}
    for index, link in enumerate(links):
        ends = [(index, name) for name in link.ends if kinds[name] != "ethernet switch"]
        members.setdefault(find(index), []).extend(ends)
    addresses = {}
    begin = int(POOL.network_address)
    for ends in members.values():
        # Two addresses of a network are no host's: that of the network itself, and its broadcast address.
        bits = max(8, (len(ends) + 1).bit_length())
        size = 1 << bits
        begin = -(-begin // size) * size
        for number, end in enumerate(ends, 1):
            addresses[end] = ipaddress.IPv4Interface((begin + number, 32 - bits))
        begin += size
    return addresses


def _shape(link: LinkPlan, end: int) -> Shape:
    queue = link.queues[end]
    return Shape(
        link.rates_bit_per_s[end],
        link.overhead_bytes - COUNTED_BYTES,
        link.least_bytes,
        queue.packets if queue else None,
        queue.bytes if queue else None,
    )
