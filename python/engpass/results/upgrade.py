"""Converts outcomes and drawings of earlier versions to this version."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import msgspec

from engpass.types.outcome import VERSION
from engpass.types.plan import (
    Drawing,
    DrawnBond,
    DrawnCircuit,
    DrawnFlow,
    DrawnLink,
    DrawnNode,
    DrawnTunnel,
)

Json = dict[str, Any]

_ACCOUNTS = {
    "dead": "lost datagrams",
    "control": "ACK and control",
    "other: unknown": "undeclared traffic",
    "idle: nobody": "idle: no sender",
    "idle: host": "idle: real host",
    "idle: NIC": "idle: NIC buffer",
    "idle: silly window": "idle: silly window avoidance",
}
_CAUSES = {"longer than the burst": "exceeds token bucket burst"}

_LIMITERS = (
    ("acknowledgements on link ", "acknowledgements"),
    ("link ", "link"),
    ("shaper of circuit ", "shaper"),
    ("policer of circuit ", "policer"),
    ("router ", "router"),
    ("application ", "application"),
    ("socket buffers", "socket-buffers"),
    ("the application", "application"),
    ("the round trip", "round-trip"),
    ("the sender of host ", "sender"),
    ("the way of large packets", "large-packets"),
    ("the receive window", "receive-window"),
    ("the send buffer", "send-buffer"),
    ("the retransmission timer", "retransmission-timer"),
    ("the congestion window", "congestion-window"),
    ("the receiver's socket buffer", "receiver-socket-buffer"),
    ("the receiver's packet backlog", "receiver-backlog"),
    ("loss of fragments", "loss-of-fragments"),
    ("loss on the way", "loss-on-the-way"),
    ("other load of host ", "other-load"),
    ("the hypervisor of host ", "hypervisor"),
)
"""Beginnings of a bottleneck's title, each with its kind; candidates of `limit` have a kind already."""

_QUANTILES = (
    ("min", "min"),
    ("p50", "p50"),
    ("p90", "p90"),
    ("p99", "p99"),
    ("p999", "p99_9"),
    ("max", "max"),
)
_COUNTS = (
    ("sent_datagrams", "sent"),
    ("received_datagrams", "received"),
    ("lost_datagrams", "lost"),
    ("in_flight_datagrams", "in_flight"),
    ("duplicate_datagrams", "duplicate"),
    ("reordered_datagrams", "reordered"),
)
_TCP = (
    ("retransmitted_segments", "retransmitted_segments"),
    ("timeouts", "timeouts"),
    ("fast_retransmits", "fast_retransmits"),
    ("smoothed_rtt_s", "smoothed_rtt_s"),
    ("minimum_rtt_s", "min_rtt_s"),
    ("timeout_share", "timeout_share"),
    ("receive_window_limited_share", "receive_window_limited_share"),
    ("send_buffer_limited_share", "send_buffer_limited_share"),
)
_GAPS = (("mean", "mean"), ("sd", "sd"), ("mad", "mad"), ("p99", "p99"), ("p999", "p99_9"))


def upgrade(outcome: Json, topology: Drawing) -> Json:
    """Convert an outcome of an earlier version to this version; `topology` is that of its run.

    Raises `KeyError`, `TypeError` or `ValueError` for data that no earlier version wrote.
    """
    if outcome.get("version") == 2:
        return _with_receivers(outcome)
    names = _links_between(topology)
    emulated = outcome.get("emulated")
    found: Json = {
        "version": VERSION,
        **{key: outcome[key] for key in ("variant", "engine", "repeat", "seed")},
        "sweep": {path: _swept(value) for path, value in outcome["sweep"].items()},
        "flows": {name: _flow(flow, outcome["engine"]) for name, flow in outcome["flows"].items()},
        "links": {name: _link(link) for name, link in (outcome.get("links") or {}).items()},
        "drops": [_drop(drop, names) for drop in outcome.get("drops") or ()],
        **{key: outcome[key] for key in ("events", "without", "hosts", "measured") if key in outcome},
        **{key: outcome[key] for key in ("valid", "invalid") if key in outcome},
    }
    if emulated is not None:
        found["emulated"] = {
            "clock": emulated["clock"],
            "slow": emulated["slow"],
            "no_offload": emulated["wire_true"],
            "max_lateness": emulated["limit"],
            "tap": emulated.get("tap", False),
            "lateness": emulated["lateness"],
            "host_pairs": {name: _flow(flow, "simulate") for name, flow in emulated.get("ways", {}).items()},
        }
    _add_paths(found["flows"], topology, names)
    return found


def _with_receivers(outcome: Json) -> Json:
    """Convert an outcome of version 2, in which the receivers of a group were in `real` of the flow."""
    for flow in outcome["flows"].values():
        if receivers := flow.get("real", {}).pop("receivers", None):
            flow["receivers"] = receivers
    return {**outcome, "version": VERSION}


