"""What held a flow back, from what the kernel told: pure.

Each finding has evidence and a weight from 0 to 1: how near to its bound the thing was, or for which share of
the time it held the sender. The heaviest is the bottleneck, the next one follows. Where nothing weighs enough
it is unknown, and that is what is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engpass import say
from engpass.limiter import ON_LINKS, limiting_kind
from engpass.measure.flows import Flow
from engpass.measure.kept import Line

ENOUGH = 0.5
"""A finding of less weight is no bottleneck."""

_NEAR_LINK = 0.9
_OFFERED = 0.98
_JUST_BELOW = 0.99
_ON_THE_WAY = ("loss on the way", "loss of fragments")
_BUSY = 0.9
_OTHERS = 0.01
_MORE = 1.05
_WAITED = 0.1
_PER_CENT = 100.0
_HEAD_BYTES = 64


@dataclass(frozen=True)
class Finding:
    """Something that may hold a flow back."""

    name: str
    weight: float
    evidence: str


def explained(
    flow: Flow,
    figures: Mapping[str, Any],
    ends: Mapping[str, Mapping[str, Any]],
    hosts: Mapping[str, Any],
    limit: Mapping[str, Any] | None,
    lines: Sequence[Line] = (),
) -> dict[str, Any]:
    """Bottleneck, the next one, a sentence with the evidence, and all findings of a flow."""
    full = _lines(figures, lines)
    found = [
        *_nothing(flow, figures, ends),
        *_application(flow, figures),
        *(full or _link(figures, limit)),
        *_tcp(figures),
        *_losses(flow, figures, ends.get(flow.receivers[0]) or {}, hosts),
        *_cpus(flow, ends),
    ]
    if full:
        # A queue before a full line loses what it has no room for: the line is the reason.
        most = full[0].weight * _JUST_BELOW
        found = [
            replace(one, weight=min(one.weight, most)) if one.name in _ON_THE_WAY else one for one in found
        ]
    found.sort(key=lambda one: -one.weight)
    named = [one for one in found if one.weight >= ENOUGH]
    bottleneck = named[0].name if named else "unknown"
    said = (
        f"{named[0].name} limits `{flow.name}`: {named[0].evidence}"
        if named
        else f"what limits `{flow.name}` is unknown: nothing that was seen was near its bound"
    )
    rest = found[1:] if named else found
    if rest:
        said += f"; next is {rest[0].name}: {rest[0].evidence}"
    return {
        "bottleneck": bottleneck,
        "next": rest[0].name if rest else None,
        "sentence": said,
        "findings": [{"name": f.name, "weight": round(f.weight, 4), "evidence": f.evidence} for f in found],
    }


def _share(value: float) -> str:
    return f"{value * _PER_CENT:.0f} %"


def _application(flow: Flow, figures: Mapping[str, Any]) -> list[Finding]:
    """A sender on a schedule that it kept, and all of it came in."""
    kept = figures.get("schedule_kept")
    if kept is None:
        if flow.kind == "request-response":
            return [Finding("the round trip", 1.0, "each request waits for the answer before it")]
        return []
    if kept < _OFFERED:
        if flow.kind == "tcp-stream":
            # A write waits for the connection: what that waits for says more.
            return []
        missed = 1.0 - kept
        return [
            Finding(
                f"the sender of host `{flow.sender}`",
                max(ENOUGH, min(1.0, missed + ENOUGH)),
                f"it kept up {_share(kept)} of the rate that it was asked for",
            )
        ]
    offered = figures["offered_bit_per_s"]
    came = figures["goodput_bit_per_s"] / offered if offered else 0.0
    if came < _OFFERED:
        return []
    return [Finding("the application", 1.0, f"{_share(min(came, 1.0))} of what it offers comes in")]


def _nothing(flow: Flow, figures: Mapping[str, Any], ends: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Not a byte of a flow came in, though its ends had found each other with small packets."""
    receiver, size = ends.get(flow.receivers[0]) or {}, flow.common["message_bytes"]
    if flow.kind == "request-response":
        silent, size = bool(figures.get("unanswered")), max(size, flow.common.get("response_bytes") or 0)
    else:
        silent = receiver.get("total_bytes") == 0 and bool(figures["offered_bit_per_s"])
    if not silent or figures["goodput_bit_per_s"] or size <= _HEAD_BYTES:
        return []
    evidence = (
        f"nothing came in, though the two agents had met with packets of {_HEAD_BYTES} B of payload: larger"
        " ones do not pass, where a link has a smaller MTU and nobody tells (`engpass path` finds it), or the"
        " way has gone dark"
    )
    return [Finding("the way of large packets", 1.0, evidence)]


