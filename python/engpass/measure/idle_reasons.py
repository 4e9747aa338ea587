"""Why a line is idle, derived from the behaviour of its senders. Pure functions.

The evidence is TCP's own time counters (`TCP_INFO`: busy, limited by the receive window, by the send buffer,
in timeout), the CPU time of a sender's threads, and its schedule. The rest of the time is `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engpass.measure.answers import End
from engpass.measure.flows import Flow
from engpass.measure.tcp_info import Tcp

_BUSY = 0.9
_KEPT = 0.98
_FULL_PPM = 970_000


@dataclass(frozen=True)
class Waits:
    """The reasons why a sender did not send, each with its share of the time."""

    shares: Mapping[str, float]
    elastic: bool
    """True if the sender would use all that the line has left; False for a sender with a schedule."""


def waits(flow: Flow, end: End, *, behind: bool) -> Waits:
    """The reasons why a flow's sender was idle; `behind` if the line comes after the flow's bottleneck."""
    if flow.kind == "request-response":
        return Waits({"application": 1.0}, elastic=False)
    if (kept := flow.kept(end)) is not None:
        missed = 0.0 if kept >= _KEPT else 1.0 - kept
        return Waits({"application": 1.0 - missed, "CPU": missed}, elastic=False)
    if busy(end) >= _BUSY:
        return Waits({"CPU": 1.0}, elastic=True)
    if flow.kind == "tcp-stream":
        shares = _clocks(Tcp.of(end), flow.duration_ns / 1e9, behind=behind)
    else:
        shares = {"upstream" if behind else "unknown": 1.0}
    if "unknown" in shares and _is_full(end):
        # Many threads that each run a little, or other programs, can also use all cores.
        shares["CPU"] = shares.pop("unknown")
    return Waits(shares, elastic=True)


def busy(end: End) -> float:
    """Share of the time in which the threads of an end ran or waited for a core."""
    cpu, lived_ns = end.spent_ns()
    return min(1.0, (cpu.used_ns + cpu.waited_ns) / lived_ns) if lived_ns else 0.0


def _is_full(end: End) -> bool:
    """True if the cores of the end's host were busy for at least 97 % of the time, on average."""
    cores = [core.busy_ppm + core.steal_ppm for core in end.cores]
    return bool(cores) and sum(cores) >= _FULL_PPM * len(cores)


def _clocks(tcp: Tcp, seconds: float, *, behind: bool) -> dict[str, float]:
    """The idle reasons of a TCP sender that always has data, from the times that the kernel counts."""
    if not tcp.known:
        return {"unknown": 1.0}
    whole = seconds * 1e6 * max(1, tcp.streams)
    shares = {
        "receive window": tcp.grew("rwnd_limited_us") / whole,
        "send buffer": tcp.grew("sndbuf_limited_us") / whole,
        "retransmission timer": tcp.grew("total_rto_time_ms") * 1000 / whole,
    }
    said = min(1.0, sum(shares.values()))
    rest = max(0.0, min(1.0, tcp.grew("busy_us") / whole) - said)
    if behind:
        shares["upstream"] = rest
    elif tcp.again:
        # The sender retransmitted, and no window or buffer held it back: the congestion window did.
        shares["congestion window"] = rest
    else:
        shares["unknown"] = rest
    # No counter explains the time in which nothing was in flight although the sender had data.
    shares["unknown"] = shares.get("unknown", 0.0) + max(0.0, 1.0 - said - rest)
    return {reason: share for reason, share in shares.items() if share > 0}


def divided(idle: int, senders: Sequence[Waits]) -> dict[str, int]:
    """Divide idle bits among accounts by the reasons of the elastic senders, or of all if none is elastic.

    Every sender has the same weight.
    """
    if not idle:
        return {}
    if not senders:
        return {"idle: no sender": idle}
    asked = [one for one in senders if one.elastic] or list(senders)
    total: dict[str, float] = {}
    for one in asked:
        for reason, share in one.shares.items():
            total[reason] = total.get(reason, 0.0) + share
    whole = sum(total.values())
    if whole <= 0:
        return {"idle: unknown": idle}
    found = {f"idle: {reason}": int(idle * share / whole) for reason, share in total.items()}
    # The account with most bits also takes the bits that rounding leaves.
    most = max(found, key=lambda account: found[account])
    found[most] += idle - sum(found.values())
    return {account: amount for account, amount in found.items() if amount}
