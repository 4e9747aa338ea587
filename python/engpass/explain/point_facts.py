"""The facts about one flow at one point: outcomes, ledgers, drops, limit and settings."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import msgspec

from engpass import formatting
from engpass.explain.service import WAIT, Needs, Served
from engpass.explain.shaken import Shaken
from engpass.results import above_limit, ledger, receivers
from engpass.results.above_limit import GENERATORS
from engpass.results.ledger import Books, Direction
from engpass.results.samples import DELAY_P99, FLOW_SIGNALS, LONGEST_GAP, OFFERED, SENT, folded
from engpass.settings import Settings
from engpass.types.outcome import Candidate, DirectionOutcome, FlowOutcome, Outcome, Place
from engpass.types.plan import Drawing, QueuePlan
from engpass.types.signals import Signal

FULL = 0.01
"""A line that is idle for less than this share of the time counts as full."""

SPARE = 0.05
"""A line that routers leave idle for at least this share of the time counts as spare."""

TWICE = 0.001
"""If segments that arrive twice take more than this share of a line, TCP retransmits too much."""

DOWN = "line down"
"""The cause of losses on a line that is down; with `idle: ` before it, the account of its idle time."""

INACTIVE = "inactive member"
"""The cause of losses at a host whose bond receives only on another, active member."""

TOO_BIG = "too big"
"""The cause of losses of packets longer than the MTU that a router may not fragment."""

INPUT_FULL = "input queue full"
"""The cause of losses of packets for which the input queue of a router has no room."""

HOLD_FULL = "ARP hold full"
"""The cause of losses if a router's queue of packets that wait for ARP is full."""

NO_REPLY = "no ARP reply"
"""The cause of losses of packets that waited in a router for ARP, which got no reply."""

OUT_OF_TIME = "reassembly timeout"
"""The cause of losses of fragments that wait too long for others at the end of a tunnel."""

OUT_OF_SEQUENCE = "out of sequence"
"""The cause of losses of packets that leave a tunnel after packets that entered it later."""

EXPIRED = "time to live"
"""The cause of losses of packets that cross more routers than their TTL allows."""

LOW_PRIORITY = "CLP threshold"
"""The cause of losses of cells of low priority in a queue that has room for others only."""

NO_MEMORY = "reassembly memory"
"""The cause of losses of fragments for whose reassembly the end of a tunnel has no memory."""


_PASSED = ("link", "shaper", "policer", "token-bucket", "router")
"""Kinds of bottlenecks on the path through which all datagrams must pass at a certain rate."""


class Hop(msgspec.Struct, frozen=True):
    """One line of the flow's path in the flow's direction; `books` is its ledger, if the engine has one."""

    link: str
    start: str
    end: str
    rate: float | None
    """Line rate in bit/s."""
    cells: int
    """Cells that the line could carry during the measurement window; 0 for a line without cells."""
    books: Books | None

    @property
    def place(self) -> str:
        """The name of the line where drops are listed: `start → end`."""
        return f"{self.start} → {self.end}"

    def is_at(self, place: Place) -> bool:
        """True if a place of drops is the transmitter of this line."""
        return (place.link, place.node, place.to) == (self.link, self.start, self.end)

    @property
    def idle(self) -> float:
        """Share of the time in which the line sends nothing; 1 without a ledger."""
        return self.books.idle if self.books is not None else 1.0


class Drop(msgspec.Struct, frozen=True):
    """Drops of one flow at one place by one cause, as the mean over the repeats."""

    place: Place
    cause: str
    flow: str
    cells: float
    datagrams: float

    def to_json(self, parallel: frozenset[str] = frozenset()) -> dict[str, str | float]:
        """The drops as JSON data; the place includes the name of its link if that is one of `parallel`."""
        return {
            "place": formatting.place_name(self.place, parallel, "->"),
            "cause": self.cause,
            "flow": self.flow,
            "cells": self.cells,
            "datagrams": self.datagrams,
        }


class Bond(msgspec.Struct, frozen=True):
    """Links of a node that act as one interface."""

    name: str
    node: str
    links: tuple[str, ...]
    mode: str
    """The kind of the bond's mode, such as `round-robin`."""


