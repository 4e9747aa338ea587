"""Queue disciplines that limit the senders of an emulated host to the rate of its NIC.

A TUN device accepts packets until it is full, and then drops them without telling the socket. The NIC of the
model holds a sender back instead. A queue discipline does the same, because packets that wait in it count in
the send buffer of their socket. The model still decides when each packet leaves; the queue discipline only
keeps waiting packets where sockets see them.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from engpass.netlab.layout import COUNTED_BYTES, DEVICE, TAP, Station
from engpass.types.plan import LinkPlan, PointPlan

UNHELD_BIT_PER_S = 100_000_000_000
"""From this rate on no sender is limited: the machine is slower than the NIC."""

_BURST_NS = 250_000  # a timer may be late by this much without loss of throughput
_SUPER_PACKET_BYTES = 66_000
_WAITING_PACKETS = 10_000
_WAITING_BYTES = 32 << 20
_MOST_ENTRIES = 16_384  # of a size table, which must fit into one netlink attribute


class Pace(msgspec.Struct, frozen=True):
    """The greatest rate of one NIC, or of one virtual circuit at it."""

    rate_bit_per_s: int
    """Rate in bit/s of the bytes that `counted` gives for packets."""
    counted: str
    """The size table as `tc` takes it (`stab`): bytes that a packet takes on the line."""


def held(
    numbers: PointPlan,
    station: Station,
    plan: Mapping[str, Station],
    mtu: int,
    slow: int,
    *,
    whole: bool,
    tap: bool = False,
) -> list[str]:
    """The `tc` commands for the namespace of a host; none if its senders need no limit."""
    device = TAP if tap else DEVICE
    circuits = _circuits(numbers, station.name)
    links = [link for link in numbers.links if station.name in link.ends]
    # Of several NICs the fastest sets the rate: in the model packets wait for the slower ones.
    counted = COUNTED_BYTES if tap else 0
    own_paces = {
        link.name: _own(link, station.name, mtu, counted) for link in links if link.framing != "cells"
    }
    for bond in numbers.bonds:
        if bond.node == station.name:
            # The members of a bond differ in their rates only.
            members = [own_paces.pop(link) for link in bond.links]
            own_paces[bond.links[0]] = replace(members[0], rate_bit_per_s=bond.rate_bit_per_s)
    nics = list(own_paces.values() or circuits.values())
    if not nics:
        return []
    own = max(nics, key=_rate)
    paces = {peer: pace for peer, pace in circuits.items() if pace != own}
    if own.rate_bit_per_s >= UNHELD_BIT_PER_S * slow:
        return []
    if not paces:
        return [
            (
                f"qdisc add dev {device} root handle 1: {own.counted} tbf rate {_paced(own, slow)}bit"
                f" burst {_burst(own, mtu, slow, whole=whole)} limit {_WAITING_BYTES}"
            )
        ]
    lines = [f"qdisc add dev {device} root handle 1: {own.counted} htb default 1"]
    lines += _class(device, 1, own, mtu, slow, whole=whole)
    for number, (peer, pace) in enumerate(paces.items(), 2):
        lines += _class(device, number, pace, mtu, slow, whole=whole)
        lines += [
            f"filter add dev {device} parent 1: protocol {family} prio {prio} u32 match {match} dst {address}"
            f" flowid 1:{number:x}"
            for family, prio, match, address in (
                ("ip", 1, "ip", f"{plan[peer].address}/32"),
                ("ipv6", 2, "ip6", f"{plan[peer].address6}/128"),
            )
        ]
    return lines


def _rate(pace: Pace) -> int:
    return pace.rate_bit_per_s


def _class(device: str, number: int, pace: Pace, mtu: int, slow: int, *, whole: bool) -> list[str]:
    burst = _burst(pace, mtu, slow, whole=whole)
    return [
        (
            f"class add dev {device} parent 1: classid 1:{number:x} htb rate {_paced(pace, slow)}bit"
            f" burst {burst} cburst {burst} quantum {max(mtu, 1500)}"
        ),
        f"qdisc add dev {device} parent 1:{number:x} pfifo limit {_WAITING_PACKETS}",
    ]


def _paced(pace: Pace, slow: int) -> int:
    return max(8, pace.rate_bit_per_s // slow)


def _burst(pace: Pace, mtu: int, slow: int, *, whole: bool) -> int:
    burst = max(3 * (mtu + 64), _paced(pace, slow) * _BURST_NS // 8_000_000_000)
    return burst if whole else max(burst, 2 * _SUPER_PACKET_BYTES)


def _own(link: LinkPlan, host: str, mtu: int, counted: int) -> Pace:
    """The rate of a host's NIC, and the size table that gives the length of its frames on the line.

    Without the table, the kernel counts `counted` bytes in addition to an IP packet: 14 for a TAP device,
    0 for a TUN device.
    """
    rate, overhead = link.rates_bit_per_s[link.ends.index(host)], link.overhead_bytes - counted
    if link.least_bytes:
        table = _table(mtu + 64)
        sizes = (
            f"stab mtu {table} tsize {table} mpu {link.least_bytes} overhead {overhead} linklayer ethernet"
        )
    else:
        sizes = f"stab overhead {overhead} linklayer ethernet" if overhead else ""
    return Pace(rate, sizes)


def _circuits(numbers: PointPlan, host: str) -> dict[str, Pace]:
    """The rates of a host's virtual circuits, by the host at the other end of each."""
    found = {}
    for way in numbers.ways:
        circuit = way.circuit
        if way.from_ == host and circuit is not None:
            table = _table(way.mtu_bytes + 64)
            counted = f"stab mtu {table} tsize {table} overhead {circuit.overhead_bytes} linklayer atm"
            found[way.to] = Pace(circuit.rate_bit_per_s, counted)
    return found


def _table(bytes_: int) -> int:
    """Entries of a size table: one per byte, so that sizes are exact. The kernel adds entries for more."""
    table = 2048
    while table < min(bytes_, _MOST_ENTRIES):
        table *= 2
    return table
