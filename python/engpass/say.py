"""Figures as people read them: rates, shares and changes with the unit that suits them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RATES = (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0))
_BITS = (("Tbit", 1e12), ("Gbit", 1e9), ("Mbit", 1e6), ("kbit", 1e3), ("bit", 1.0))


def rate(bit_per_s: float | None) -> str:
    """A rate with the unit that suits it, two decimals."""
    return "" if bit_per_s is None else _scaled(bit_per_s, _RATES)


def bits(amount: float) -> str:
    """An amount of bits with the unit that suits it, two decimals."""
    return _scaled(amount, _BITS)


def _scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    for unit, size in units[:-1]:
        if abs(value) >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value:.0f} {units[-1][0]}"


def percent(share: float | None) -> str:
    """A share as per cent; a small one is not rounded to nothing."""
    if share is None:
        return ""
    if 0 < abs(share) < 0.0005:
        return "< 0.1 %"
    return f"{share * 100:.1f} %"


def duration(seconds: float | None) -> str:
    """A time with the unit that suits it, three digits."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def change(before: float, after: float) -> str:
    """From one rate to another, in the unit of the larger: `6.10 → 21.80 Mbit/s`."""
    largest = max(abs(before), abs(after))
    unit, size = next(((u, s) for u, s in _RATES if largest >= s), _RATES[-1])
    digits = 0 if size == 1.0 else 2
    return f"{before / size:.{digits}f} → {after / size:.{digits}f} {unit}"


def share_change(before: float, after: float) -> str:
    """From one share to another: `0.3 → 2.1 %`."""
    texts = [percent(one) for one in (before, after)]
    return f"{texts[0].removesuffix(' %')} → {texts[1]}"


def time_change(before: float | None, after: float | None) -> str:
    """From one time to another, in the unit of the longer: `747 → 14.1 ms`."""
    longest = max((one for one in (before, after) if one is not None), default=0.0)
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if longest >= s), ("us", 1e-6))
    texts = ["none" if one is None else f"{one / size:.3g}" for one in (before, after)]
    return f"{texts[0]} → {texts[1]} {unit}"


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 point`, `2,000 points`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def named(key: str) -> str:
    """What a figure of an outcome is called in a table."""
    return "smoothed round trip" if key == "smoothed_rtt_s" else key.replace("_", " ")


def counted(key: str, value: float) -> str:
    """A figure of an outcome as text: a count, or a time."""
    return f"{value * 1e3:.3g} ms" if key.endswith("_s") else f"{value:,.0f}"


def lateness(found: Mapping[str, Any]) -> str:
    """How late the packets of an emulated network were: `half by 12 us, 99.9 % by 80 us, at most 2 ms`."""
    if found.get("packets") == 0:
        return "no packet was carried yet"
    words = [
        f"{share} by {duration(found[key] / 1e9)}"
        for key, share in (("p50_ns", "half"), ("p99_ns", "99 %"), ("p999_ns", "99.9 %"))
        if found.get(key) is not None
    ]
    if found.get("max_ns") is not None:
        words.append(f"at most {duration(found['max_ns'] / 1e9)}")
    return f"packets are late: {', '.join(words)}" if words else "no packet was carried yet"


def trial(number: int, found: Mapping[str, Any]) -> list[str]:
    """A trial of a search: its number, load and length, datagrams sent and lost, the loss, what came in."""
    return [
        f"{number}",
        rate(found["load_bit_per_s"]),
        f"{found['duration_s']:g} s",
        f"{found['sent']:,}",
        f"{found['lost']:,}",
        percent(found["loss"]),
        rate(found["forwarded_bit_per_s"]),
    ]


def path(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What the sequence of RFC 6349 found of a path: name, figure, and the section that it comes from."""
    known = "given" if found["bandwidth_known"] else "of IP packets"
    return [
        ("path MTU", f"{found['mtu_bytes']:,} B", "section 3.1"),
        ("baseline round trip", duration(found["rtt_s"]), "section 3.2.1, the least"),
        ("bottleneck bandwidth", rate(found["bandwidth_bit_per_s"]), f"section 3.2.2, {known}"),
        ("bandwidth-delay product", f"{found['bdp_bytes']:,.0f} B", "section 3.3.1"),
        ("ideal TCP throughput", rate(found["ideal_bit_per_s"]), "section 4.1.1"),
    ]


def transfer(found: Mapping[str, Any]) -> list[str]:
    """A transfer of that sequence.

    Its window as a share of the product, as asked and as granted; the rate expected and achieved; the three
    metrics (sections 4.1, 4.2, 4.3), the efficiency also from the least to the most of its connections.
    """
    granted, each = found["granted_bytes"], found.get("efficiencies", [])
    of_each = f" ({percent(min(each))} to {percent(max(each))})" if len(each) > 1 else ""
    return [
        f"{found['fraction']:.0%}",
        f"{found['window_bytes']:,} B",
        "" if granted is None else f"{granted:,} B",
        rate(found["expected_bit_per_s"]),
        rate(found["achieved_bit_per_s"]) + ("" if found["finished"] else " (ended early)"),
        f"{found['transfer_time_ratio']:.2f}",
        percent(found["efficiency"]) + of_each,
        percent(found["buffer_delay"]),
    ]
