"""Bits that a message takes on a line, by account: pure arithmetic of headers and media.

The headers are IPv4 without options (RFC 791) or IPv6 (RFC 8200, with an 8-byte header in fragments), UDP
(RFC 768) or TCP with the options that the kernel reports (RFC 9293, RFC 7323), and frames of IEEE 802.3.
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
    """The framing of a link; `mtu` is the smallest MTU on the path up to this link, in bytes."""

    link: LinkPlan
    mtu: int
    v6: bool = False

    def packets(self, ip_payload: int) -> list[int]:
        """Bytes of each IP packet that carries the payload, headers included; several if it is fragmented."""
        header = _IP6 if self.v6 else _IP4
        if ip_payload + header <= self.mtu:
            return [ip_payload + header]
        if self.v6:
            header += _FRAGMENT6
        room = (self.mtu - header) // 8 * 8
        whole, rest = divmod(ip_payload, room)
        return [room + header] * whole + ([rest + header] if rest else [])

    def of(self, ip_payload: int, transport: int) -> dict[str, int]:
        """Overhead in bits by account of the packets that carry the payload.

        `transport` are the bytes of the transport header in it.
        """
        packets = self.packets(ip_payload)
        parts = {"IP headers": sum(packets) - ip_payload, "transport headers": transport}
        if self.link.framing == "ethernet":
            header = _ETHERNET + (_TAG if self.link.vlan else 0)
            parts["physical framing"] = _PREAMBLE_AND_GAP * len(packets)
            parts["frame headers"] = header * len(packets)
            parts["padding"] = sum(max(0, _LEAST_FRAME - header - packet) for packet in packets)
        else:
            parts["frame headers"] = self.link.overhead_bytes * len(packets)
        return {account: 8 * size for account, size in parts.items() if size}

    def segment(self, payload: int, options: int) -> dict[str, int]:
        """Like `of` for a TCP segment: bytes of payload and of TCP options."""
        transport = TCP_BYTES + options
        return self.of(payload + transport, transport)

    def counted(self, ip_payload: int) -> int:
        """Bytes that the kernel's interface counters add for the payload: frames without checksum."""
        return sum(packet + _KERNEL_FRAME for packet in self.packets(ip_payload))
