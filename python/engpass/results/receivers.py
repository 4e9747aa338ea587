"""The receivers of a multicast group, shown with figures of their own beside their flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from engpass.types.outcome import Drop, FlowOutcome, Outcome, Path, Place


def rows(outcome: Outcome) -> Iterator[tuple[str, str, FlowOutcome]]:
    """Yield all flows of an outcome by name, each followed by its receivers if it has several.

    The second item is the host of a receiver, or empty for a flow. A receiver has the name that `name` gives,
    and its own figures, bounds and path.
    """
    for flow, found in outcome.flows.items():
        yield flow, "", found
        for host in several(found):
            yield name(flow, host), host, _as_flow(found, host)


def several(flow: FlowOutcome) -> tuple[str, ...]:
    """The receiving hosts of a flow in the order of the file; empty if it has only one."""
    return tuple(flow.receivers) if len(flow.receivers) > 1 else ()


def each(flow: FlowOutcome) -> Iterator[tuple[str, FlowOutcome]]:
    """Yield the receivers of a flow by host, with their figures; a flow with one receiver has no host."""
    hosts = several(flow)
    yield from ((host, _as_flow(flow, host)) for host in hosts)
    if not hosts:
        yield "", flow


def seen_by(outcome: Outcome, flow: str, host: str) -> Outcome:
    """The outcome as one receiver of a group sees it; the other receivers become flows, after all others.

    `flow` gets the figures and the path of the receiver `host`, and the drops on that path. Of these,
    `datagrams` are the receiver's own, but `cells` are all that were lost there. Without a host, only the
    flows of the receivers are added.
    """
    # Flows stay in order, and receivers come after them.
    flows = outcome.flows | {row: found for row, behind, found in rows(outcome) if behind}
    drops = outcome.drops
    if host:
        flows[flow] = flows.pop(name(flow, host))
        group = outcome.flows[flow]
        drops = [drop for drop in drops if drop.flow != flow] + _losses(outcome, group, host, flow)
    return replace(outcome, flows=flows, drops=drops)


def _losses(outcome: Outcome, group: FlowOutcome, host: str, flow: str) -> list[Drop]:
    """The drops of a multicast flow that concern one receiver.

    A drop location counts a lost datagram once for each receiver behind it. A node may drop the packets of
    only some of these receivers: a single node therefore gets the losses that lines do not explain.
    """
    own = group.paths[list(group.receivers).index(host)]
    found = [drop for drop in outcome.drops if drop.flow == flow and _crosses(own, drop.place)]
    lines: list[Drop] = []
    nodes: list[Drop] = []
    for drop in found:
        behind = sum(_crosses(path, drop.place) for path in group.paths)
        one = replace(drop, datagrams=drop.datagrams // behind)
        (lines if drop.place.to is not None else nodes).append(one)
    counted = group.receivers[host].datagrams
    left = (counted.lost if counted is not None else 0) - sum(drop.datagrams for drop in lines)
    if len(nodes) == 1:
        nodes = [replace(nodes[0], datagrams=left)]
    return [drop for drop in (*lines, *nodes) if drop.datagrams > 0]


def _crosses(path: Path, place: Place) -> bool:
    """True if the path contains a drop location, which is a transmitter or a node."""
    if place.to is None:
        return any(place.node in (step.from_, step.to) for step in path.steps)
    return any((step.link, step.from_, step.to) == (place.link, place.node, place.to) for step in path.steps)


def name(flow: str, host: str) -> str:
    """The name of a receiver in tables, which no traffic in a file can have."""
    return f"{flow} to {host}" if host else flow


def membership(outcome: Outcome, row: str, host: str) -> dict[str, float | None]:
    """The columns of a row about joining and leaving a group; empty for a flow with several receivers."""
    flow = outcome.flows.get(row.removesuffix(f" to {host}") if host else row)
    if flow is None or (not host and len(flow.receivers) != 1):
        return {}
    receiver = flow.receivers[host] if host else next(iter(flow.receivers.values()))
    keys = ("member_share", "join_delay_s", "leave_delay_s")
    return {key: getattr(receiver, key) for key in keys}


def _as_flow(flow: FlowOutcome, host: str) -> FlowOutcome:
    receiver, place = flow.receivers[host], list(flow.receivers).index(host)
    return replace(
        flow,
        # Outcomes of earlier versions do not have a path for each receiver.
        paths=flow.paths[place : place + 1] if len(flow.paths) == len(flow.receivers) else flow.paths,
        goodput_bit_per_s=receiver.goodput_bit_per_s,
        offered_bit_per_s=receiver.offered_bit_per_s,
        datagrams=receiver.datagrams,
        delay_s=receiver.delay_s,
        outage=receiver.outage,
        receivers={},
        bottleneck=receiver.bottleneck,
        next_bottleneck=receiver.next_bottleneck,
        summary=receiver.summary,
        limit=receiver.limit,
    )
