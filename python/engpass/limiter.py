"""Kinds of bottlenecks."""

from __future__ import annotations

from engpass.types.outcome import BottleneckKind, FlowOutcome

ON_LINKS: frozenset[BottleneckKind] = frozenset({"link", "token-bucket", "acknowledgements"})
"""Bottlenecks that belong to a link."""

_SENDING, _RECEIVING = "sending-", "receiving-"
CPUS: frozenset[BottleneckKind] = frozenset({"sending-host", "receiving-host"})
"""Bottlenecks that are the CPU of a host."""


def limiting_kind(limit: FlowOutcome | None) -> BottleneckKind:
    """The kind of a flow's bottleneck, from its outcome of the limit engine."""
    return "unknown" if limit is None or limit.bottleneck is None else limit.bottleneck.kind


def limits_sender(limit: FlowOutcome | None) -> bool:
    """Whether the bottleneck is a part of the sending host: CPU, memory, bus or both."""
    return limiting_kind(limit).startswith(_SENDING)


def limits_receiver(limit: FlowOutcome | None) -> bool:
    """Whether the bottleneck is a part of the receiving host."""
    return limiting_kind(limit).startswith(_RECEIVING)
