"""How well a flow is served, by goodput, loss and delay, which count equally.

The three figures are combined in the manner of Giessler and others (1978) and Kleinrock (1979) into *power*,
the throughput divided by the delay, here each relative to an idle network. In Kleinrock's generalised power
the throughput has an exponent: it counts twice for a transfer without a rate of its own, which only has to
end soon. The factor for losses is our own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from engpass.results import above_limit
from engpass.results.losses import NO_LOSSES, Losses
from engpass.types.outcome import FlowOutcome

GOODPUT = 0.97
"""A flow with at least this share of its limit counts as having reached it."""

LOSS = 1e-3
"""A flow of datagrams that loses a greater share suffers: ITU-T Y.1541 table 1, IPLR of classes 0 to 4."""

WAIT = 5e-3
"""Queueing delay in seconds that any flow tolerates: CoDel's standing queue, RFC 8289 section 4."""

ROUND_TRIPS = 1
"""Queueing delay that a flow tolerates, in round trips of an idle network.

A buffer of one bandwidth-delay product delays by one round trip, and TCP needs no more (Villamizar and Song
1994).
"""

LEAST = 0.01
"""A goodput that changes by at most this share counts as the same: our choice, no source gives one."""

MUCH = 0.1
"""A change that takes this share of the goodput, or raises the loss share by this, is no help.

Our choice: no source gives one.
"""


class Served(msgspec.Struct, frozen=True):
    """Goodput, loss and delay of a flow in one run, or the means over several."""

    goodput: float
    """Goodput in bit/s."""
    losses: Losses = NO_LOSSES
    """Numbers of datagrams sent and lost."""
    half: float | None = None
    """Median delay in seconds; `None` for generators of background traffic, and if no packet arrived."""
    delay: float | None = None
    """The 99 % quantile of the delay in seconds; `None` as for `half`."""

    @property
    def loss(self) -> float:
        """Share of the datagrams sent that were lost; 0 if unknown."""
        return self.losses.share or 0.0

    @staticmethod
    def of(flow: FlowOutcome) -> Served:
        """The goodput, loss and delay of a flow in an outcome."""
        delay = flow.delay_s.network if flow.delay_s is not None else None
        delays = (None, None) if delay is None else (delay.p50, delay.p99)
        return Served(flow.goodput_bit_per_s, Losses.of(flow), *delays)

    @staticmethod
    def mean(repeats: Sequence[Served]) -> Served:
        """The mean over one or more repeats; the loss is that of all their datagrams together."""
        return Served(
            math.fsum(one.goodput for one in repeats) / len(repeats),
            Losses.sum(one.losses for one in repeats),
            mean([one.half for one in repeats]),
            mean([one.delay for one in repeats]),
        )


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are not `None`; `None` if there are none."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


class Needs(msgspec.Struct, frozen=True):
    """Needs of a flow: the figures by which its service is judged."""

    limit: float
    """The goodput that the flow should get, in bit/s: its fair share, or its bound if that is lower."""
    idle: float | None
    """The flow's delay on an idle path in seconds; `None` if its delay does not count."""
    resends: bool
    """True if a loss only costs the flow time, because it retransmits: TCP."""
    paced: bool
    """True if the application sends at a rate of its own."""

    @staticmethod
    def of(limited: FlowOutcome | None) -> Needs:
        """The needs according to the limit engine's outcome for the flow; without one, a limit of 0.

        A sender of datagrams without a rate of its own fills its own NIC: its delay does not count.
        """
        if limited is None:
            return Needs(0.0, None, resends=False, paced=False)
        tcp, limit = limited.kind == "tcp-stream", limited.limit
        paced = limit is not None and any(one.bottleneck.kind == "application" for one in limit.candidates)
        idle = limit.idle_delay_s if limit is not None and (tcp or paced) else None
        # A flow that starts late has only the rest of the run, so that its bound is below its fair share.
        return Needs(min(limited.goodput_bit_per_s, above_limit.bound(limited)), idle, tcp, paced)

    @property
    def tolerable(self) -> float:
        """The greatest 99 % quantile of the delay, in seconds, that the flow tolerates."""
        return math.inf if self.idle is None else self.idle + max(WAIT, ROUND_TRIPS * 2 * self.idle)

    def loses(self, served: Served) -> bool:
        """True if the losses harm the flow: more than `LOSS` of its datagrams; never for TCP."""
        return not self.resends and served.loss > LOSS

    def waits(self, served: Served) -> bool:
        """True if the delay exceeds what the flow tolerates."""
        return served.delay is not None and served.delay > self.tolerable

    def score(self, served: Served) -> float:
        """The power of the flow: 1 at its limit, without harmful losses and with a tolerable delay."""
        kept = 1.0 if self.resends else 1.0 - served.loss
        prompt = self.tolerable / served.delay if served.delay and self.waits(served) else 1.0
        return served.goodput / (self.limit or 1.0) * kept * (prompt if self.paced else math.sqrt(prompt))

    def declines(self, before: Served, after: Served) -> bool:
        """True if goodput, loss or delay is notably worse after a change than before."""
        return any(worse for worse, _ in self._changes(before, after))

    def gains(self, before: Served, after: Served) -> bool:
        """True if goodput, loss or delay is notably better after a change than before."""
        return any(worse for worse, _ in self._changes(after, before))

    def harmed(self, before: Served, after: Served) -> bool:
        """True if goodput, loss or delay is notably worse after a change, and below the flow's needs."""
        return any(worse and unmet for worse, unmet in self._changes(before, after))

    def spoils(self, before: Served, after: Served) -> bool:
        """True if goodput or loss is so much worse that no shorter delay makes up for it."""
        return after.goodput < (1 - MUCH) * before.goodput or (
            not self.resends and after.loss > before.loss + MUCH
        )

    def _changes(self, before: Served, after: Served) -> Iterator[tuple[bool, bool]]:
        """For goodput, loss and delay: True if notably worse; True if then less than the flow needs."""
        lost = before.goodput - after.goodput
        yield lost > LEAST * before.goodput, not self.limit or after.goodput < GOODPUT * self.limit
        yield not self.resends and after.loss > before.loss + LOSS, True
        yield longer(before.delay, after.delay), self.waits(after) and longer(before.delay, after.delay, WAIT)


def longer(before: float | None, after: float | None, seconds: float = 1e-3) -> bool:
    """True if the delay `after` exceeds `before` both by 10 % and by `seconds`."""
    return before is not None and after is not None and after - before > max(0.1 * before, seconds)
