"""Finds the bottleneck of a flow, with the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import msgspec
from msgspec.structs import replace

from engpass import formatting
from engpass.explain.losses import what, where, which
from engpass.explain.phase import locked
from engpass.explain.point_facts import (
    DOWN,
    FULL,
    HOLD_FULL,
    INPUT_FULL,
    NO_REPLY,
    TOO_BIG,
    Drop,
    Hop,
    Situation,
)
from engpass.explain.service import GOODPUT
from engpass.limiter import CPUS, limiting_kind, limits_receiver, limits_sender
from engpass.results import above_limit
from engpass.results.samples import TRANSFER_RATE, TRANSFER_TIME
from engpass.types.outcome import Bottleneck, SetBy

State = Literal["below", "harmed", "at limit"]
"""`below`: the flow misses its limit; `harmed`: it has its goodput, but suffers from losses or delay."""


class Finding(msgspec.Struct, frozen=True):
    """A bottleneck: `key`, for programs, is its account or drop cause; name and evidence are for people."""

    key: str
    bottleneck: str
    evidence: str
    state: State = "below"
    """How well the flow is served."""
    plural: bool = False
    """True if the name of the bottleneck is in the plural."""

    @property
    def predicate(self) -> str:
        """The verb after the name of the bottleneck: `limits` or `harms`, without `s` in the plural."""
        verb = "harms" if self.state == "harmed" else "limits"
        return verb.removesuffix("s") if self.plural else verb


# For each reason of a line to be idle: the name of the bottleneck, and what it does meanwhile.
_IDLE = {
    "application": ("the application `{flow}`", "the application has no data to send"),
    "CPU": ("the CPU of host `{start}`", "the CPU is busy with sending"),
    "NIC buffer": ("the NIC of host `{start}`", "the NIC's buffer is full"),
    "send buffer": ("the send buffer of host `{start}`", "the send buffer is full of unacknowledged data"),
    "receive window": ("the receive window of host `{end}`", "the receive window is full"),
    "congestion window": ("the congestion window of `{flow}`", "the congestion window is full"),
    "retransmission timer": (
        "the retransmission timer of `{flow}`",
        "the sender waits for the retransmission timer",
    ),
    "Nagle": ("Nagle's algorithm on host `{start}`", "a small segment waits for an acknowledgment"),
    "handshake": ("the handshake of `{flow}`", "the connection is not open yet"),
    "pacing": ("the pacing of `{flow}`", "the next segment is not due yet"),
    "shaper": ("the shaper of `{flow}`", "the shaper spaces the packets"),
    "upstream": ("the path before link `{link}`", "too few packets arrive at it"),
    "other way": ("the choice of paths before link `{link}`", "packets take other paths"),
    "line down": ("link `{link}`", "it is down"),
}


_ANY_SENDER = ("application", "CPU", "NIC buffer", "shaper", "upstream", "other way", "line down")
"""Reasons of a line to be idle that also apply if the sender sends datagrams without TCP."""


def find(at: Situation) -> Finding:
    """Find the bottleneck of a flow. If its goodput reaches its limit, look at losses and delay first."""
    exceeds = at.goodput > (1 + above_limit.AT) * at.limit
    if at.limit > 0 and not exceeds and at.goodput >= GOODPUT * at.limit:
        found, late = _harmed(at) or _at_limit(at), None
    else:
        found = _over_limit(at) if at.limit > 0 and exceeds else _held(at)
        late = None if found.key == "delay" else _late(at)
    lock, overtaken = locked(at), None if at.own_drops else _overtaken(at)
    more = (
        late,
        lock and lock.text,
        at.shaken and at.shaken.text,
        None if overtaken is None or overtaken in found.evidence else overtaken,
        _spare(at),
        None if found.key == _FAILED else _outage(at),
    )
    return replace(found, evidence="; ".join([found.evidence, *(one for one in more if one)]))


def _at_limit(at: Situation) -> Finding:
    """The finding for a flow whose goodput reaches its limit."""
    if at.served.ends and _limiter(at).kind == "application":
        return _ended(at)
    evidence = f"it gets {formatting.rate(at.goodput)} of its {at.limit_name} of {formatting.rate(at.limit)}"
    return _limit(_bounding(at) if at.limit_name == "bound" else _limiter(at), evidence)


def _ended(at: Situation) -> Finding:
    """The finding for a transfer that ended: the bottleneck while it lasted. The end of its data is none."""
    took, rate = at.folded(TRANSFER_TIME), at.folded(TRANSFER_RATE) or 0.0
    others = [one for one in at.candidates if one.bottleneck.kind != "application"]
    evidence = f"the transfer ends after {formatting.duration(took)}, at {formatting.rate(rate)}"
    if not others:
        return _limit(_limiter(at), evidence)
    least = min(others, key=lambda one: one.goodput_bit_per_s)
    limiter = _window(at, least.bottleneck)
    evidence += f" of at most {formatting.rate(least.goodput_bit_per_s)} ({limiter.title})"
    waiting = _waiting(at, without="application") if rate < GOODPUT * least.goodput_bit_per_s else None
    if waiting is None or waiting.bottleneck == limiter.title:
        return _limit(limiter, evidence)
    return replace(waiting, evidence=f"{evidence}; {waiting.evidence}", state="at limit")


_PLURAL = ("acknowledgements", "sending-path", "receiving-path")
"""Kinds of bottlenecks with names in the plural: acknowledgements, copies and DMA."""


def _limit(limiter: Bottleneck, evidence: str, state: State = "at limit") -> Finding:
    """A finding that names the bottleneck of the limit engine."""
    plural = limiter.kind in _PLURAL or "` and `" in limiter.title or limiter.title == "socket buffers"
    return Finding("limit", limiter.title, evidence, state, plural)


def _over_limit(at: Situation) -> Finding:
    """The finding for a flow with a goodput above its fair share or its bound."""
    fair = f"the {formatting.rate(at.fair)} that `engpass limit` expects"
    if len(at.topology.flows) > 1:
        fair = f"its fair share of {formatting.rate(at.fair)}"
    got = f"it gets {formatting.rate(at.goodput)}, more than {fair}"
    if at.limit_name == "bound":
        evidence = (
            f"it gets {formatting.rate(at.goodput)}, more than its bound of {formatting.rate(at.bound)}: "
        )
        evidence += above_limit.reason("simulate")
    elif at.goodput > (1 + above_limit.AT) * at.bound:
        evidence = f"{got} and its bound of {formatting.rate(at.bound)}: {above_limit.reason('simulate')}"
    elif above_limit.differ(at.fair, at.bound):
        evidence = f"{got}; its bound is {formatting.rate(at.bound)}"
    else:
        evidence = got
    at_bound = at.goodput >= GOODPUT * at.bound
    return _limit(_bounding(at) if at_bound else _limiter(at), evidence)


_WINDOWS: Mapping[SetBy, str] = {
    "send-buffer": "the send buffer of host `{start}`",
    "receive-buffer": "the receive buffer of host `{end}`",
    "window-field": "the window of `{flow}`, which is not scaled",
}


def _limiter(at: Situation) -> Bottleneck:
    """The bottleneck that the limit engine found for the flow."""
    return _window(at, at.limited.bottleneck or Bottleneck(kind="unknown", title="its limit"))


def _bounding(at: Situation) -> Bottleneck:
    """The cause that limits the flow to its bound; if the outcome has no bound, to its fair share."""
    limit = at.limited.limit
    return _limiter(at) if limit is None or limit.bound is None else _window(at, limit.bound.bottleneck)


def _window(at: Situation, found: Bottleneck) -> Bottleneck:
    """The bottleneck; socket buffers get the buffer or field that sets the window as their title."""
    limit = at.limited.limit
    if found.kind != "socket-buffers" or limit is None or limit.window is None:
        return found
    start, end = at.ends
    title = _WINDOWS[limit.window.set_by].format(start=start, end=end, flow=at.flow)
    return Bottleneck(kind=found.kind, name=found.name, title=title)


def _harmed(at: Situation) -> Finding | None:
    """The finding for what drops or delays too many datagrams of the flow; `None` without harm."""
    lost, late = None, _late(at)
    if at.needs.pauses(at.served) and at.has_gap and at.lost_at(DOWN):
        lost, late = _down(at, at.lost_at(DOWN)[0]), None
    elif at.needs.loses(at.served) or (late is not None and at.repaired):
        lost = _lost(at)
    if lost is None:
        return None if late is None else Finding("delay", _queue(at), late, "harmed")
    evidence = lost.evidence if late is None else f"{lost.evidence}, and {late}"
    return replace(lost, evidence=evidence, state="harmed")


def _late(at: Situation) -> str | None:
    """A sentence on the delay of the flow, if its datagrams wait too long in queues; else `None`."""
    if not at.needs.waits(at.served):
        return None
    what = "segments" if at.tcp else "datagrams"
    until = " with their retransmissions" if at.repaired else ""
    idle = f"but an idle path takes {formatting.duration(at.needs.idle)}"
    return f"1 % of its {what} take {formatting.duration(at.needs.delay(at.served))} or longer{until}, {idle}"


def _queue(at: Situation) -> str:
    """Name of the queue where the flow waits: before the fullest line, or in what limits the flow."""
    fullest = min(at.queues, key=lambda hop: hop.idle, default=None)
    if at.waits_in_nic:
        return f"the NIC of host `{at.hops[0].start}`"
    at_ports = [drop for drop in at.own_drops if drop.place.link is not None]
    if fullest is not None and (fullest.idle < FULL or at_ports):
        return _buffer(fullest)
    if at.nic_is_full:
        return f"the NIC of host `{at.hops[0].start}`"
    if limits_sender(at.limited) or limits_receiver(at.limited):
        return _limiter(at).title
    if (router := _slowest_router(at)) is not None:
        return f"the input queue of router `{router}`"
    start, end = at.ends
    return _buffer(fullest) if fullest is not None else f"a queue of host `{start}` or `{end}`"


def _slowest_router(at: Situation) -> str | None:
    """The router on the path with the longest time per packet; `None` if no router takes any time."""
    times: dict[str, Decimal] = {}
    for node in (hop.start for hop in at.hops):
        taken = at.settings.amount("router", node, "per_packet")
        if node in at.settings.names("router") and taken is not None and taken.number:
            times[node] = taken.in_base()[0]
    return max(times, key=lambda node: times[node], default=None)


def _buffer(hop: Hop) -> str:
    return f"the buffer of `{hop.start}` towards `{hop.end}`"


def _held(at: Situation) -> Finding:
    """The finding for a flow whose goodput is below its limit."""
    if (failed := _failed(at)) is not None:
        return failed
    if (hole := _black_hole(at)) is not None:
        return hole
    if (shared := _shared(at)) is not None:
        return shared
    lost, waiting = _lost(at), _waiting(at)
    if lost is None and waiting is not None and (overtaken := _overtaken(at)) is not None:
        return replace(waiting, evidence=f"{waiting.evidence}, because {overtaken}")
    if lost is None:
        return _queued(at, waiting) or waiting or _unseen(at)
    if waiting is None or not at.tcp:
        # A flow without TCP misses goodput by losses or because it offers less: the greater part decides.
        missing = at.limit - min(at.offered, at.limit)
        return lost if waiting is None or at.offered - at.goodput >= missing else waiting
    caused = waiting.key in ("idle: congestion window", "idle: retransmission timer")
    if not caused:
        return waiting
    drop = at.own_drops[0]
    because = f"because {where(drop, at)} loses {what(drop, at)}{which(drop)}"
    return Finding(waiting.key, waiting.bottleneck, f"{waiting.evidence}, {because}")


_FAILED = f"drops: {DOWN}"
"""Key of the finding for a link that was down."""


def _failed(at: Situation) -> Finding | None:
    """The finding for a link that was down, if that costs at least half of the missing goodput."""
    drops = at.lost_at(DOWN)
    if not drops or not at.limit:
        return None
    missing = 1 - at.goodput / at.limit
    lost = math.fsum(drop.datagrams for drop in drops)
    if at.tcp:
        # When the line is up again, TCP waits for its timer and restarts with a small window. If that
        # dominates, the failure costs all of the missing goodput, else only that of the longest gap.
        first = drops[0] == at.own_drops[0] and at.idle("retransmission timer") > at.idle("congestion window")
        cost = missing if first else (at.gap or 0.0) / at.duration if at.duration else 0.0
    else:
        cost = lost / at.sent * at.offered / at.limit if at.sent else 0.0
    return _down(at, drops[0]) if 2 * cost >= missing else None


def _down(at: Situation, drop: Drop) -> Finding:
    """The finding for a link that drops packets of the flow while it is down."""
    place = drop.place
    share = at.down.get(place.link or "")
    down = f"is down {formatting.percent(share)} of the time" if share else "fails"
    evidence = f"it {down} and loses {what(drop, at)}"
    if at.has_gap:
        evidence += f", and nothing arrives for {formatting.duration(at.gap)}"
    if at.timeouts:
        evidence += f" because the retransmission timer must expire {_times(at.timeouts)}"
    return Finding(_FAILED, f"link `{place.link}`", evidence)


def _black_hole(at: Situation) -> Finding | None:
    """The finding for a router that drops too long segments while TCP waits for its timer; else `None`.

    In a short run most of the time is the wait for the first timer, which looks like a full congestion
    window. If nearly all segments are lost so, it is the timer nevertheless.
    """
    drops = at.lost_at(TOO_BIG)
    waits = at.idle("retransmission timer") > at.idle("congestion window")
    if not at.tcp or not drops or not (waits or drops[0].datagrams >= GOODPUT * at.sent):
        return None
    drop = drops[0]
    router = drop.place.node
    silent = at.settings.get("router", router, "icmp") is False
    why = "and does not inform the sender" if silent else "and its ICMP messages do not arrive"
    evidence = f"it drops {what(drop, at)} because they are longer than the MTU of its next link, {why}"
    if at.timeouts:
        evidence += f": the retransmission timer expires {_times(at.timeouts)}"
    return Finding(f"drops: {TOO_BIG}", f"router `{router}`", evidence)


def _outage(at: Situation) -> str | None:
    """A sentence on the link of the path that is down longest; `None` if no link is down."""
    worst = max((hop.link for hop in at.hops), key=lambda link: at.down.get(link, 0.0), default="")
    share = at.down.get(worst, 0.0)
    if share < 0.001:
        return None
    said = f"link `{worst}` is down {formatting.percent(share)} of the time"
    if at.has_gap and at.lost_at(DOWN):
        said += f", and nothing arrives for {formatting.duration(at.gap)}"
    return said


def _spare(at: Situation) -> str | None:
    """A sentence on a router or bond that leaves a line idle while one of the path is full, or `None`."""
    if at.tight is None or at.tight.idle >= FULL:
        return None
    before = at.hops[: at.hops.index(at.tight) + 1]
    for hop in reversed(before):
        lines = at.spared(hop)
        if not lines:
            continue
        does = {
            "hash": "chooses by a hash",
            "first": "takes the first of equal-cost paths",
            "active-backup": "sends on its active member",
        }
        others = f" and {formatting.count(len(lines) - 1, 'other link')}" if len(lines) > 1 else ""
        bond = at.bond(hop)
        who, how = ("router", at.policy(hop.start)) if bond is None else ("bond", bond.mode)
        chooser = f"{who} `{hop.start if bond is None else bond.name}` {does.get(how, 'chooses')}"
        idle = f"idle {formatting.percent(lines[0].idle)} of the time"
        return f"{chooser}, which leaves link `{lines[0].link}`{others} {idle}"
    return None


def _overtaken(at: Situation) -> str | None:
    """A sentence on a round-robin router or bond that reorders packets, if segments arrive twice."""
    again = at.counts.get("retransmitted_segments", 0.0)
    parted = [hop for hop in at.hops if at.part(hop) < 1]
    senders = [f"router `{hop.start}`" for hop in parted if at.policy(hop.start) == "round-robin"]
    bonds = [bond for hop in parted if (bond := at.bond(hop)) and bond.mode == "round-robin"]
    senders += [f"bond `{bond.name}`" for bond in bonds]
    if not again or not at.arrives_twice or not senders:
        return None
    said = f"packets that {senders[0]} sends over several paths are reordered"
    return f"{said}: {again:,.0f} segments are retransmitted although none is lost"


def _shared(at: Situation) -> Finding | None:
    """The finding for a full line on which other flows take the missing goodput; else `None`."""
    tight = at.tight
    if not at.tcp or tight is None or tight.books is None or tight.books.idle >= FULL or not at.theirs:
        return None
    others = formatting.count(len(at.sharing), "other flow")
    verb = "gets" if len(at.sharing) == 1 else "get"
    evidence = f"it is full, and {others} {verb} {formatting.rate(at.theirs)} of it"
    if at.own_drops:
        drop = at.own_drops[0]
        evidence += f", while {where(drop, at)} loses {what(drop, at)}{which(drop)}"
    return Finding("shared", f"link `{tight.link}`", evidence)


def _queued(at: Situation, waiting: Finding | None) -> Finding | None:
    """The finding for a queue that delays a paced flow; `None` if none does, or the sender is busy."""
    late = _late(at) if at.needs.paced and not at.tcp else None
    if late is None or (waiting is not None and waiting.key in ("idle: CPU", "idle: NIC buffer")):
        return None
    # If hardly anything is underway at the end, everything arrives: the queue does not limit the goodput.
    received, underway = (at.per_repeat(f"{name}_datagrams") or 0.0 for name in ("received", "in_flight"))
    state: State = "harmed" if received >= GOODPUT * (received + underway) else "below"
    return Finding("delay", _queue(at), late, state)


def _unseen(at: Situation) -> Finding:
    """The finding for a flow below its limit without losses, if no ledger says why lines are idle."""
    return _limit(_limiter(at), "nothing is lost", "below")


def _lost(at: Situation) -> Finding | None:
    if not at.own_drops:
        return None
    drop = _dearest(at)
    if drop.cause == DOWN:
        return _down(at, drop)
    if drop.cause in (HOLD_FULL, NO_REPLY):
        # Both causes occur while ARP requests are not answered, so add them up.
        there = [other for other in at.own_drops if other.place == drop.place]
        asked = [other for other in there if other.cause in (HOLD_FULL, NO_REPLY)]
        drop = replace(drop, datagrams=math.fsum(other.datagrams for other in asked))
    evidence = f"it loses {what(drop, at)}{which(drop)}"
    if drop.cause in (TOO_BIG, INPUT_FULL, HOLD_FULL, NO_REPLY):
        return Finding(f"drops: {drop.cause}", where(drop, at), evidence)
    dead = at.share("lost datagrams")
    if dead >= 0.001 and at.tight is not None:
        evidence += (
            f", and {formatting.percent(dead)} of link `{at.tight.link}` carries parts of lost datagrams"
        )
    return Finding(f"drops: {drop.cause}", where(drop, at), evidence)


def _dearest(at: Situation) -> Drop:
    """The drops that cost the flow most of its limit; for TCP, or if none costs any, the most drops.

    The load above the limit is dropped at some hop in any case: these drops cost nothing.
    """
    most = at.own_drops[0]
    if at.tcp or not at.sent:
        return most
    left, dearest, greatest = at.offered, most, 0.0
    for drop in sorted(at.own_drops, key=lambda drop: _position(drop, at)):
        reaches = left
        left -= drop.datagrams / at.sent * at.offered
        cost = min(reaches, at.limit) - min(left, at.limit)
        # Drops of under 1 % of the limit may be an effect of where the measurement window begins and ends.
        if cost > max(greatest, 0.01 * at.limit):
            dearest, greatest = drop, cost
    return dearest


def _position(drop: Drop, at: Situation) -> int:
    """The index of the hop that drops; the number of hops if no hop of the path drops."""
    return next((place for place, hop in enumerate(at.hops) if hop.is_at(drop.place)), len(at.hops))


def _waiting(at: Situation, without: str = "") -> Finding | None:
    """The finding for the main reason why the tightest line is idle; `None` if the line is hardly idle.

    A reason may be left out: the application has no data after the end of a transfer.
    """
    if at.tight is None or at.tight.books is None:
        return None
    # Without TCP a sender waits for no window or timer: on a shared line such reasons come from other flows.
    shares = {reason: at.idle(reason) for reason in _IDLE if at.tcp or reason in _ANY_SENDER}
    shares.pop(without, None)
    # A window that has room only for a part of a segment counts as used up.
    if at.tcp:
        shares["receive window"] += at.idle("silly window avoidance")
    reason = max(shares, key=lambda reason: shares[reason])
    if shares[reason] < 0.005:
        return None
    name, doing = _IDLE[reason]
    start, end = at.ends
    filled = name.format(flow=at.flow, start=start, end=end, link=at.tight.link)
    if reason == "CPU":
        filled, doing = _busy(at, filled, doing)
    times = f" {_times(at.timeouts)}" if reason == "retransmission timer" and round(at.timeouts) else ""
    link = f"link `{at.tight.link}` is idle {formatting.percent(shares[reason])} of the time"
    return Finding(f"idle: {reason}", filled, f"{link} while {doing}{times}")


def _times(number: float) -> str:
    """How often something happens, in words: `once`, `2 times`."""
    return "once" if round(number) == 1 else formatting.count(round(number), "time")


def _busy(at: Situation, cpu: str, doing: str) -> tuple[str, str]:
    """Two texts: the busy part of the sending host, and what this host does, with its other flows."""
    start, _ = at.ends
    if limits_sender(at.limited) and limiting_kind(at.limited) not in CPUS:
        cpu, doing = _limiter(at).title, f"host `{start}` is busy"
    others = at.beside(start)
    if others:
        names = ", ".join(f"`{name}`" for name in dict.fromkeys(name for name, _, _ in others[:3]))
        doing = f"host `{start}` is busy, also with {names}"
    return cpu, doing
