"""How well a flow is served, by goodput, loss, delay and gaps, which count equally.

The figures are combined in the manner of Giessler and others (1978) and Kleinrock (1979) into *power*, the
throughput divided by the delay, here each relative to an idle network. In Kleinrock's generalised power the
throughput has an exponent: it counts twice for a transfer without a rate of its own, which only has to end
soon. The factors for losses and gaps are our own.

Every signal of a flow is known here (`Served`), but a flow is judged only by figures that its application
sees, one for each quantity (`Needs.figures`). These do not count:

- Counts of a mechanism: retransmissions, timeouts, round trips as the sender measures them. They harm a flow
  only by its goodput or delay. A change that retransmits more and delivers sooner is a gain.
- Minima, maxima and the other percentiles of a delay. One change would count several times, and an extreme
  is a single packet, which may be chance. The p99 is that of ITU-T Y.1541.
- The queueing delay, which is a part of the delay, and losses on lines that are down, a part of the loss.
- The message delay of a transfer, whose application waits only for the end. If the application paces a TCP
  flow, the message delay counts, and the delay of single segments does not.
- Gaps of a transfer, which cost it goodput; of on-off traffic, which pauses itself; and of a flow that lost
  nothing to a line that was down.

Figures may differ by chance if the seed matters. A change helps only if the score rises with every seed
(`advice`). A change harms if the figure over all seeds is worse. This may be chance, but such a change is
still listed, behind those without harm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec

from engpass.results import above_limit, samples
from engpass.results.samples import Samples
from engpass.types.outcome import FlowOutcome
from engpass.types.signals import FLOW, Signal

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

LONGER = 0.1
"""A delay or gap that changes by at most this share counts as the same: our choice, no source gives one."""

MUCH = 0.1
"""A change that takes this share of the goodput, or raises the loss share by this, is no help.

Our choice: no source gives one.
"""

GAP = 50e-3
"""Longest gap in seconds that a flow tolerates, the time of protection switching: ITU-T G.841, RFC 5654."""

SCORED = (
    samples.GOODPUT,
    samples.TRANSFER_RATE,
    samples.LOSS,
    samples.DELAY_P99,
    samples.MESSAGE_DELAY_P99,
)
"""Signals by which points are compared. The longest gap is not one of them: it grows with the run."""


class Served(msgspec.Struct, frozen=True):
    """The service of a flow in one run or several: the folded value of every signal that has one."""

    values: Mapping[Signal, float]

    @staticmethod
    def of(flows: Iterable[FlowOutcome], signals: Iterable[Signal] = FLOW) -> Served:
        """The service of a flow in some outcomes; without any it has no goodput."""
        repeats = Samples(signals)
        for flow in flows:
            repeats.add(flow)
        return Served({samples.GOODPUT: 0.0, **repeats.values()})

    @property
    def goodput(self) -> float:
        """Goodput in bit/s."""
        return self.values[samples.GOODPUT]

    @property
    def loss(self) -> float:
        """Share of the datagrams sent that were lost; 0 if unknown."""
        return self.values.get(samples.LOSS, 0.0)

    @property
    def ends(self) -> bool:
        """True if the flow is a transfer that ended in the run."""
        return samples.TRANSFER_RATE in self.values


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A signal by which a flow is judged, the value that its needs demand, and a notable change."""

    signal: Signal
    met: float
    """The least value, or the greatest if lower ones are better, that meets the needs of the flow."""
    share: float = 0.0
    """A change is notable if it exceeds both this share of the value before and `least`."""
    least: float = 0.0
    harm: float = 0.0
    """A notable change does harm only if it exceeds this amount."""

    def worsens(self, before: Served, after: Served, amount: float = 0.0) -> bool:
        """True if the value is notably worse after a change than before, and by more than `amount`."""
        old, new = before.values.get(self.signal), after.values.get(self.signal)
        if old is None or new is None:
            return False
        worse = new - old if self.signal.better == "lower" else old - new
        return worse > max(self.share * old, self.least, amount)

    def is_missed(self, served: Served) -> bool:
        """True if the value is known and does not meet the needs of the flow."""
        value = served.values.get(self.signal)
        if value is None:
            return False
        return value > self.met if self.signal.better == "lower" else value < self.met


