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
        """The counters of all streams of an end, as its agent reported them."""
        known = [(stream.tcp, stream.tcp.open, stream.tcp.close) for stream in end.streams if stream.tcp]
        return cls(tuple((first, last, tcp.end or last) for tcp, first, last in known if first and last))

    @classmethod
    def over(cls, subflows: Iterable[Subflow]) -> Tcp:
        """The counters of some MPTCP subflows together.

        A subflow that began in the window counts from 0; one that ended in it counts with its last reading.
        """
        known = [(one.tcp, one.tcp.close or one.tcp.open) for one in subflows]
        return cls(tuple((tcp.open or TcpInfo(), last, tcp.end or last) for tcp, last in known if last))

    @property
    def known(self) -> bool:
        """True if the kernel reported on any stream."""
        return bool(self.edges)

    @property
    def streams(self) -> int:
        """Number of streams about which the kernel reported."""
        return len(self.edges)

    def grew(self, counter: Counter) -> int:
        """Growth of a counter in the window, summed over the streams."""
        each = ((first.counted(counter), last.counted(counter)) for first, last, _ in self.edges)
        return sum((last or 0) - (first or 0) for first, last in each)

    def whole(self, counter: Counter) -> int:
        """A counter at the end of the connections, summed over the streams."""
        return sum(end.counted(counter) or 0 for _, _, end in self.edges)

    @property
    def options(self) -> int:
        """Bytes of TCP options that every segment has."""
        return TIMESTAMPS_BYTES if (self._first.options or 0) & _OPTION_TIMESTAMPS else 0

    @property
    def mss(self) -> int:
        """Payload bytes of a full segment."""
        return self._first.snd_mss or self._first.rcv_mss or 1

    @property
    def again(self) -> int:
        """Payload bytes that were retransmitted in the window."""
        return self.grew("bytes_retrans")

    @property
    def twice(self) -> int:
        """Payload bytes that the peer reported as duplicates (D-SACK, RFC 2883), in full segments."""
        return self.grew("dsack_dups") * self.mss

    @property
    def _first(self) -> TcpInfo:
        return self.edges[0][1] if self.edges else TcpInfo()
