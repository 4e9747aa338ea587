"""Advice for a bottleneck in a host's memory or I/O bus: cheaper data paths, or faster hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from engpass.advice.base import Cost, Proposal, doubling, scaled
from engpass.explain.point_facts import Situation
from engpass.limiter import limits_receiver, limits_sender
from engpass.settings import Amount
from engpass.source import Toml

_LEAST = 0.005
_STEPS = 4
_OTHERS = 3
"""Maximum number of other flows of the host whose data paths are changed."""

_LESS = {
    "one-copy": ("one-copy-pipelined", "zero-copy"),
    "one-copy-as-printed": ("one-copy-pipelined", "zero-copy"),
    "one-copy-pipelined": ("zero-copy",),
    "copy-and-checksum": ("one-copy-pipelined", "zero-copy"),
    "read-write": ("one-copy-pipelined", "zero-copy"),
    "ktls": ("ktls-sendfile",),
    "gpu-pageable": ("gpu-pinned",),
}
"""By data path: paths with less work per byte (docs/copies.md); of several with equal work only one.

A path that encrypts is replaced only by one that encrypts.
"""

_HOW = {
    ("send", "zero-copy"): "send `{flow}` without a copy, with `sendfile` or `MSG_ZEROCOPY`",
    ("send", "one-copy-pipelined"): "send `{flow}` with one copy, in a pipeline with DMA",
    ("send", "ktls-sendfile"): "send `{flow}` with `sendfile` and TLS in the kernel",
    ("send", "gpu-pinned"): "send `{flow}` from pinned memory",
    ("receive", "zero-copy"): "receive `{flow}` without a copy, with {receive}",
    ("receive", "one-copy-pipelined"): "receive `{flow}` with one copy, in a pipeline with DMA",
    ("receive", "gpu-pinned"): "receive `{flow}` into pinned memory",
}


def propose(at: Situation) -> Iterator[Proposal]:
    """For each end that may limit the flow: other data paths, buffers in the cache, faster hardware."""
    for host, side in zip(at.ends, ("send", "receive"), strict=True):
        memory, bus = (at.settings.get("host", host, key) for key in ("memory", "io_bus"))
        if not isinstance(memory, Mapping) and not isinstance(bus, Mapping):
            continue
        if not _holds_back(at, side):
            continue
        yield from _ways(at, host, at.flow, at.kind, side)
        # Other flows of the host share memory and bus: less work for them leaves more for this flow.
        for flow, kind, other_side in at.beside(host)[:_OTHERS]:
            yield from _ways(at, host, flow, kind, other_side)
        if isinstance(memory, Mapping):
            yield from _in_cache(host, memory)
            yield from _memory(at, host, memory)
        if isinstance(bus, Mapping):
            words = f"give `{host}` an I/O bus {{}} times as fast or as wide"
            keys = ("bandwidth", "to_device", "from_device")
            yield from _faster(host, "io_bus", bus, keys, words)


def _holds_back(at: Situation, side: str) -> bool:
    """True if the host at this end may limit the flow. Its CPU counts too, because it copies the data."""
    if (limits_sender if side == "send" else limits_receiver)(at.limited):
        return True
    if side == "send":
        return at.idle("CPU") >= _LEAST
    windows = at.idle("receive window") + at.idle("silly window avoidance")
    return bool(at.lost_at("receive buffer")) or (at.tcp and windows >= _LEAST)


def _ways(at: Situation, host: str, flow: str, kind: str, side: str) -> Iterator[Proposal]:
    key = f"{side}_path"
    now = at.settings.get("traffic", flow, key) or at.settings.get("host", host, key)
    for way in _LESS.get(str(now), ()):
        words = _HOW.get((side, way))
        if words is not None:
            receive = "`TCP_ZEROCOPY_RECEIVE` or io_uring" if kind == "tcp-stream" else "`AF_XDP`"
            say = words.format(flow=flow, receive=receive)
            yield Proposal.one("data path", Cost.APPLICATION, say, (("traffic", flow, key), way))


def _in_cache(host: str, memory: Mapping[str, Toml]) -> Iterator[Proposal]:
    """Propose buffers that fit into the cache, and copies that do not read what they overwrite."""
    cache = memory.get("cache")
    size = cache.get("size") if isinstance(cache, Mapping) else None
    held, used = _bytes(size), _bytes(memory.get("working_set"))
    if held is not None and (used is None or used > held):
        words = f"keep the buffers of `{host}` within the {size} of its cache"
        path = ("host", host, "memory", "working_set")
        yield Proposal.one("cache", Cost.APPLICATION, words, (path, str(size)))
    if memory.get("write_allocate") is True:
        words = f"let `{host}` copy past the caches, so that no cache line is read before it is overwritten"
        path = ("host", host, "memory", "write_allocate")
        yield Proposal.one("cache", Cost.APPLICATION, words, (path, "false"))


def _memory(at: Situation, host: str, memory: Mapping[str, Toml]) -> Iterator[Proposal]:
    """Propose faster memory together with the operations whose speed it bounds, or faster copies alone."""
    transfers = 3 if memory.get("write_allocate") is True else 2
    most = _bytes(memory.get("bandwidth"))
    bound = ["bandwidth"]
    for key, times in (("copy", transfers), ("checksum", 1), ("encryption", 2)):
        given = _bytes(memory.get(key))
        if most is not None and given is not None and given * times >= most:
            bound.append(key)
    words = f"give `{host}` memory {{}} times as fast"
    yield from _faster(host, "memory", memory, bound, words)
    if "copy" in memory and "copy" not in bound:
        path = ("host", host, "memory", "copy")
        yield from doubling(at, "memory", Cost.HARDWARE, path, f"let `{host}` copy at {{}}", steps=_STEPS)


def _faster(
    host: str, table: str, values: Mapping[str, Toml], keys: tuple[str, ...] | list[str], words: str
) -> Iterator[Proposal]:
    amounts = {("host", host, table, key): Amount.read(values.get(key)) for key in keys}
    kind = "I/O bus" if table == "io_bus" else "memory"
    yield from scaled(kind, Cost.HARDWARE, amounts.items(), words, steps=_STEPS)


def _bytes(value: Toml | None) -> Decimal | None:
    amount = Amount.read(value)
    if amount is None:
        return None
    number, unit = amount.in_base()
    return number if unit in ("B", "B/s") else None