def _swept(value: float | str) -> Json:
    return {"text": value} if isinstance(value, str) else {"number": value}


def _picked(table: Mapping[str, Any], keys: tuple[tuple[str, str], ...]) -> Json:
    """The given keys of a table that have a value, under new names."""
    return {new: table[old] for old, new in keys if table.get(old) is not None}


def _timed(flow: Mapping[str, Any], before: str, keys: tuple[tuple[str, str], ...]) -> Json:
    """The times of a flow, whose keys were `{before}_{word}_s`, under new names."""
    return _picked(flow, tuple((f"{before}_{old}_s", new) for old, new in keys))


def _flow(flow: Json, engine: str) -> Json:
    found: Json = {
        key: flow[key]
        for key in ("kind", "paths", "goodput_bit_per_s", "offered_bit_per_s", "efci_pdus")
        if key in flow
    }
    if counts := _picked(flow, _COUNTS):
        found["datagrams"] = {"received": 0, **counts}
    if delay := _timed(flow, "delay", _QUANTILES):
        found["delay_s"] = {"network": delay}
    tcp = _picked(flow, _TCP)
    if trips := _timed(flow, "round_trip", _QUANTILES):
        tcp["rtt_s"] = trips
    if tcp:
        found["tcp"] = tcp
    kinds = {one["name"]: one["kind"] for one in flow.get("candidates", ())}
    for old, new in (("bottleneck", "bottleneck"), ("next", "next_bottleneck")):
        if flow.get(old) is not None:
            found[new] = _bottleneck(flow[old], kinds)
    if "sentence" in flow:
        found["summary"] = flow["sentence"]
    if engine == "limit":
        found["limit"] = _limit(flow, kinds)
    elif real := _real(flow):
        found["real"] = real
    return found | _receivers(flow)


def _receivers(flow: Json) -> Json:
    receivers = {host: _receiver(one) for host, one in flow.get("receivers", {}).items()}
    return {"receivers": receivers} if receivers else {}


def _bottleneck(title: str, kinds: Mapping[str, str]) -> Json:
    kind = kinds.get(title)
    if kind is None:
        kind = next((kind for start, kind in _LIMITERS if title.startswith(start)), None)
    if kind is None and title.startswith("the CPU of host "):
        kind = "sending-host"
    # The name from the file is the last text between backticks.
    parts = title.rsplit("`", 2)
    name = {"name": parts[1]} if len(parts) == 3 else {}
    return {"kind": kind or "unknown", **name, "title": title}


def _limit(flow: Json, kinds: Mapping[str, str]) -> Json:
    found: Json = {key: flow[key] for key in ("window", "idle_delay_s") if flow.get(key) is not None}
    if "bound_bit_per_s" in flow:
        found["bound"] = {
            "bit_per_s": flow["bound_bit_per_s"],
            "bottleneck": _bottleneck(flow["bound_bottleneck"], kinds),
            "summary": flow["bound_sentence"],
        }
    candidates = [
        {
            "bottleneck": _bottleneck(one["name"], kinds),
            **{key: one[key] for key in ("goodput_bit_per_s", "bound_bit_per_s") if key in one},
        }
        for one in flow.get("candidates", ())
    ]
    return {**found, "stages": flow.get("stages", []), "candidates": candidates}


def _real(flow: Json) -> Json:
    found = {
        key: flow[key]
        for key in ("sender_cpu_s_per_gb", "receiver_cpu_s_per_gb", "schedule_kept", "precision", "ends")
        if flow.get(key) is not None
    }
    found |= _gaps(flow)
    if "transactions_per_s" in flow:
        latency = _timed(flow, "latency", (*_QUANTILES, ("mean", "mean")))
        found["requests"] = {
            "per_s": flow["transactions_per_s"],
            **_picked(flow, (("unanswered", "unanswered"),)),
            **({"latency_s": latency} if latency else {}),
        }
    if pacing := flow.get("pacing"):
        keys = ("method", "stalls", "explained_share")
        renamed = (("class", "scheduling_class"), ("awake", "cpu_latency_held"), ("sentence", "summary"))
        found["pacing"] = _picked(pacing, (*((key, key) for key in keys), *renamed))
    if findings := flow.get("findings"):
        found["findings"] = [
            {"bottleneck": _bottleneck(one["name"], {}), "weight": one["weight"], "evidence": one["evidence"]}
            for one in findings
        ]
    return found


def _gaps(flow: Json) -> Json:
    gaps = _timed(flow, "gap", _GAPS)
    return {
        **({"gap_s": gaps} if gaps else {}),
        **_picked(flow, (("worst_ms_datagrams", "max_datagrams_per_ms"),)),
    }


