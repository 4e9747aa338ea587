"""The timeline of one run of a point: windows, flight, queues and events over time."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engpass import _engpass
from engpass.error import EngpassError
from engpass.types.outcome import Timeline

SAMPLES = 1_000
"""Number of instants at which a timeline is sampled."""


def timeline(
    campaign: _engpass.Campaign,
    variant: str,
    sweep: Sequence[tuple[str, str]],
    repeat: int = 0,
    samples: int = SAMPLES,
    interrupt: _engpass.Interrupt | None = None,
) -> Timeline:
    """Simulate a point and record the state of its flows and queues, each at most `samples` times.

    Raises what `Campaign.run` raises.
    """
    record = getattr(campaign, "timeline", None)
    if record is None:
        raise EngpassError("this build of the core cannot record a timeline", "build it again: `make dev`")
    text = record(variant, list(sweep), repeat, samples, interrupt or _engpass.Interrupt())
    return msgspec.json.decode(text, type=Timeline)
