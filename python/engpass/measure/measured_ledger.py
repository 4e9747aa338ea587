"""Ledgers of a measured point: the use of every link that has an agent at one of its ends.

Pure functions. Agents count messages, and TCP counts segments (`TCP_INFO` at the edges of the window). With
the sizes of headers and the medium these counts give bits on the line. Counters of interfaces reveal
undeclared traffic. A link without an agent at either end has no ledger, because nothing counted its traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engpass.measure.answers import End, HostResult, HostSeen
from engpass.measure.bottleneck import refused_by_socket
from engpass.measure.flows import Flow
from engpass.measure.idle_reasons import Waits, divided, waits
from engpass.measure.line_usage import Kept
from engpass.measure.outcome import end_of
from engpass.measure.tcp_info import Tcp, subflows
from engpass.measure.wire_bits import UDP_BYTES, Wire
from engpass.results import ledger
from engpass.results.ledger import Hop
from engpass.types.outcome import DirectionOutcome, FlowOutcome, Ledger, LinkOutcome
from engpass.types.plan import LinkPlan, PointPlan

_S = 1_000_000_000
_QUIET_BYTES = 16_384
"""Uncounted bytes per run that ARP and handshakes of data connections explain; more is undeclared traffic."""

_NEARLY = 1.001
"""A line that carried more than this times its capacity was not limited to its rate, and gets a note."""


@dataclass
class Side:
    """One direction of a link while its ledger is made."""

    hop: Hop
    accounts: dict[str, int] = field(default_factory=dict)
    senders: list[Waits] = field(default_factory=list)
    own_bytes: int = 0
    """Bytes of declared traffic over the whole run, as an interface counter at this link counts them."""
    device: str | None = None

    def book(self, account: str, bits: int) -> None:
        """Add bits to an account."""
        if bits > 0:
            self.accounts[account] = self.accounts.get(account, 0) + bits

    def delivered(self, parts: Mapping[str, int], times: int) -> None:
        """Add the headers of `times` delivered messages; `parts` are the bits of one message by account."""
        for account, bits in parts.items():
            self.book(account, bits * times)

    def vain(self, account: str, parts: Mapping[str, int], payload: int, times: int = 1) -> None:
        """Add `times` messages to one account, headers and payload bytes together.

        Only physical framing keeps its own account.
        """
        framing = parts.get("physical framing", 0)
        self.book("physical framing", framing * times)
        self.book(account, (sum(parts.values()) - framing + 8 * payload) * times)


def books(
    numbers: PointPlan,
    flows: Sequence[Flow],
    results: Mapping[str, HostResult],
    hosts: Mapping[str, HostSeen],
    limits: Mapping[str, FlowOutcome],
) -> Kept:
    """Build the ledgers of a point's links; `limits` are the outcomes of its flows in the limit engine."""
    links = {link.name: link for link in numbers.links}
    sides = {
        hop: Side(hop)
        for name, link in links.items()
        for start, end in (link.ends, reversed(link.ends))
        for hop in ((name, start, end),)
        if hop[1] in results or hop[2] in results
    }
    for flow in flows:
        for receiver, path in zip(flow.receivers, flow.paths, strict=True):
            hops = ledger.hops(path)
            _Way(flow, receiver, hops, links, results, hosts, limits.get(flow.name)).book(sides.get)
    window = numbers.run.duration_ns - numbers.run.warmup_ns
    notes: list[str] = []
    found: dict[str, LinkOutcome] = {}
    for name, link in links.items():
        pair = [side for hop, side in sides.items() if hop[0] == name]
        if pair:
            for side in pair:
                _others(side, results, hosts, window)
            found[name] = _closed(link, pair, window, notes)
    if unseen := [f"`{name}`" for name in links if name not in found]:
        notes.append(f"no agent runs at the ends of {_links(unseen)}: packets on it were not counted")
    return Kept(found, {flow.name: ledger.hops(flow.paths[0]) for flow in flows}, notes, window / _S)


def _links(names: Sequence[str]) -> str:
    return f"link {names[0]}" if len(names) == 1 else f"links {', '.join(names)}"


