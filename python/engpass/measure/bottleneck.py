"""Finds what limited a flow, from counters of the kernel. Pure functions.

Each finding has evidence and a weight from 0 to 1: how near to its bound something was, or the share of time
in which it held the sender back. The heaviest finding is the bottleneck, the second the next bottleneck. If
no finding weighs `ENOUGH`, the bottleneck is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from engpass import formatting
from engpass.limiter import ON_LINKS
from engpass.measure.answers import Changes, End, HostSeen
from engpass.measure.flows import Flow
from engpass.measure.line_usage import Line
from engpass.results.losses import Losses
from engpass.types.outcome import (
    Bottleneck,
    BottleneckKind,
    Drop,
    Finding,
    FlowOutcome,
    RealFlow,
    Requests,
    Tcp,
)

ENOUGH = 0.5
"""Least weight of a finding that makes it a bottleneck."""

_NEAR_LINK = 0.9
_OFFERED = 0.98
_JUST_BELOW = 0.99
_ON_THE_WAY: frozenset[BottleneckKind] = frozenset({"loss-on-the-way", "loss-of-fragments"})
_BUSY = 0.9
_OTHERS = 0.01
_MORE = 1.05
_WAITED = 0.1
_PER_CENT = 100.0
_HEAD_BYTES = 64


_UNKNOWN = Bottleneck(kind="unknown", title="unknown")


@dataclass(frozen=True)
class Explained:
    """The bottleneck of a flow, the next one, and the evidence."""

    bottleneck: Bottleneck
    next: Bottleneck | None
    summary: str
    """The evidence in a sentence."""
    findings: list[Finding]


def explained(
    flow: Flow,
    figures: FlowOutcome,
    ends: Mapping[str, End],
    hosts: Mapping[str, HostSeen],
    limit: FlowOutcome | None,
    lines: Sequence[Line] = (),
    drop: Drop | None = None,
) -> Explained:
    """Find the bottleneck of a flow and the next one.

    `figures` are the flow's rates and counts, `limit` is its outcome in the limit engine, and `lines` are the
    lines on its path that have ledgers. `drop` are most of its losses, if the network knows them.
    """
    full = _lines(figures, lines)
    found = [
        *_nothing(flow, figures, ends),
        *_application(flow, figures),
        *(full or _link(figures, limit)),
        *_tcp(figures),
        *_losses(flow, figures, ends.get(flow.receivers[0], End()), hosts, drop),
        *_cpus(flow, ends),
    ]
    if full:
        # The queue before a full line drops packets: the line is the cause, so it must weigh more than loss.
        most = full[0].weight * _JUST_BELOW
        found = [
            replace(one, weight=min(one.weight, most)) if one.bottleneck.kind in _ON_THE_WAY else one
            for one in found
        ]
    found.sort(key=lambda one: -one.weight)
    named = [one for one in found if one.weight >= ENOUGH]
    verb = "limit" if named and "` and `" in named[0].bottleneck.title else "limits"
    said = (
        f"{named[0].bottleneck.title} {verb} `{flow.name}`: {named[0].evidence}"
        if named
        else f"the bottleneck of `{flow.name}` is unknown: no measured resource was near its limit"
    )
    rest = found[1:] if named else found
    if rest:
        said += f"; next is {rest[0].bottleneck.title}: {rest[0].evidence}"
    return Explained(
        named[0].bottleneck if named else _UNKNOWN,
        rest[0].bottleneck if rest else None,
        said,
        [replace(one, weight=round(one.weight, 4)) for one in found],
    )


def _finding(
    kind: BottleneckKind, title: str, weight: float, evidence: str, name: str | None = None
) -> Finding:
    bottleneck = Bottleneck(kind=kind, name=name, title=title)
    return Finding(bottleneck=bottleneck, weight=weight, evidence=evidence)


def _real(figures: FlowOutcome) -> RealFlow:
    return figures.real or RealFlow()


def _requests(figures: FlowOutcome) -> Requests:
    return _real(figures).requests or Requests(per_s=0.0)


def _share(value: float) -> str:
    return f"{value * _PER_CENT:.0f} %"


def _application(flow: Flow, figures: FlowOutcome) -> list[Finding]:
    """Find a flow limited by its source: its schedule, a sender that falls behind it, or round trips."""
    kept = _real(figures).schedule_kept
    if kept is None:
        if flow.kind == "request-response":
            evidence = "each request waits for the previous response"
            return [_finding("round-trip", "the round trip", 1.0, evidence)]
        return []
    if kept < _OFFERED:
        if flow.kind == "tcp-stream":
            # A TCP write blocks while the connection waits, so the findings about TCP name the cause.
            return []
        weight = max(ENOUGH, min(1.0, 1.0 - kept + ENOUGH))
        evidence = f"it sent at {_share(kept)} of the requested rate"
        title = f"the sender of host `{flow.sender}`"
        return [_finding("sender", title, weight, evidence, flow.sender)]
    offered = figures.offered_bit_per_s
    came = figures.goodput_bit_per_s / offered if offered else 0.0
    if came < _OFFERED:
        return []
    evidence = f"{_share(min(came, 1.0))} of the offered load arrives"
    return [_finding("application", "the application", 1.0, evidence, flow.name)]


def _nothing(flow: Flow, figures: FlowOutcome, ends: Mapping[str, End]) -> list[Finding]:
    """Find a path that loses large packets: nothing arrived, though the small handshake packets did."""
    receiver, size = ends.get(flow.receivers[0], End()), flow.send.message_bytes
    if flow.kind == "request-response":
        silent = bool(_requests(figures).unanswered)
        size = max(size, flow.send.response_bytes or 0)
    else:
        silent = receiver.total_bytes == 0 and bool(figures.offered_bit_per_s)
    if not silent or figures.goodput_bit_per_s or size <= _HEAD_BYTES:
        return []
    evidence = (
        f"nothing arrived, although the two agents connected with packets of {_HEAD_BYTES} B of payload:"
        " larger packets do not pass because a link has a smaller MTU and no ICMP message informs the sender"
        " (`engpass path` finds the MTU), or the path failed"
    )
    return [_finding("large-packets", "loss of large packets", 1.0, evidence)]


def _link(figures: FlowOutcome, limit: FlowOutcome | None) -> list[Finding]:
    if limit is None or limit.bottleneck is None or not limit.goodput_bit_per_s:
        return []
    share = figures.goodput_bit_per_s / limit.goodput_bit_per_s
    if share < _NEAR_LINK or limit.bottleneck.kind not in ON_LINKS:
        return []
    evidence = f"the flow gets {_share(share)} of its fair share"
    if share > _MORE:
        evidence = f"the flow gets {share:.1f} times its fair share"
    return [Finding(bottleneck=limit.bottleneck, weight=min(share, 1.0), evidence=evidence)]


def _lines(figures: FlowOutcome, lines: Sequence[Line]) -> list[Finding]:
    """Find a line that was busy nearly all of the time, by its ledger.

    Of several full lines it is the busiest. If the flow loses more than 2 % of its datagrams it is the last:
    the queue in front of that line drops them.
    """
    full = [line for line in lines if line.busy >= _NEAR_LINK]
    if not full:
        return []
    losses = Losses.of(figures)
    lost = losses.lost / (losses.sent or 1)
    line = full[-1] if lost > 1 - _OFFERED else max(full, key=lambda one: one.busy)
    evidence = f"it is busy {_share(line.busy)} of the time"
    others = line.delivered - figures.goodput_bit_per_s / line.rate if line.rate else 0.0
    if others >= _OTHERS:
        evidence += f", and other flows get {_share(others)} of it"
    return [_finding("link", f"link `{line.link}`", min(1.0, line.busy), evidence, line.link)]


def _tcp(figures: FlowOutcome) -> list[Finding]:
    """Find the reasons why a TCP sender waited, by their shares of its busy time (`TCP_INFO`), and losses."""
    found = []
    tcp = figures.tcp or Tcp()
    window = tcp.receive_window_limited_share or 0.0
    buffer = tcp.send_buffer_limited_share or 0.0
    timer = tcp.timeout_share or 0.0
    if window:
        evidence = f"the sender waited for it {_share(window)} of the time"
        found.append(_finding("receive-window", "the receive window", window, evidence))
    if buffer:
        evidence = f"it was too small {_share(buffer)} of the time"
        found.append(_finding("send-buffer", "the send buffer", buffer, evidence))
    if timer:
        evidence = f"{formatting.count(tcp.timeouts or 0, 'timeout')} took {_share(timer)} of the time"
        found.append(_finding("retransmission-timer", "the retransmission timer", timer, evidence))
    if tcp.retransmitted_segments:
        # At most 0.8: a full line whose queue drops the segments must have more weight than the losses.
        weight = max(0.0, 1.0 - window - buffer - timer) * 0.8
        evidence = f"{formatting.count(tcp.retransmitted_segments, 'segment')} lost and retransmitted"
        found.append(_finding("congestion-window", "the congestion window", weight, evidence))
    return found


def refused_by_socket(end: End, host: HostSeen) -> int:
    """Count the datagrams that an end's sockets dropped; if no socket reports it, those of the whole host."""
    own = [stream.dropped for stream in end.streams if stream.dropped is not None]
    if own:
        return sum(own)
    return sum(host.grown.protocol(udp).get("RcvbufErrors", 0) for udp in ("Udp", "Udp6"))


