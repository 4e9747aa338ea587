"""Arranges the nodes of a testbed's diagram in layers along the traffic, with few crossings.

Senders come first, receivers last, switches and routers between them. A node without traffic comes one layer
before or after a neighbour.
"""

from collections import Counter
from collections.abc import Container, Mapping
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from engpass.formatting import clean
from engpass.types.plan import Drawing, DrawnCircuit, DrawnFlow, DrawnTunnel

MAX_NODES = 100
MOST_FLOWS = 8
"""Maximum number of nodes in a drawing, and of flows with a lane in it."""

_NAMED = 3
"""Maximum number of receivers of a multicast group whose names are shown."""


class Link(msgspec.Struct, frozen=True):
    """A link of the drawing, with the indices of its two nodes.

    `of` links join these nodes; this one has the index `parallel`, from 0.
    """

    name: str
    ends: tuple[int, int]
    medium: str
    rates: tuple[float, ...]
    """Line rates in bit/s from the first end and from the second; empty if an old store has none."""
    parallel: int
    of: int


class Route(msgspec.Struct, frozen=True):
    """The route of a flow, circuit or tunnel: indices of its nodes, fewer than two if it has no route."""

    name: str
    kind: str
    nodes: tuple[int, ...]
    ends: tuple[str, str]
    steps: tuple[tuple[int, int, str], ...] = ()
    """The links of all paths as (node before, node after, link name), if the flow has more than one path."""

    @property
    def hops(self) -> tuple[tuple[int, int, str], ...]:
        """Both nodes of each link on the route, and the name of the link, which is empty if unknown."""
        return self.steps or tuple((a, b, "") for a, b in pairwise(self.nodes))


class Graph(msgspec.Struct, frozen=True):
    """A topology with numbered nodes, as name and kind; links to unknown nodes are omitted."""

    nodes: tuple[tuple[str, str], ...]
    links: tuple[Link, ...]
    circuits: tuple[Route, ...]
    tunnels: tuple[Route, ...]
    bonds: tuple[str, ...]
    """A description of each bond."""
    flows: tuple[Route, ...]
    hidden: str = ""
    """A note on the omitted nodes and flows; empty if there are none."""


def read(topology: Drawing) -> Graph:
    """The graph of a topology; a large one is reduced to a part that fits into a drawing."""
    topology, hidden = _part(topology)
    index = {node.name: i for i, node in enumerate(topology.nodes)}
    nodes = tuple((clean(node.name), clean(node.kind)) for node in topology.nodes)
    drawn = [
        (raw, ends)
        for raw in topology.links
        if len(ends := [index[end] for end in raw.ends if end in index]) == 2 and ends[0] != ends[1]
    ]
    pairs = [(min(ends), max(ends)) for _, ends in drawn]
    of, before = Counter(pairs), Counter[tuple[int, int]]()
    links = []
    for (raw, ends), pair in zip(drawn, pairs, strict=True):
        medium, rates = clean(raw.medium), tuple(raw.rates_bit_per_s)
        links.append(Link(clean(raw.name), (ends[0], ends[1]), medium, rates, before[pair], of[pair]))
        before[pair] += 1
    circuits = tuple(_route(raw, "", index, of) for raw in topology.circuits)
    tunnels = tuple(_route(raw, clean(raw.header), index, of) for raw in topology.tunnels)
    bonds = tuple(
        f"bond {clean(raw.name)}: {raw.mode}, {clean(raw.node)} → {clean(raw.to)},"
        f" {', '.join(clean(link) for link in raw.links)}"
        for raw in topology.bonds
    )
    flows = tuple(_route(raw, clean(raw.kind), index, of) for raw in topology.flows)
    return Graph(nodes, tuple(links), circuits, tunnels, bonds, flows, hidden)


def _part(topology: Drawing) -> tuple[Drawing, str]:
    """Reduce a topology with too many nodes to the routes of its first flows; also a note on the rest."""
    nodes, all_flows = topology.nodes, topology.flows
    if len(nodes) <= MAX_NODES:
        return topology, ""
    flows: list[DrawnFlow] = []
    drawn: set[str] = set()
    for flow in all_flows[:MOST_FLOWS]:
        passed = {*(flow.route or (flow.from_, flow.to)), *(one.from_ for one in flow.steps)}
        # If a multicast group has too many receivers, only the route to the first one is drawn.
        every = passed | {one.to for one in flow.steps}
        if len(drawn | every) <= MAX_NODES:
            passed = every
        if len(drawn | passed) <= MAX_NODES:
            flows.append(flow)
            drawn |= passed
    drawn = drawn or {node.name for node in nodes[:MAX_NODES]}
    part = replace(
        topology,
        nodes=[node for node in nodes if node.name in drawn],
        links=[link for link in topology.links if drawn.issuperset(link.ends)],
        circuits=[one for one in topology.circuits if drawn.issuperset(one.route)],
        tunnels=[one for one in topology.tunnels if drawn.issuperset(one.route)],
        bonds=[one for one in topology.bonds if drawn.issuperset((one.node, one.to))],
        flows=flows,
    )
    return part, (
        f"{len(nodes) - len(part.nodes):,} of {len(nodes):,} nodes and"
        f" {len(all_flows) - len(flows):,} of {len(all_flows):,} flows are not drawn"
    )