class _Way:
    """The path of a flow to one receiver. Only its first and last link get entries: hosts count there."""

    def __init__(
        self,
        flow: Flow,
        receiver: str,
        hops: Sequence[Hop],
        links: Mapping[str, LinkPlan],
        results: Mapping[str, HostResult],
        hosts: Mapping[str, HostSeen],
        limit: FlowOutcome | None,
    ) -> None:
        self.flow, self.hops, self.links, self.hosts = flow, hops, links, hosts
        self.receiver = receiver
        self.sent, self.got = (
            end_of(results, flow, flow.sender, "send"),
            end_of(results, flow, receiver, "receive"),
        )
        self.leads = receiver == flow.receivers[0]
        bottleneck = None if limit is None else limit.bottleneck
        self.bound = len(hops)
        if bottleneck is not None and bottleneck.kind == "link":
            self.bound = next((i for i, hop in enumerate(hops) if hop[0] == bottleneck.name), len(hops))

    def _host(self, name: str) -> HostSeen:
        return self.hosts.get(name, HostSeen())

    def _wire(self, index: int) -> Wire:
        mtu = min(self.links[hop[0]].mtu_bytes for hop in self.hops[: index + 1])
        return Wire(self.links[self.hops[index][0]], mtu, v6=_local(self.sent).startswith("["))

    def book(self, side: Callable[[Hop], Side | None]) -> None:
        flow = self.flow
        tcp = flow.kind == "tcp-stream" or (
            flow.kind == "request-response" and flow.send.transport in (None, "tcp")
        )
        if tcp and subflows(self.sent) and subflows(self.got):
            self._subflows(side)
            return
        last = len(self.hops) - 1
        for index in sorted({0, last}):
            link, start, end = self.hops[index]
            there, back = side((link, start, end)), side((link, end, start))
            if there is None or back is None:
                continue
            if index == 0:
                there.device = back.device = _device(self._host(flow.sender), _local(self.sent), link)
            else:
                there.device = back.device = _device(self._host(self.receiver), _local(self.got), link)
            if not tcp and index == 0 and last > 0 and not self.leads:
                continue  # multicast datagrams leave the sender once: the first receiver posts them
            at = waits(flow, self.sent, behind=index > self.bound)
            there.senders.append(at)
            wire = self._wire(index)
            if tcp:
                ends = Tcp.of(self.sent), Tcp.of(self.got)
                self._segments(there, back, wire, *ends, first=index == 0)
            elif flow.kind == "request-response":
                self._questions(there, back, wire)
                back.senders.append(at)
            else:
                self._datagrams(there, wire, first=index == 0, last=index == last)

    # Datagrams

    def _datagrams(self, there: Side, wire: Wire, *, first: bool, last: bool) -> None:
        size = self.flow.send.message_bytes
        parts, counted = wire.of(size + UDP_BYTES, UDP_BYTES), wire.counted(size + UDP_BYTES)
        sent, fresh = self.sent.messages, self._fresh()
        lost = sent - fresh
        # Datagrams still queued when the window closed have left the sender and cross the last link later.
        late = fresh - fresh * self.flow.duration_ns // self.flow.arrived_ns(self.sent, self.got)
        came = fresh - late
        there.delivered(parts, came if last else fresh)
        there.book("delivered", came * size * 8)
        if not last:
            there.book("in flight", late * size * 8)
        if first:
            # Datagrams that a queue discipline of the sender dropped never crossed the link.
            device = self._host(self.flow.sender).grown.interface(there.device)
            dropped = max((queue.drops for queue in device.qdiscs), default=0)
            there.vain("lost datagrams", parts, size, max(0, lost - dropped))
            there.own_bytes += counted * (self.sent.total_messages or sent)
        elif last:
            # The receiver's socket is behind the link: datagrams that it dropped have crossed the link.
            refused = min(lost, refused_by_socket(self.got, self._host(self.receiver)))
            there.vain("lost datagrams", parts, size, refused)
            there.own_bytes += counted * ((self.got.total_messages or fresh) + refused)
            self._broken(there, wire, size)

    def _fresh(self) -> int:
        """Number of different datagrams that arrived, at most as many as were sent."""
        each = [self.got.sequence] if self.got.sequence else [one.sequence for one in self.got.streams]
        known = [one.received for one in each if one is not None]
        return min(self.sent.messages, sum(known) if known else self.got.messages)

    def _broken(self, there: Side, wire: Wire, size: int) -> None:
        """Enter fragments that arrived but were not reassembled, according to the receiver's IP counters."""
        packets = len(wire.packets(size + UDP_BYTES))
        counted = self._host(self.receiver).grown.protocol("Ip6" if wire.v6 else "Ip")
        came, whole = counted.get("ReasmReqds", 0), counted.get("ReasmOKs", 0)
        extra = max(0, came - whole * packets)
        if packets == 1 or not extra:
            return
        # The IP counters span the whole run: the window gets a share of them, by messages sent.
        total = self.sent.total_messages or self.sent.messages
        here = round(extra * self.sent.messages / total) if total else 0
        parts = wire.of(size + UDP_BYTES, UDP_BYTES)
        framing = parts.get("physical framing", 0) // packets
        each = (sum(parts.values()) + 8 * size) // packets
        there.book("physical framing", framing * here)
        there.book("lost datagrams", (each - framing) * here)
        there.own_bytes += wire.counted(size + UDP_BYTES) // packets * extra

    def _questions(self, there: Side, back: Side, wire: Wire) -> None:
        sent = self.sent.messages
        latency = self.sent.latency
        answered = sent if latency.count is None else min(sent, latency.count)
        total = self.sent.total_messages or sent
        asked = self.flow.send.message_bytes
        for side, size in ((there, asked), (back, self.flow.send.response_bytes or asked)):
            side.delivered(wire.of(size + UDP_BYTES, UDP_BYTES), answered)
            side.book("delivered", answered * size * 8)
            side.own_bytes += wire.counted(size + UDP_BYTES) * total

    # Segments

    def _subflows(self, side: Callable[[Hop], Side | None]) -> None:
        """Enter MPTCP subflows, each on the link whose interface has the address of the subflow."""
        sent, got = subflows(self.sent), subflows(self.got)
        flow, booked = self.flow, set()
        for first, host, ends in ((True, flow.sender, sent), (False, self.receiver, got)):
            devices = [_device(self._host(host), one.local, "") for one in ends]
            for name, link in self.links.items():
                here = [one for one, device in zip(ends, devices, strict=True) if device == name]
                if not here or name in booked or host not in link.ends:
                    continue
                booked.add(name)
                other = next(end for end in link.ends if end != host)
                start, end = (host, other) if first else (other, host)
                there, back = side((name, start, end)), side((name, end, start))
                if there is None or back is None:
                    continue
                there.device = back.device = name
                there.senders.append(waits(flow, self.sent, behind=not first and self.bound == 0))
                local = {one.local for one in here}
                across = [one for one in (got if first else sent) if one.remote in local]
                pair = (here, across) if first else (across, here)
                mtu = min(self.links[hop[0]].mtu_bytes for hop in self.hops)
                wire = Wire(link, min(mtu, link.mtu_bytes), v6=here[0].local.startswith("["))
                self._segments(there, back, wire, Tcp.over(pair[0]), Tcp.over(pair[1]), first=first)

    def _segments(
        self, there: Side, back: Side, wire: Wire, sender: Tcp, receiver: Tcp, *, first: bool
    ) -> None:
        near = sender if first else receiver
        if not near.known:
            there.senders.append(Waits({"unknown": 1.0}, elastic=True))
            return
        streams = [(there, sender, receiver)]
        if self.flow.kind == "request-response":
            streams.append((back, receiver, sender))
        for side, source, sink in streams:
            _stream(side, wire, source, sink, near)
        header = wire.segment(0, near.options)
        acks_in = max(0, near.grew("segs_in") - near.grew("data_segs_in"))
        acks_out = max(0, near.grew("segs_out") - near.grew("data_segs_out"))
        towards, away = (back, there) if first else (there, back)
        towards.vain("ACK and control", header, 0, acks_in)
        away.vain("ACK and control", header, 0, acks_out)
        counted = wire.counted(20 + near.options)
        towards.own_bytes += near.whole("bytes_received") + near.whole("segs_in") * counted
        away.own_bytes += near.whole("bytes_sent") + near.whole("segs_out") * counted