def _losses(
    flow: Flow,
    figures: FlowOutcome,
    receiver: End,
    hosts: Mapping[str, HostSeen],
    drop: Drop | None,
) -> list[Finding]:
    """Find requests without an answer, or counters of the receiving host that saw the lost datagrams."""
    if missed := _requests(figures).unanswered:
        share = 1.0 - figures.goodput_bit_per_s / (figures.offered_bit_per_s or 1.0)
        evidence = f"{missed:,} requests ({_share(share)}) had no response within 1 s"
        return [_on_the_way(share, evidence)]
    losses = Losses.of(figures)
    lost, sent = losses.lost, losses.sent
    if not lost or not sent:
        return []
    host = hosts.get(flow.receivers[0], HostSeen())
    overflow = refused_by_socket(receiver, host)
    broken = _unassembled(host.grown)
    backlog = sum(core.dropped for core in host.grown.softnet)
    found = []
    buffers: tuple[tuple[BottleneckKind, str, int], ...] = (
        ("receiver-socket-buffer", "the receiver's socket buffer", overflow),
        ("receiver-backlog", "the receiver's packet backlog", backlog),
    )
    for kind, title, count in buffers:
        if count:
            evidence = f"it overflowed {count:,} times, and {lost:,} of {sent:,} datagrams are lost"
            found.append(_finding(kind, title, min(1.0, ENOUGH + count / sent), evidence))
    if broken:
        evidence = f"reassembly failed {broken:,} times, and {lost:,} of {sent:,} datagrams are lost"
        weight = min(1.0, ENOUGH + lost / sent)
        found.append(_finding("loss-of-fragments", "loss of fragments", weight, evidence))
    if not found:
        evidence = f"{lost:,} of {sent:,} datagrams are lost, "
        if drop is None:
            evidence += "and no counter of the receiver shows them"
        else:
            evidence += f"{drop.datagrams:,} of them at `{formatting.place_name(drop.place)}` ({drop.cause})"
        found.append(_on_the_way(lost / sent, evidence))
    return found


