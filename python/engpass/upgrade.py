"""Outcomes of earlier versions, as this version writes them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any


def upgrade(outcome: dict[str, Any], topology: Mapping[str, Any]) -> dict[str, Any]:
    """Change an outcome that an earlier version stored, in place; `topology` is that of its run.

    Outcomes had no paths once, and topologies name the nodes of a route alone. Where each step has one link
    to take, the flow gets its path; where it has several, or the topology has no route, it gets none.
    """
    flows = outcome["flows"]
    if all("paths" in flow for flow in flows.values()):
        return outcome
    links: dict[frozenset[str], list[str]] = {}
    for link in topology.get("links", ()):
        links.setdefault(frozenset(link["ends"]), []).append(str(link["name"]))
    for one in topology.get("flows", ()):
        flow = flows.get(one["name"])
        if flow is None or "paths" in flow:
            continue
        hops = list(pairwise(one.get("route", ())))
        names = [links.get(frozenset(hop), []) for hop in hops]
        if hops and all(len(found) == 1 for found in names):
            steps = [
                {"link": link, "from": start, "to": end}
                for (start, end), (link,) in zip(hops, names, strict=True)
            ]
            flow["paths"] = [{"share": 1.0, "steps": steps}]
    return outcome