def _route(
    raw: DrawnCircuit | DrawnTunnel | DrawnFlow,
    kind: str,
    index: Mapping[str, int],
    joined: Container[tuple[int, int]],
) -> Route:
    nodes = tuple(index.get(node, -1) for node in raw.route)
    if any((min(a, b), max(a, b)) not in joined for a, b in pairwise(nodes)):
        nodes = ()
    drawn = raw.steps if isinstance(raw, DrawnFlow) and nodes else []
    steps = tuple(
        (index[one.from_], index[one.to], clean(one.link))
        for one in drawn
        if one.from_ in index and one.to in index
    )
    first, last = raw.ends if isinstance(raw, DrawnTunnel) else (raw.from_, _receivers(raw))
    return Route(clean(raw.name), kind, nodes, (clean(first), clean(last)), steps)


def _receivers(raw: DrawnCircuit | DrawnFlow) -> str:
    """The name of the receiving host, or the names of the first receivers of a multicast group."""
    named = raw.receivers if isinstance(raw, DrawnFlow) and raw.receivers else [raw.to]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more


def layers(graph: Graph) -> list[list[int]]:
    """The nodes in layers, every node once, each layer in drawing order."""
    level = _levels(graph)
    depth = max(level.values(), default=0)
    rows: list[list[int]] = [[] for _ in range(depth + 1)]
    for node in range(len(graph.nodes)):
        rows[level[node]].append(node)
    rows = [row for row in rows if row]
    neighbours: dict[int, list[int]] = {node: [] for node in range(len(graph.nodes))}
    for link in graph.links:
        neighbours[link.ends[0]].append(link.ends[1])
        neighbours[link.ends[1]].append(link.ends[0])
    for sweep in range(6):
        order = range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1)
        for at in order:
            beside = [rows[i] for i in (at - 1, at + 1) if 0 <= i < len(rows)]
            place = {node: (i + 0.5) / len(row) for row in beside for i, node in enumerate(row)}
            now = {node: (i + 0.5) / len(rows[at]) for i, node in enumerate(rows[at])}

            def middle(
                node: int, place: Mapping[int, float] = place, now: Mapping[int, float] = now
            ) -> float:
                known = [place[other] for other in neighbours[node] if other in place]
                return sum(known) / len(known) if known else now[node]

            rows[at].sort(key=middle)
    return rows


def _levels(graph: Graph) -> dict[int, int]:
    """The layer of each node: its longest distance from a sender along the routes of the traffic.

    An edge that would close a cycle is ignored.
    """
    after: dict[int, list[int]] = {node: [] for node in range(len(graph.nodes))}
    for route in (*graph.flows, *graph.circuits):
        for a, b, _ in route.hops:
            if b not in after[a] and not _reaches(after, b, a):
                after[a].append(b)
    level: dict[int, int] = {}
    routed = {node for node, following in after.items() if following} | {b for f in after.values() for b in f}
    pending = sorted(routed)
    while pending:
        for node in pending:
            ahead = [a for a in routed if node in after[a]]
            if all(a in level for a in ahead):
                level[node] = 1 + max((level[a] for a in ahead), default=-1)
        pending = [node for node in pending if node not in level]
    # Move each sender to the layer right before its next node, not to the far end of the drawing.
    for node in sorted(routed, key=lambda node: -level[node]):
        if after[node] and not any(node in after[a] for a in routed):
            level[node] = min(level[b] for b in after[node]) - 1
    _spread(graph, level)
    lowest = min(level.values(), default=0)
    return {node: at - lowest for node, at in level.items()}


def _reaches(after: Mapping[int, list[int]], start: int, goal: int) -> bool:
    seen, queue = {start}, [start]
    for node in queue:
        if node == goal:
            return True
        queue.extend(b for b in after[node] if b not in seen)
        seen.update(after[node])
    return False


def _spread(graph: Graph, level: dict[int, int]) -> None:
    """Assign layers to the nodes without traffic: hosts before their neighbour, other nodes after it."""
    if not level and graph.nodes:
        level[0] = 0
    while len(level) < len(graph.nodes):
        near = [
            (new, old)
            for link in graph.links
            for new, old in (link.ends, link.ends[::-1])
            if new not in level and old in level
        ]
        if near:
            new, old = near[0]
            level[new] = level[old] - 1 if graph.nodes[new][1] == "host" else level[old] + 1
        else:
            level[next(node for node in range(len(graph.nodes)) if node not in level)] = 0