class Needs(msgspec.Struct, frozen=True):
    """Needs of a flow: the figures by which its service is judged."""

    limit: float
    """The goodput that the flow should get, in bit/s: its fair share, or its bound if that is lower."""
    idle: float | None
    """The flow's delay on an idle path in seconds; `None` if its delay does not count."""
    resends: bool
    """True if a loss only costs the flow time, because it retransmits: TCP."""
    paced: bool
    """True if the application sends at a rate of its own, or if the flow is a transfer."""
    alone: float = math.inf
    """The rate in bit/s that a transfer can have: the least limit besides that of its application."""
    bursty: bool = False
    """True if the application pauses of its own accord."""

    @staticmethod
    def of(limited: FlowOutcome | None) -> Needs:
        """The needs according to the limit engine's outcome for the flow; without one, a limit of 0.

        A sender of datagrams without a rate of its own fills its own NIC: its delay does not count.
        """
        if limited is None:
            return Needs(0.0, None, resends=False, paced=False)
        tcp, limit = limited.kind == "tcp-stream", limited.limit
        candidates = limit.candidates if limit is not None else []
        others = [one.goodput_bit_per_s for one in candidates if one.bottleneck.kind != "application"]
        paced = len(others) < len(candidates)
        idle = limit.idle_delay_s if limit is not None and (tcp or paced) else None
        # A flow that starts late has only the rest of the run, so that its bound is below its fair share.
        most = min(limited.goodput_bit_per_s, above_limit.bound(limited))
        return Needs(most, idle, tcp, paced, min(others, default=math.inf), limited.kind == "udp-on-off")

    @property
    def tolerable(self) -> float:
        """The greatest 99 % quantile of the delay, in seconds, that the flow tolerates."""
        return math.inf if self.idle is None else self.idle + max(WAIT, ROUND_TRIPS * 2 * self.idle)

    def figures(self, *sides: Served) -> tuple[Figure, ...]:
        """The figures by which a flow with this service is judged, the goodput first.

        `sides` are the service before and after a change, or one of them.
        """
        ends = any(side.ends for side in sides)
        down = any(side.values.get(samples.LOST_DOWN) for side in sides)
        made = [Figure(signal=samples.GOODPUT, met=GOODPUT * self.limit or math.inf, share=LEAST)]
        if ends:
            made.append(Figure(signal=samples.TRANSFER_RATE, met=GOODPUT * self.alone, share=LEAST))
        if not self.resends:
            made.append(Figure(signal=samples.LOSS, met=LOSS, least=LOSS))
        made.append(self._delay(ends))
        if self.paced and not self.bursty and not ends and down:
            made.append(Figure(signal=samples.LONGEST_GAP, met=GAP, share=LONGER, least=GAP))
        return tuple(made)

    def _delay(self, ends: bool) -> Figure:
        # The messages of datagrams have the delay of the datagrams.
        messages = self.resends and self.paced and not ends
        signal = samples.MESSAGE_DELAY_P99 if messages else samples.DELAY_P99
        return Figure(signal=signal, met=self.tolerable, share=LONGER, least=1e-3, harm=WAIT)

    def delay(self, served: Served) -> float | None:
        """The 99 % quantile of the delay that counts, in seconds: of messages, or of datagrams and segments.

        `None` for generators of background traffic, and if no packet arrived.
        """
        return served.values.get(self._delay(served.ends).signal)

    def loses(self, served: Served) -> bool:
        """True if the losses harm the flow: more than `LOSS` of its datagrams; never for TCP."""
        return not self.resends and served.loss > LOSS

    def waits(self, served: Served) -> bool:
        """True if the delay exceeds what the flow tolerates."""
        return self._delay(served.ends).is_missed(served)

    def pauses(self, served: Served) -> bool:
        """True if the failure of a line makes a gap that exceeds what the flow tolerates."""
        return any(
            one.signal is samples.LONGEST_GAP and one.is_missed(served) for one in self.figures(served)
        )

    def score(self, served: Served) -> float:
        """The power of the flow: 1 at its limit, without harmful losses, and with a tolerable delay and gap.

        A transfer that ends before the run has the rate of the transfer, which may exceed its limit.
        """
        figures, values = self.figures(served), served.values
        rate = values.get(samples.TRANSFER_RATE, served.goodput)
        kept = 1.0 if self.resends else 1.0 - served.loss
        # A gap also delays messages: the longest of these times counts, so that nothing counts twice.
        times = [one for one in figures if one.signal.unit == "s" and one.is_missed(served)]
        prompt = 1 / max((values[one.signal] / one.met for one in times), default=1.0)
        if not self.paced or served.ends:
            prompt = math.sqrt(prompt)
        return rate / (self.limit or 1.0) * kept * prompt

    def worse(self, before: Served, after: Served) -> list[Figure]:
        """The figures that are notably worse after a change than before."""
        return [one for one in self.figures(before, after) if one.worsens(before, after)]

    def harmed(self, before: Served, after: Served) -> bool:
        """True if a figure is notably worse after a change, and does not meet the flow's needs."""
        worse = self.worse(before, after)
        return any(one.is_missed(after) and one.worsens(before, after, one.harm) for one in worse)

    def spoils(self, before: Served, after: Served) -> bool:
        """True if goodput or loss is so much worse that no shorter delay makes up for it."""
        return after.goodput < (1 - MUCH) * before.goodput or (
            not self.resends and after.loss > before.loss + MUCH
        )