def _link(figures: Mapping[str, Any], limit: Mapping[str, Any] | None) -> list[Finding]:
    if limit is None or not limit.get("goodput_bit_per_s"):
        return []
    share = figures["goodput_bit_per_s"] / limit["goodput_bit_per_s"]
    if share < _NEAR_LINK or limiting_kind(limit) not in ON_LINKS:
        return []
    evidence = f"the flow gets {_share(share)} of what it lets through at most"
    if share > _MORE:
        evidence = f"the flow gets {share:.1f} times its part of it"
    return [Finding(str(limit["bottleneck"]), min(share, 1.0), evidence)]


def _lines(figures: Mapping[str, Any], lines: Sequence[Line]) -> list[Finding]:
    """A line that was busy nearly all of the time, by its books.

    Of several it is the fullest; where datagrams are lost between them, the last: they are lost before it.
    """
    full = [line for line in lines if line.busy >= _NEAR_LINK]
    if not full:
        return []
    lost = (figures.get("lost_datagrams") or 0) / (figures.get("sent_datagrams") or 1)
    line = full[-1] if lost > 1 - _OFFERED else max(full, key=lambda one: one.busy)
    evidence = f"it is busy {_share(line.busy)} of the time"
    others = line.delivered - figures["goodput_bit_per_s"] / line.rate if line.rate else 0.0
    if others >= _OTHERS:
        evidence += f", and other flows are given {_share(others)} of it"
    return [Finding(f"link `{line.link}`", min(1.0, line.busy), evidence)]


def _tcp(figures: Mapping[str, Any]) -> list[Finding]:
    """The kernel's own clocks: for which share of its busy time the sender waited for what."""
    found = []
    window, buffer = (figures.get(f"{key}_limited_share") for key in ("receive_window", "send_buffer"))
    if window:
        found.append(
            Finding("the receive window", window, f"the sender waited for it {_share(window)} of the time")
        )
    if buffer:
        found.append(Finding("the send buffer", buffer, f"it was too small {_share(buffer)} of the time"))
    timer = figures.get("timeout_share")
    if timer:
        evidence = f"{say.count(figures.get('timeouts') or 0, 'time-out')} took {_share(timer)} of the time"
        found.append(Finding("the retransmission timer", timer, evidence))
    again = figures.get("retransmitted_segments")
    if again:
        rest = max(0.0, 1.0 - (window or 0.0) - (buffer or 0.0) - (timer or 0.0))
        # What is lost may be lost on purpose: by a full queue of a link that is busy, which weighs more then.
        found.append(
            Finding("the congestion window", rest * 0.8, f"{say.count(again, 'segment')} lost and sent again")
        )
    return found


def refused_by_socket(end: Mapping[str, Any], host: Mapping[str, Any] | None) -> int | None:
    """Datagrams that the sockets of an end dropped; where they do not tell, those of the whole host."""
    own: list[int] = [
        stream["dropped"] for stream in end.get("streams") or [] if stream.get("dropped") is not None
    ]
    if own:
        return sum(own)
    snmp = ((host or {}).get("changes") or {}).get("snmp") or {}
    return sum(int((snmp.get(udp) or {}).get("RcvbufErrors") or 0) for udp in ("Udp", "Udp6"))


