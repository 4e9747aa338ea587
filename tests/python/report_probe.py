"""Made-up reports of probes, for tests of their pages and tables: nothing was measured."""

from __future__ import annotations

import json
from typing import Any

from engpass import _engpass
from engpass.probe import Probed
from engpass.report.probe import KERNELS


def full(report: dict[str, Any]) -> dict[str, Any]:
    """The same as a host with an adapter, a GPU and sockets would have it."""
    spread = {"least": 1e9, "median": 2e9, "best": 3e9}
    link = {
        "gigatransfers": 8.0,
        "generation": 3,
        "lanes": 8,
        "bytes_per_s": 7.88e9,
        "payload_per_s": 7.1e9,
        "below_its_best": True,
    }
    copies = {"pinned_to": spread, "pinned_from": spread, "pageable_to": spread, "pageable_from": spread}
    sockets = [
        {
            "sending": sending,
            "receiving": "copy",
            "message": 131072,
            "rate": spread,
            "send_cpu": 0.1,
            "receive_cpu": 0.1,
            "copied": 1.0 if sending == "zerocopy" else None,
            "congestion": "cubic",
        }
        for sending in ("copy", "sendfile", "zerocopy")
    ]
    ceilings: list[dict[str, Any]] = [
        {"path": "one-copy-pipelined", "from_memory": 4e9, "from_cache": 8e9},
        {"path": "sendfile", "from_memory": 7e9, "from_cache": 9e9},
        {"path": "ktls", "from_memory": None, "from_cache": None},
    ]
    over_buses = [
        {"device": None, "bus": bus, "ceilings": [{**ceilings[0], "from_memory": min(bus, 4e9)}]}
        for bus in (1e9, 4e9, 32e9)
    ]
    verdict = {
        "what": "the copy of `send`",
        "predicted": 0.05,
        "measured": 0.2,
        "unit": "s/GB",
        "between": [0.15, 0.3],
        "rule": "within a factor of 2",
        "outcome": "fails",
    }
    unsure = {**verdict, "what": "the copy of `recv`", "between": [0.01, 0.3], "outcome": "not_told_apart"}
    figures = {"copy": False, "copy_cached": True, "memory_all": True}
    return {
        **report,
        "bandwidths": {"copy": 4e9, "copy_cached": 2e10, "memory_all": 12e9},
        "devices": [
            {"kind": "network", "name": "eth0", "driver": "x", "link": link, "why": None},
            {"kind": "nvme", "name": "nvme0", "driver": "x", "link": None, "why": "no <link>"},
        ],
        "gpus": {"measured": [{"name": "Some GPU", "address": "0", "bytes": 1, **copies}]},
        "sockets": {"measured": sockets},
        "rooflines": [{"device": None, "bus": None, "ceilings": ceilings}],
        "over_buses": over_buses,
        "others": 0.25,
        "verdicts": [verdict, unsure],
        "basis": [
            {"figure": figure, "kernel": "copy-string", "bytes": 8192, "threads": 1, "confirmed": sure}
            for figure, sure in figures.items()
        ],
    }


def probed(report: dict[str, Any]) -> Probed:
    return Probed("a <host>", "today", report, "[host.a]\n")


def with_threads() -> dict[str, Any]:
    """A host of which four threads were measured over several working sets, in the ways that are drawn."""
    points = [
        {
            "kernel": kernel,
            "bytes": 8192 << (2 * step),
            "threads": threads,
            "rate": dict.fromkeys(("least", "median", "best"), 2e11 * threads / (number + 2) / 4**step),
            "visits": 3,
            "confirmed": step % 2 == 0,
        }
        for threads in (1, 4)
        for number, (kernel, _) in enumerate(KERNELS)
        for step in range(6)
    ]
    empty = json.loads(_engpass.Probe(True, "/nowhere").report())
    timer = {
        "reading": 20.0,
        "resolution": 1,
        "system_call": 100.0,
        "late_half": 5e4,
        "late_99": 6e4,
        "late_most": 7e4,
        "longest_gap": 8e3,
        "stolen": 0.0,
    }
    return {**full({**empty, "timer": timer}), "memory": {"measured": points}}