def _stream(side: Side, wire: Wire, source: Tcp, sink: Tcp, near: Tcp) -> None:
    """Enter the data segments from `source` to `sink`, as counted by the end at this link (`near`)."""
    if near is source:
        segments, carried = source.grew("data_segs_out"), source.grew("bytes_sent")
        twice = min(source.again, source.twice)
        dead = source.again - twice
        new = max(0, carried - source.again)
        given = min(new, sink.grew("bytes_received")) if sink.known else new
    else:
        segments, new = sink.grew("data_segs_in"), sink.grew("bytes_received")
        given, dead, twice = new, 0, min(source.again, source.twice) if source.known else 0
    if segments <= 0:
        return
    mean = max(1, (new + dead + twice) // segments)
    vain = min(segments, dead // mean)
    parts = wire.segment(mean, near.options)
    side.delivered(parts, segments - vain)
    side.vain("lost datagrams", parts, 0, vain)
    side.book("lost datagrams", dead * 8)
    side.book("delivered", given * 8)
    side.book("in flight", (new - given) * 8)
    side.book("duplicate", twice * 8)


def _local(end: End) -> str:
    """The local address and port of an end's first stream, as the kernel chose them."""
    return end.streams[0].granted.local if end.streams else ""


def _device(host: HostSeen, local: str, link: str) -> str:
    """The name of the interface with this address; else the name of the link, which namespaces use for it."""
    address = local.rpartition(":")[0].strip("[]")
    for entry in host.host.addresses if host.host else ():
        if entry.bare == address:
            return entry.interface
    return link


def _others(
    side: Side, results: Mapping[str, HostResult], hosts: Mapping[str, HostSeen], window: int
) -> None:
    """Enter undeclared traffic: bytes that the interface counted beyond the declared ones, for the window."""
    _, start, end = side.hop
    host = start if start in results else end
    if side.device is None:
        return
    whole = results[host].after.at_ns - results[host].before.at_ns
    device = hosts.get(host, HostSeen()).grown.interface(side.device)
    beyond = (device.tx_bytes if host == start else device.rx_bytes) - side.own_bytes
    if whole > 0 and beyond > max(_QUIET_BYTES, side.own_bytes // 200):
        side.book("undeclared traffic", round(beyond * 8 * min(1.0, window / whole)))


def _closed(link: LinkPlan, pair: Sequence[Side], window: int, notes: list[str]) -> LinkOutcome:
    """Close the ledgers of both directions of a link: idle time fills them up to the line's capacity."""
    directions = []
    for side in pair:
        capacity = link.rates_bit_per_s[link.ends.index(side.hop[1])] * window // _S
        # Data of TCP that is still in a queue discipline of the sender has not crossed the line.
        queued = min(side.accounts.get("in flight", 0), max(0, sum(side.accounts.values()) - capacity))
        if queued:
            side.accounts["in flight"] -= queued
        carried = sum(side.accounts.values())
        if carried > capacity * _NEARLY:
            over = 100 * (carried / capacity - 1)
            notes.append(
                f"link `{link.name}` carried {over:.1f} % more than its rate from `{side.hop[1]}` on:"
                " its ledger counts the carried bits as capacity"
            )
        whole = max(capacity, carried)
        accounts = {name: bits for name, bits in side.accounts.items() if bits}
        accounts |= divided(whole - carried, side.senders)
        used = {name: accounts[name] for name in ledger.ordered(accounts)}
        kept = Ledger(units_per_bit=1, capacity=whole, accounts=used)
        directions.append(DirectionOutcome(from_=side.hop[1], to=side.hop[2], ledger=kept))
    return LinkOutcome(directions=directions)