def _losses(
    flow: Flow, figures: Mapping[str, Any], receiver: Mapping[str, Any], hosts: Mapping[str, Any]
) -> list[Finding]:
    """Datagrams that the receiver's host lost, by its own counters; requests that nobody answered."""
    if missed := figures.get("unanswered"):
        share = 1.0 - figures["goodput_bit_per_s"] / (figures["offered_bit_per_s"] or 1.0)
        evidence = f"{missed:,} requests ({_share(share)}) had no answer within 1 s"
        return [Finding("loss on the way", min(1.0, ENOUGH + share), evidence)]
    lost, sent = figures.get("lost_datagrams") or 0, figures.get("sent_datagrams") or 0
    if not lost or not sent:
        return []
    counted = hosts.get(flow.receivers[0], {}).get("changes") or {}
    snmp = counted.get("snmp") or {}
    overflow = refused_by_socket(receiver, hosts.get(flow.receivers[0])) or 0
    broken = _unassembled(snmp)
    backlog = sum(core.get("dropped", 0) for core in counted.get("softnet") or [])
    found = []
    for name, count in (
        ("the receiver's socket buffer", overflow),
        ("the receiver's packet backlog", backlog),
    ):
        if count:
            weight = min(1.0, ENOUGH + count / sent)
            found.append(
                Finding(name, weight, f"it overflowed {count:,} times, and {lost:,} of {sent:,} are lost")
            )
    if broken:
        evidence = f"fragments could not be put together {broken:,} times, and {lost:,} of {sent:,} are lost"
        found.append(Finding("loss of fragments", min(1.0, ENOUGH + lost / sent), evidence))
    if not found:
        evidence = f"{lost:,} of {sent:,} datagrams are lost, and no counter of the receiver saw them"
        found.append(Finding("loss on the way", min(1.0, ENOUGH + lost / sent), evidence))
    return found


def _unassembled(snmp: Mapping[str, Any]) -> int:
    """How often reassembly failed, of fragments that came in during the run.

    Those of an earlier run are given up for a second after it, and failures are counted then.
    """
    found = 0
    for ip in ("Ip", "Ip6"):
        counted = snmp.get(ip) or {}
        found += min(counted.get("ReasmFails") or 0, counted.get("ReasmReqds") or 0)
    return found


def _cpus(flow: Flow, ends: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Threads that were never idle; a sender that asks the clock until its next instant is not busy."""
    found = []
    for host, end in ends.items():
        cpu, elapsed = end.get("cpu") or {}, end.get("elapsed_ns") or 0
        streams = len(end.get("streams") or []) or 1
        if not elapsed or (end.get("pacing") or {}).get("method") in ("busy", "hybrid"):
            continue
        share = (cpu.get("user_ns", 0) + cpu.get("system_ns", 0)) / (elapsed * streams)
        found += _kept_from_it(host, end, (cpu.get("waited_ns") or 0) / (elapsed * streams))
        if share >= _BUSY:
            doing = "sending" if host == flow.sender else "receiving"
            evidence = f"its {doing} threads ran {_share(min(share, 1.0))} of the time"
            found.append(Finding(f"the CPU of host `{host}`", min(share, 1.0) * 0.95, evidence))
    return found


def _kept_from_it(host: str, end: Mapping[str, Any], waited: float) -> list[Finding]:
    """Threads that would have run and had no core: other load of the host, or of what is below it."""
    found = []
    if waited >= _WAITED:
        evidence = f"other threads had the core for {_share(min(waited, 1.0))} of the time"
        found.append(Finding(f"other load of host `{host}`", min(waited, 1.0), evidence))
    used = {stream.get("core") for stream in end.get("streams") or []}
    cores = [core for core in end.get("cores") or [] if core.get("core") in used]
    stolen = max((core.get("steal_ppm", 0) / 1e6 for core in cores), default=0.0)
    if stolen >= _WAITED:
        evidence = f"it kept {_share(stolen)} of the time of core {', '.join(str(c['core']) for c in cores)}"
        found.append(Finding(f"the hypervisor of host `{host}`", stolen, evidence))
    return found
