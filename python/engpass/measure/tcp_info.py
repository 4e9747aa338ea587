"""TCP's counters at one end of a flow: `TCP_INFO` at the edges of the window, for all streams. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engpass.measure.answers import Counter, End, Subflow, TcpInfo
from engpass.measure.wire_bits import TIMESTAMPS_BYTES

_OPTION_TIMESTAMPS = 1  # TCPI_OPT_TIMESTAMPS of linux/tcp.h


def subflows(end: End) -> list[Subflow]:
    """The MPTCP subflows of all streams of an end; empty for plain TCP."""
    return [one for stream in end.streams for one in stream.subflows]


@dataclass(frozen=True)
class Tcp:
    """`TCP_INFO` of an end's streams, summed. Counters that the kernel lacks count as 0."""

    edges: tuple[tuple[TcpInfo, TcpInfo, TcpInfo], ...]
    """For each stream: when the window opened, when it closed, and after the last data."""

    @classmethod
    def of(cls, end: End) -> Tcp:
        """Take the streams of an end, as its agent reported them."""
        known = [(stream.tcp, stream.tcp.open, stream.tcp.close) for stream in end.streams if stream.tcp]
        return cls(tuple((first, last, tcp.end or last) for tcp, first, last in known if first and last))

    @classmethod
    def over(cls, subflows: Iterable[Subflow]) -> Tcp:
        """Take some subflows of MPTCP.

        A subflow that began in the window counts from 0. One that ended in it counts with its last reading.
        """
        known = [(one.tcp, one.tcp.close or one.tcp.open) for one in subflows]
        return cls(tuple((tcp.open or TcpInfo(), last, tcp.end or last) for tcp, last in known if last))

    @property
    def known(self) -> bool:
        """Whether the kernel reported on any stream."""
        return bool(self.edges)

    @property
    def streams(self) -> int:
        """Number of streams that the kernel reported on."""
        return len(self.edges)

    def grew(self, counter: Counter) -> int:
        """Growth of a counter in the window."""
        each = ((first.counted(counter), last.counted(counter)) for first, last, _ in self.edges)
        return sum((last or 0) - (first or 0) for first, last in each)

    def whole(self, counter: Counter) -> int:
        """A counter over the whole life of the connections."""
        return sum(end.counted(counter) or 0 for _, _, end in self.edges)

    @property
    def options(self) -> int:
        """Bytes of TCP options in every segment."""
        return TIMESTAMPS_BYTES if (self._first.options or 0) & _OPTION_TIMESTAMPS else 0

    @property
    def mss(self) -> int:
        """Payload of a full segment."""
        return self._first.snd_mss or self._first.rcv_mss or 1

    @property
    def again(self) -> int:
        """Bytes of payload that were retransmitted."""
        return self.grew("bytes_retrans")

    @property
    def twice(self) -> int:
        """Bytes of payload that the peer reported as duplicates (D-SACK, RFC 2883), as full segments."""
        return self.grew("dsack_dups") * self.mss

    @property
    def _first(self) -> TcpInfo:
        return self.edges[0][1] if self.edges else TcpInfo()
