"""The kind of the candidate that limits a flow: names come from files, so that no text tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ON_LINKS = frozenset({"link", "token-bucket", "acknowledgements"})
"""Kinds of candidates that a link imposes."""

_SENDING, _RECEIVING = "sending-", "receiving-"
CPUS = frozenset({"sending-host", "receiving-host"})
"""Kinds of candidates that are the CPU of a host."""


def limiting_kind(limit: Mapping[str, Any] | None) -> str:
    """The kind of a flow's bottleneck, from its outcome of the limit engine; empty where that is unknown."""
    if limit is None:
        return ""
    kinds = {one["name"]: str(one["kind"]) for one in limit.get("candidates", ())}
    return kinds.get(limit.get("bottleneck"), "")


def limits_sender(limit: Mapping[str, Any] | None) -> bool:
    """Whether the bottleneck is a part of the sending host: CPU, memory, bus or both."""
    return limiting_kind(limit).startswith(_SENDING)


def limits_receiver(limit: Mapping[str, Any] | None) -> bool:
    """Whether the bottleneck is a part of the receiving host."""
    return limiting_kind(limit).startswith(_RECEIVING)