class Situation(msgspec.Struct, frozen=True, dict=True):
    """One flow at one point of a testbed: the outcomes of all repeats, and facts derived from them."""

    settings: Settings
    topology: Drawing
    flow: str
    outcomes: tuple[Outcome, ...]
    limits: Outcome
    """The limit engine's outcome for this point."""
    receiver: str = ""
    """If the flow has several receivers: the one from which the outcomes are seen."""
    disciplines: Mapping[tuple[str, str], QueuePlan] = {}
    """The queue disciplines by transmitter, as link and node."""
    down: Mapping[str, float] = {}
    """The share of the measured time in which a link is down, for links that are down in it.

    A line that sends while it is down is not idle, so its ledger has less.
    """
    shaken: Shaken | None = None
    """The shares of TCP flows with a jitter, if these differ much and nothing is random without it."""

    def __post_init__(self) -> None:
        if not self.outcomes:
            raise AssertionError("a situation has at least one outcome")

    @property
    def kind(self) -> str:
        """Kind of the flow's traffic, such as `tcp-stream`."""
        return self._flows[0].kind

    @property
    def tcp(self) -> bool:
        """True if the flow is TCP, which slows down after a loss."""
        return self.kind == "tcp-stream"

    @property
    def title(self) -> str:
        """The name of the flow in tables, with the receiver if it has several."""
        return receivers.name(self.flow, self.receiver)

    @property
    def ends(self) -> tuple[str, str]:
        """The sending and the receiving host of the flow."""
        for flow in self.topology.flows:
            if flow.name == self.flow:
                return flow.from_, self.receiver or flow.to
        return "", ""

    @property
    def _flows(self) -> list[FlowOutcome]:
        return [outcome.flows[self.flow] for outcome in self.outcomes]

    def folded(self, signal: Signal) -> float | None:
        """The value of a signal of the flow over the repeats; `None` if no outcome has one."""
        return self.served.values.get(signal)

    def per_repeat(self, name: str) -> float | None:
        """The value of a signal of the flow by name; of a count, the mean of the repeats."""
        signal = FLOW_SIGNALS[name]
        found = self.folded(signal)
        return found / len(self.outcomes) if found is not None and signal.fold == "sum" else found

    @property
    def goodput(self) -> float:
        """Mean goodput of the flow over the repeats, in bit/s."""
        return self.served.goodput

    @property
    def offered(self) -> float:
        """Mean offered rate in bit/s."""
        return self.folded(OFFERED) or 0.0

    @property
    def sent(self) -> float:
        """Datagrams or segments that the flow sent, per repeat."""
        return self.per_repeat("sent_datagrams") or 0.0

    def sent_by(self, flow: str) -> float:
        """Datagrams that another flow sent, per repeat; 0 if the engine does not count them."""
        return (folded((one.flows[flow] for one in self.outcomes), SENT) or 0.0) / len(self.outcomes)

    @property
    def marked(self) -> bool:
        """True if a queue on the path sets ECN marks."""
        queues = (self.disciplines.get((hop.link, hop.start)) for hop in self.hops)
        return any(queue is not None and queue.marks for queue in queues)

    @property
    def arrives_twice(self) -> bool:
        """True if segments that arrive twice take a notable part of a line on the path."""
        shares = [hop.books.share("duplicate") for hop in self.hops if hop.books is not None]
        return max(shares, default=0.0) > TWICE

    @property
    def limit(self) -> float:
        """The goodput to expect, in bit/s: the fair share, or the bound if that is lower."""
        return self.needs.limit

    @property
    def limit_name(self) -> str:
        """The name of `limit` in texts: `bound` if the bound is below the fair share, else `limit`."""
        return "bound" if self.bound < self.fair and above_limit.differ(self.fair, self.bound) else "limit"

    @property
    def fair(self) -> float:
        """Fair share of the flow in bit/s."""
        return self.limited.goodput_bit_per_s

    @property
    def bound(self) -> float:
        """The most that the flow can get, in bit/s, if other flows leave all that they can."""
        return above_limit.bound(self.limited)

    @property
    def limit_text(self) -> str:
        """The fair share and the bound as text, as one limit if they are equal."""
        if above_limit.differ(self.fair, self.bound):
            return f"fair share {formatting.rate(self.fair)}, bound {formatting.rate(self.bound)}"
        return f"limit {formatting.rate(self.limit)}"

    @property
    def limited(self) -> FlowOutcome:
        """The flow's part of the limit engine's outcome."""
        return self.limits.flows[self.flow]

    @property
    def candidates(self) -> list[Candidate]:
        """All parts of the testbed that could limit the flow, with their limits."""
        return self.limited.limit.candidates if self.limited.limit is not None else []

    @property
    def idle_delay(self) -> float | None:
        """The delay of a message or segment on an idle path in seconds; `None` if unknown."""
        return self.limited.limit.idle_delay_s if self.limited.limit is not None else None

    @functools.cached_property
    def needs(self) -> Needs:
        """The figures by which the service of the flow is judged."""
        return Needs.of(self.limited)

    @functools.cached_property
    def served(self) -> Served:
        """The values of all signals of the flow over the repeats."""
        return Served.of(self._flows)

    @property
    def repaired(self) -> bool:
        """True if retransmissions delay messages of the flow too long, but no queue delays its segments."""
        alone = self.folded(DELAY_P99)
        return self.needs.waits(self.served) and alone is not None and alone <= self.needs.tolerable

    @functools.cached_property
    def counts(self) -> dict[str, float]:
        """Counts of TCP per repeat, and the round trip time if one was measured; empty for other flows."""
        names = ("retransmitted_segments", "timeouts", "fast_retransmits", "smoothed_rtt_s")
        found = {name: self.per_repeat(name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def timeouts(self) -> float:
        """Number of times that the retransmission timer expired, per repeat."""
        return self.per_repeat("timeouts") or 0.0

    @property
    def round_trip(self) -> float | None:
        """Smoothed round trip time of TCP in seconds: mean of the repeats that measured one."""
        return self.per_repeat("smoothed_rtt_s")

    @functools.cached_property
    def parallel(self) -> frozenset[str]:
        """Links that connect the same two nodes as another link."""
        return ledger.parallel(self.outcomes[0])

    @functools.cached_property
    def books(self) -> dict[tuple[str, str, str], Direction]:
        """The ledgers of all lines by link, start and end, summed over the repeats."""
        return ledger.together(self.outcomes)

    @property
    def gap(self) -> float | None:
        """The longest time without a reception in seconds, of all repeats; `None` without events."""
        return self.folded(LONGEST_GAP)

    @property
    def lost_down(self) -> float:
        """Packets of the flow, also without data, that were lost on lines that were down, per repeat."""
        return self.per_repeat("outage_lost_datagrams") or 0.0

    @property
    def outage_text(self) -> str:
        """The packets lost on lines that were down, as text."""
        return f"{self.lost_down:,.0f} lost to line down" if self.lost_down else ""

    @property
    def has_gap(self) -> bool:
        """True if the longest gap exceeds both `WAIT` and ten times the mean time between datagrams."""
        received = [flow.datagrams.received for flow in self._flows if flow.datagrams is not None]
        usual = self.duration * len(received) / max(1, sum(received))
        return self.gap is not None and self.gap > max(WAIT, 10 * usual)

    @functools.cached_property
    def duration(self) -> float:
        """Length of a repeat's measurement window in seconds; 0 if no line has a ledger."""
        for hop in self.hops:
            if hop.books is not None and hop.rate:
                return hop.books.capacity / hop.books.parts / hop.rate / len(self.outcomes)
        return 0.0

    @functools.cached_property
    def _parts(self) -> dict[ledger.Hop, float]:
        return ledger.parts(self.outcomes[0], self.flow)

    @functools.cached_property
    def hops(self) -> tuple[Hop, ...]:
        """The lines of the flow's path, from its sender on."""
        return tuple(self._hop(*hop) for hop in self._parts)

    @functools.cached_property
    def back(self) -> tuple[Hop, ...]:
        """The lines that acknowledgments take: the same links, from the receiver on."""
        return tuple(self._hop(hop.link, hop.end, hop.start) for hop in reversed(self.hops))

    def _hop(self, link: str, start: str, end: str) -> Hop:
        limited, served = (direction(one, link, start) for one in (self.limits, self.outcomes[0]))
        rate = limited.line_rate_bit_per_s if limited is not None else None
        cells = served.cells.capacity if served is not None and served.cells is not None else 0
        side = self.books.get((link, start, end))
        return Hop(link, start, end, rate, cells, side.books if side else None)

    @functools.cached_property
    def tight(self) -> Hop | None:
        """The line of the path with the least idle time; without ledgers, that with the lowest limit."""
        booked = [hop for hop in self.hops if hop.books is not None]
        if booked:
            return min(booked, key=lambda hop: round(hop.books.idle, 9) if hop.books else 1.0)
        links = [one for one in self.candidates if one.bottleneck.kind == "link"]
        least = min(links, key=lambda one: one.goodput_bit_per_s, default=None)
        return next((hop for hop in self.hops if least and least.bottleneck.name == hop.link), None)

    @functools.cached_property
    def queues(self) -> tuple[Hop, ...]:
        """The hops whose queue in a switch or router delays the flow: full lines, and lines with drops of it.

        Without any, the hop with the least idle time.
        """
        behind = [hop for hop in self.hops if self.is_switch(hop.start)]
        found = [
            hop for hop in behind if hop.idle < FULL or any(hop.is_at(drop.place) for drop in self.own_drops)
        ]
        return tuple(found or sorted(behind, key=lambda hop: hop.idle)[:1])

    @property
    def nic_is_full(self) -> bool:
        """True if packets always wait in the NIC of the sender: its line is full, or a shaper holds them."""
        books = self.hops[0].books if self.hops else None
        return books is not None and books.idle - books.share("idle: shaper") < FULL

    @functools.cached_property
    def waits_in_nic(self) -> bool:
        """True if the delay arises in the NIC of the sender: queues behind it are too short to explain it.

        This is known of queues that serve packets in turn: their longest length gives the longest wait. These
        waits together are too short if they are less than half of the delay beyond that of an idle network.
        """
        delay, held = self.needs.delay(self.served), 0.0
        if not self.nic_is_full or delay is None or self.needs.idle is None:
            return False
        for hop in self.hops[1:]:
            wait = self._longest_wait(hop)
            if wait is None:
                return False
            held += wait
        return 2 * held < delay - self.needs.idle

    def _longest_wait(self, hop: Hop) -> float | None:
        """The time in seconds in which a line sends its longest queue; `None` if packets may wait longer."""
        served = [direction(one, hop.link, hop.start) for one in self.outcomes]
        longest = [one.queue.longest_bytes for one in served if one is not None and one.queue is not None]
        queue = self.disciplines.get((hop.link, hop.start))
        in_order = queue is None or queue.keeps_order
        if not longest or not hop.rate or hop.books is None or not in_order:
            return None
        # Cells of generators may be served first.
        generators = math.fsum(hop.books.share(name) for name in hop.books.names if name in self._generators)
        left = hop.rate * (1 - generators)
        return 8 * max(longest) / left if left > 0 else None

    @property
    def _generators(self) -> frozenset[str]:
        return frozenset(f"generator: {one.name}" for one in self.topology.flows if one.kind in GENERATORS)

    @functools.cached_property
    def sharing(self) -> tuple[str, ...]:
        """The other flows on the tightest line, without generators of background traffic."""
        return self.others_on(self.tight) if self.tight else ()

    def others_on(self, hop: Hop) -> tuple[str, ...]:
        """The other flows on a line, without generators of background traffic."""
        way = (hop.link, hop.start, hop.end)
        return tuple(
            flow.name
            for flow in self.topology.flows
            if flow.name != self.flow
            and flow.name in self.outcomes[0].flows
            and flow.kind not in GENERATORS
            and way in ledger.route(self.outcomes[0], flow.name)
        )

    def part(self, hop: Hop, flow: str | None = None) -> float:
        """The share of the packets of this flow, or of another one, that take a line."""
        found = self._parts if flow is None else ledger.parts(self.outcomes[0], flow)
        return found.get((hop.link, hop.start, hop.end), 0.0)

    @functools.cached_property
    def _alone(self) -> Books | None:
        """The ledger of the first line of the path that is idle at times and that no other flow uses."""
        for hop in self.hops:
            if hop.books is not None and hop.books.idle and not self.others_on(hop):
                return hop.books
        return None

    @property
    def own(self) -> float | None:
        """Share of the tightest line's rate that is goodput of this flow; `None` on an unshared line."""
        if self.tight is None or not self.tight.rate or not self.sharing:
            return None
        return self.goodput * self.part(self.tight) / self.tight.rate

    @property
    def theirs(self) -> float:
        """Goodput on the tightest line of all other flows on it together, in bit/s."""
        if self.tight is None:
            return 0.0
        parts = {name: self.part(self.tight, name) for name in self.sharing}
        every = [
            one.flows[name].goodput_bit_per_s * part for one in self.outcomes for name, part in parts.items()
        ]
        return math.fsum(every) / len(self.outcomes)

    @functools.cached_property
    def drops(self) -> tuple[Drop, ...]:
        """All drops by place, cause and flow: those of this flow first, then the others, each by number."""
        sums: dict[tuple[Place, str, str], list[int]] = {}
        for outcome in self.outcomes:
            for drop in outcome.drops:
                one = sums.setdefault((drop.place, drop.cause, drop.flow), [0, 0])
                one[0] += drop.cells
                one[1] += drop.datagrams
        repeats = len(self.outcomes)
        found = [
            Drop(*key, cells / repeats, datagrams / repeats)
            for key, (cells, datagrams) in sums.items()
            if cells or datagrams
        ]

        def order(drop: Drop) -> tuple[bool, float, float, str]:
            return drop.flow != self.flow, -drop.datagrams, -drop.cells, formatting.place_name(drop.place)

        return tuple(sorted(found, key=order))

    @property
    def own_drops(self) -> Sequence[Drop]:
        """The drops of this flow."""
        return [drop for drop in self.drops if drop.flow == self.flow]

    @property
    def overload(self) -> bool:
        """True if a sender without TCP offers more than can pass, against which no buffer helps."""
        rates = [one.goodput_bit_per_s for one in self.candidates if one.bottleneck.kind in _PASSED]
        return not self.tcp and bool(rates) and self.offered > 1.005 * min(rates)

    def beside(self, host: str) -> tuple[tuple[str, str, str], ...]:
        """The other flows that begin or end at a host: name, kind, and `send` or `receive`.

        Generators of background traffic do not count: they are no programs on a host.
        """
        found = self.outcomes[0].flows
        return tuple(
            (flow.name, flow.kind, side)
            for flow in self.topology.flows
            if flow.name != self.flow and flow.name in found and flow.kind not in GENERATORS
            for ends, side in (
                ((flow.from_,), "send"),
                (receivers.several(found[flow.name]) or (flow.to,), "receive"),
            )
            if host in ends
        )

    def idle(self, reason: str) -> float:
        """Share of the time in which the tightest line is idle for a reason, such as `CPU`.

        On a shared line the reasons concern all its flows. The line's idle time, without the time in which it
        is down, is therefore divided like that of a line that only this flow uses.
        """
        books = self.tight.books if self.tight else None
        if books is None:
            return 0.0
        account, alone = f"idle: {reason}", self._alone
        if not self.sharing or alone is None or reason == DOWN:
            return books.share(account)
        return (books.idle - books.share(f"idle: {DOWN}")) * alone.share(account) / alone.idle

    def share(self, account: str) -> float:
        """Share of the tightest line that an account of its ledger has."""
        books = self.tight.books if self.tight else None
        return books.share(account) if books else 0.0

    def lost_at(self, cause: str) -> list[Drop]:
        """The flow's drops by one cause, at each place."""
        return [drop for drop in self.own_drops if drop.cause == cause]

    def policy(self, router: str) -> str:
        """The kind of a router's ECMP policy; empty for other nodes."""
        return self.settings.kind("router", router, "ecmp")

    @functools.cached_property
    def bonds(self) -> tuple[Bond, ...]:
        """The bonds that are not switched off."""
        found = []
        for name in self.settings.names("bond"):
            node, links, up = (self.settings.get("bond", name, key) for key in ("node", "links", "up"))
            if up is not False and isinstance(links, list):
                kind = self.settings.kind("bond", name, "mode")
                found.append(Bond(name, str(node), tuple(str(link) for link in links), kind))
        return tuple(found)

    def bond(self, hop: Hop) -> Bond | None:
        """The bond of the node at which a line starts, if the line is one of its members; else `None`."""
        return next((one for one in self.bonds if one.node == hop.start and hop.link in one.links), None)

    def spared(self, hop: Hop) -> list[Hop]:
        """Lines that the router or bond before a line could have taken but left idle, the idlest first.

        Of a router that always takes the first line these are the lines to the same node.
        """
        if bond := self.bond(hop):
            members = [self._hop(*side.key) for side in self.books.values() if side.start == hop.start]
            members = [one for one in members if one.link in bond.links and one.link != hop.link]
            return sorted((one for one in members if one.idle >= SPARE), key=lambda one: -one.idle)
        first = self.policy(hop.start) == "first"
        reason = "idle: no sender" if first else "idle: other way"
        found = [
            (side.books.share(reason), self._hop(*side.key))
            for side in self.books.values()
            if side.start == hop.start and side.link != hop.link and (side.end == hop.end or not first)
        ]
        found = [one for one in found if one[0] >= SPARE]
        return [one for _, one in sorted(found, key=lambda one: -one[0])] if self.policy(hop.start) else []

    def is_switch(self, node: str) -> bool:
        """True if the node is a switch or a router, which queues packets at its ports."""
        return node in self.settings.names("switch") or node in self.settings.names("router")


def direction(outcome: Outcome, link: str, start: str) -> DirectionOutcome | None:
    """The part of an outcome about one direction of a link; `None` without one."""
    use = outcome.links.get(link)
    return next((one for one in use.directions if one.from_ == start), None) if use is not None else None