def _receiver(one: Json) -> Json:
    keys = ("goodput_bit_per_s", "offered_bit_per_s", "join_delay_s", "leave_delay_s")
    return {
        **_picked(one, tuple((key, key) for key in keys)),
        "datagrams": {"received": 0, **_picked(one, _COUNTS)},
        **_gaps(one),
        **_picked(one, (("join", "join_unknown"), ("leave", "leave_unknown"))),
    }


def _link(link: Json) -> Json:
    units = _units(link.get("unit", "bit"))
    return {"directions": [_direction(side, units) for side in link["directions"]]}


def _units(unit: str) -> int:
    """Number of units in a bit: 13 for `1/13 bit`, 1 for `bit`; raises `ValueError` for other texts."""
    number = unit.removesuffix("bit").strip()
    if not unit.endswith("bit") or (number and not number.startswith("1/")):
        raise ValueError(f"`{unit}` is not a unit of a ledger")
    return int(number[2:]) if number else 1


def _direction(side: Json, units: int) -> Json:
    found: Json = {
        key: side[key] for key in ("from", "to", "utilisation", "line_rate_bit_per_s") if key in side
    }
    if "cells" in side:
        cells = (("capacity_cells", "capacity"), ("cells", "sent"), ("lost_cells", "lost"))
        found["cells"] = _picked(side, (*cells, ("clp1_cells", "clp1"), ("efci_cells", "efci")))
    if "frames" in side:
        found["frames"] = _picked(side, (("frames", "sent"), ("bytes", "bytes"), ("lost_frames", "lost")))
    if "ledger" in side:
        accounts = {_account(name): amount for name, amount in side["ledger"].items()}
        found["ledger"] = {"units_per_bit": units, "capacity": side["capacity"], "accounts": accounts}
    if "taken" in side:
        found["shares"] = side["taken"]
    return found


def _account(name: str) -> str:
    renamed = _ACCOUNTS.get(name)
    if renamed is not None:
        return renamed
    generator = name.removeprefix("other: ")
    return name if generator == name else f"generator: {generator}"


def _links_between(topology: Drawing) -> dict[tuple[str, str], list[str]]:
    """Names of the links from each node to each of its neighbours."""
    found: dict[tuple[str, str], list[str]] = {}
    for link in topology.links:
        first, second = link.ends
        for ends in {(first, second), (second, first)}:
            found.setdefault(ends, []).append(link.name)
    return found


def _drop(drop: Json, names: Mapping[tuple[str, str], list[str]]) -> Json:
    """A drop with the location in its present form: a transmitter if the topology has it, else a node."""
    place: Json = {"node": drop["place"]}
    # A node's name may contain an arrow: compare whole texts, do not split.
    for (start, end), links in names.items():
        if drop["place"] == f"{start} -> {end}":
            place = {"node": start, "to": end, **({"link": links[0]} if len(links) == 1 else {})}
    cause = _CAUSES.get(drop["cause"], drop["cause"])
    return {"place": place, "cause": cause, **{key: drop[key] for key in ("flow", "cells", "datagrams")}}


def _add_paths(
    flows: Mapping[str, Json], topology: Drawing, names: Mapping[tuple[str, str], list[str]]
) -> None:
    """Add the paths of flows, which outcomes of the first version lack.

    Topologies give only the nodes of a route. A flow therefore gets its path only if it has a route in which
    every step has exactly one link.
    """
    for one in topology.flows:
        flow = flows.get(one.name)
        if flow is None or "paths" in flow:
            continue
        hops = list(pairwise(one.route))
        links = [names.get(hop, []) for hop in hops]
        if hops and all(len(found) == 1 for found in links):
            steps = [
                {"link": link, "from": start, "to": end}
                for (start, end), (link,) in zip(hops, links, strict=True)
            ]
            flow["paths"] = [{"share": 1.0, "steps": steps}]


class _OldLink(DrawnLink, frozen=True, kw_only=True):
    rate_bit_per_s: int | None = None
    """The line rate of both directions; the first version had no other."""


class OldDrawing(msgspec.Struct, frozen=True, kw_only=True):
    """A drawing as any version may have stored it."""

    nodes: list[DrawnNode] = []
    links: list[_OldLink] = []
    circuits: list[DrawnCircuit] = []
    tunnels: list[DrawnTunnel] = []
    bonds: list[DrawnBond] = []
    flows: list[DrawnFlow] = []


def drawing(old: OldDrawing) -> Drawing:
    """Convert a stored drawing to this version, in which a link has a rate for each direction."""
    links = []
    for link in old.links:
        both = [] if link.rate_bit_per_s is None else [link.rate_bit_per_s] * 2
        rates = link.rates_bit_per_s or both
        links.append(DrawnLink(name=link.name, ends=link.ends, medium=link.medium, rates_bit_per_s=rates))
    return Drawing(
        nodes=old.nodes,
        links=links,
        circuits=old.circuits,
        tunnels=old.tunnels,
        bonds=old.bonds,
        flows=old.flows,
    )
