"""How evenly a paced flow arrived, and the causes of deviating gaps. Pure functions."""

from __future__ import annotations

from engpass.measure.answers import Distribution, End, Stalls
from engpass.types.outcome import GapDeviation

_WAITED = "other threads of the sending host used its core"
_STOLEN = "the hypervisor of the sending host used its core, or woke it late"
_KERNEL = "the sending host's kernel used its core, for interrupts and for sending"
_MOST = 0.5
_PPM = 1e6


def pacing(sender: End, receiver: End) -> GapDeviation | None:
    """The sender's part in the deviation of the gaps, by cause; `None` if no gaps were seen.

    The deviation itself is in `gap_s`. Shares are of sums of squares, as in a variance.
    """
    gaps, how = receiver.gaps, sender.pacing
    if not gaps.count or gaps.sd_ns is None:
        return None
    stalls, explained, summary = how.stalls, None, None
    if stalls is not None:
        variance = float(gaps.sd_ns) ** 2 * gaps.count
        explained = min(1.0, stalls.squares_ns2 / variance) if variance else None
        summary = _summary(gaps, stalls, explained)
    return GapDeviation(
        method=how.method,
        scheduling_class=how.class_,
        cpu_latency_held=how.awake,
        stalls=stalls,
        explained_share=explained,
        summary=summary,
    )


def _summary(gaps: Distribution, stalls: Stalls, explained: float | None) -> str:
    said = f"gaps deviate by {_us(gaps.sd_ns or 0)}, and half of them by at most {_us(gaps.mad_ns or 0)}"
    if not stalls.count or not explained:
        return said
    said += (
        f": the sender stalled {stalls.count:,} times, for at most {_us(stalls.longest_ns)},"
        f" which explains {100 * explained:.0f} % of the deviation"
    )
    causes = ((stalls.waited, _WAITED), (stalls.stolen, _STOLEN), (stalls.kernel, _KERNEL))
    shares = sorted(((cause.squares_ppm / _PPM, words) for cause, words in causes), reverse=True)
    if explained < _MOST:
        return said + "; the rest arose on the path"
    return (
        said + "; " + ", ".join(f"{100 * share:.0f} %: {words}" for share, words in shares if share >= 0.01)
    )


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:,.1f} us"