def _on_the_way(share: float, evidence: str) -> Finding:
    return _finding("loss-on-the-way", "loss on the path", min(1.0, ENOUGH + share), evidence)


def _unassembled(grown: Changes) -> int:
    """Count the failed reassemblies of fragments that arrived during the run.

    `ReasmFails` also counts fragments of an earlier run, which time out within a second after it. The
    fragments that arrived in this run (`ReasmReqds`) are therefore an upper bound.
    """
    found = 0
    for ip in ("Ip", "Ip6"):
        counted = grown.protocol(ip)
        found += min(counted.get("ReasmFails", 0), counted.get("ReasmReqds", 0))
    return found


def _cpus(flow: Flow, ends: Mapping[str, End]) -> list[Finding]:
    """Find threads that were hardly ever idle, or waited for a core.

    Ends that poll the clock between packets (`busy`, `hybrid`) are skipped: their CPU time is mostly waiting.
    """
    found = []
    for host, end in ends.items():
        cpu, lived_ns = end.spent_ns()
        if not lived_ns or end.pacing.method in ("busy", "hybrid"):
            continue
        share = cpu.used_ns / lived_ns
        found += _kept_from_it(host, end, cpu.waited_ns / lived_ns)
        if share >= _BUSY:
            sends = host == flow.sender
            doing = "sending" if sends else "receiving"
            evidence = f"its {doing} threads were busy {_share(min(share, 1.0))} of the time"
            kind: BottleneckKind = "sending-host" if sends else "receiving-host"
            title = f"the CPU of host `{host}`"
            found.append(_finding(kind, title, min(share, 1.0) * 0.95, evidence, host))
    return found


def _kept_from_it(host: str, end: End, waited: float) -> list[Finding]:
    """Find threads that were ready to run but had no core: other load took it, or the hypervisor."""
    found = []
    if waited >= _WAITED:
        evidence = f"other threads used the core for {_share(min(waited, 1.0))} of the time"
        title = f"other load of host `{host}`"
        found.append(_finding("other-load", title, min(waited, 1.0), evidence, host))
    used = {stream.core for stream in end.streams}
    cores = [core for core in end.cores if core.core in used]
    stolen = max((core.steal_ppm / 1e6 for core in cores), default=0.0)
    if stolen >= _WAITED:
        evidence = f"it took {_share(stolen)} of the time of core {', '.join(str(c.core) for c in cores)}"
        title = f"the hypervisor of host `{host}`"
        found.append(_finding("hypervisor", title, stolen, evidence, host))
    return found
