"""What a message takes of a line, in bits by account: pure arithmetic of headers and media.

IPv4 without options (RFC 791) or IPv6 (RFC 8200, fragments with their header of 8 B), UDP (RFC 768), TCP with
the options that the kernel says it uses (RFC 9293, RFC 7323), frames as IEEE 802.3 has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from engpass.types.plan import LinkPlan

UDP_BYTES = 8
TCP_BYTES = 20
TIMESTAMPS_BYTES = 12

_IP4, _IP6, _FRAGMENT6 = 20, 40, 8
_PREAMBLE_AND_GAP, _ETHERNET, _LEAST_FRAME, _TAG = 20, 18, 64, 4
_KERNEL_FRAME = 14


@dataclass(frozen=True)
class Wire:
    """A link, seen by what crosses it; `mtu` is the smallest on the way to it."""

    link: LinkPlan
    mtu: int
    v6: bool = False

    def packets(self, ip_payload: int) -> list[int]:
        """The IP packets, with headers, that carry so many bytes: fragments where one is too small."""
        header = _IP6 if self.v6 else _IP4
        if ip_payload + header <= self.mtu:
            return [ip_payload + header]
        if self.v6:
            header += _FRAGMENT6
        room = (self.mtu - header) // 8 * 8
        whole, rest = divmod(ip_payload, room)
        return [room + header] * whole + ([rest + header] if rest else [])

    def of(self, ip_payload: int, transport: int) -> dict[str, int]:
        """Bits by account of all packets that carry so many bytes, but for the payload of the transport."""
        packets = self.packets(ip_payload)
        parts = {"IP headers": sum(packets) - ip_payload, "transport headers": transport}
        if self.link.framing == "ethernet":
            header = _ETHERNET + (_TAG if self.link.vlan else 0)
            least = _LEAST_FRAME + (_TAG if self.link.vlan else 0)
            parts["physical framing"] = _PREAMBLE_AND_GAP * len(packets)
            parts["frame headers"] = header * len(packets)
            parts["padding"] = sum(max(0, least - header - packet) for packet in packets)
        else:
            parts["frame headers"] = self.link.overhead_bytes * len(packets)
        return {account: 8 * size for account, size in parts.items() if size}

    def segment(self, payload: int, options: int) -> dict[str, int]:
        """The same of a TCP segment with so many bytes of payload and of options."""
        transport = TCP_BYTES + options
        return self.of(payload + transport, transport)

    def counted(self, ip_payload: int) -> int:
        """Bytes that the kernel's counters of the interface have for it: frames without their check sum."""
        return sum(packet + _KERNEL_FRAME for packet in self.packets(ip_payload))
