"""Kinds of bottlenecks of the limit engine, by the part of the network to which they belong."""

from __future__ import annotations

from engpass.types.outcome import BottleneckKind, FlowOutcome

_SENDING, _RECEIVING = "sending-", "receiving-"
CPUS: frozenset[BottleneckKind] = frozenset({"sending-host", "receiving-host"})
"""Bottlenecks that are the CPU of a host."""


def limiting_kind(limit: FlowOutcome | None) -> BottleneckKind:
    """The kind of a flow's bottleneck according to the limit engine; `unknown` without one."""
    return "unknown" if limit is None or limit.bottleneck is None else limit.bottleneck.kind


def is_limited_by(limit: FlowOutcome, kind: BottleneckKind, name: str) -> bool:
    """True if the bottleneck is of this kind and belongs to the part of the testbed with this name."""
    found = limit.bottleneck
    return found is not None and (found.kind, found.name) == (kind, name)


def limits_sender(limit: FlowOutcome | None) -> bool:
    """True if the bottleneck is in the sending host: CPU, memory, bus, or CPU and memory together."""
    return limiting_kind(limit).startswith(_SENDING)


def limits_receiver(limit: FlowOutcome | None) -> bool:
    """True if the bottleneck is in the receiving host."""
    return limiting_kind(limit).startswith(_RECEIVING)
