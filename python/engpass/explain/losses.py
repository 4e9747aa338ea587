"""The place and the cause of losses in words."""

from __future__ import annotations

from collections.abc import Mapping

from engpass import formatting
from engpass.explain.point_facts import (
    DOWN,
    EXPIRED,
    HOLD_FULL,
    INACTIVE,
    INPUT_FULL,
    LOW_PRIORITY,
    NO_MEMORY,
    NO_REPLY,
    OUT_OF_SEQUENCE,
    OUT_OF_TIME,
    TOO_BIG,
    Drop,
    Situation,
)

DAMAGED = "damaged on the line"
"""The cause of drops of packets that a line has corrupted; no queue takes part in them."""

_ON_THE_LINE = (DAMAGED, DOWN, INACTIVE)
"""Causes of losses behind the transmitter of a line."""

_THING: Mapping[str, str] = {"policer": "the policer", "early drop": "the queue", "codel": "the queue"}
"""What loses packets at a port of a switch or router, if it is not the buffer."""

_PART: Mapping[str, str] = {"receive buffer": "the receive buffer of "}
"""What loses packets in a node, if it is not the node as a whole."""

_UNKNOWN = " while it does not know the hardware address of the next node"

_WHICH: Mapping[str, str] = {
    "buffer full": "",
    "discard policy": "",
    "policer": "",
    "early drop": "",
    "codel": "",
    DAMAGED: "",
    DOWN: "",
    "receive buffer": "",
    LOW_PRIORITY: ", whose cells of low priority (CLP = 1) find it above its `clp_threshold`",
    "exceeds token bucket burst": ", which are longer than the burst of its token bucket",
    INACTIVE: " while host `{to}` receives on another member of its bond",
    EXPIRED: ", whose time to live ends there",
    TOO_BIG: ", which are longer than the MTU of the next link",
    NO_REPLY: _UNKNOWN,
    HOLD_FULL: _UNKNOWN,
    INPUT_FULL: ", for which its input queue has no room",
    "no known member": ", for which it knows no member of the group",
    "reassembly": ", of which a part is missing",
    OUT_OF_TIME: ", of which a fragment is missing when the time for reassembly ends",
    NO_MEMORY: ", for whose reassembly it has no memory",
    OUT_OF_SEQUENCE: ", which leave a tunnel out of sequence",
    "tunnel down": " while its tunnel is down",
}
"""For each cause of losses, what follows `it loses 3 datagrams`."""


def where(drop: Drop, at: Situation) -> str:
    """The place of some drops in words: the subject of a sentence."""
    start, end = drop.place.node, drop.place.to
    if end is None:
        card = f"card `{drop.place.card}` of " if drop.place.card else ""
        kind = "router" if at.is_switch(start) else "host"
        return f"{_PART.get(drop.cause, '')}{card}{kind} `{start}`"
    over = f" over `{drop.place.link}`" if drop.place.link in at.parallel else ""
    if at.is_switch(start) and drop.cause not in _ON_THE_LINE:
        return f"{_THING.get(drop.cause, 'the buffer')} of `{start}` towards `{end}`{over}"
    return f"the line from `{start}` to `{end}`{over}"


def what(drop: Drop, at: Situation) -> str:
    """The number of packets dropped in words, with their share of the packets sent."""
    unit = "segment" if at.tcp else "datagram"
    share = (
        f" ({formatting.percent(drop.datagrams / at.sent)})" if at.sent and drop.datagrams <= at.sent else ""
    )
    return f"{formatting.count(round(drop.datagrams), unit)}{share}"


def which(drop: Drop) -> str:
    """What follows the number of packets dropped: a clause with the cause, if the place does not tell it."""
    return _WHICH.get(drop.cause, "").format(to=drop.place.to)
