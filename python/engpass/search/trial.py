"""One trial: a load offered for some time, and the datagrams that were lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from engpass.error import EngpassError
from engpass.jsondata import Json
from engpass.results.losses import Losses

KEPT = 0.98
"""A sender with less than this share of the intended load has not offered the load."""

KEPT_BY_MODEL = 0.999
"""The least share for a constant stream in virtual time.

There the sender is never late by chance, and rounding of its gap to whole picoseconds changes its rate by
less than this. If it sends less, something held it back, such as the shaper of a circuit.
"""


class SearchError(EngpassError):
    """A search cannot be made, or did not end."""


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    load_bit_per_s: int
    duration_s: float
    sent: int
    lost: int
    asked: int
    kept: bool
    valid: bool = True
    late: int = 0


class Trial(msgspec.Struct, frozen=True):
    """A trial and its result (RFC 9971, "Trial Result").

    Loads are of payload, in bit/s; counts are datagrams.
    """

    load: int
    duration: float
    """The intended duration of the trial in seconds."""
    sent: int
    lost: int
    """Datagrams that did not arrive by the end of the wait after the trial."""
    asked: int
    """Number of datagrams that the intended load has in the duration."""
    valid: bool = True
    """False if an emulated network delivered packets too late."""
    kept: bool = True
    """True if the sender offered the intended load, apart from chance and rounding."""
    late: int = 0
    """Lost datagrams that were still in flight at the end of the wait, if the engine knows."""

    @property
    def losses(self) -> Losses:
        """The datagrams that should have arrived, and those that did not.

        A datagram that the sender could not offer counts as lost. Otherwise a load that was never offered
        would seem to pass. RFC 9971 recommends to count a severe deviation of the offered from the intended
        load as loss.
        """
        expected = self.sent if self.kept else max(self.asked, self.sent)
        return Losses(expected, max(0, expected - (self.sent - self.lost)))

    @property
    def loss(self) -> float:
        """The share of the datagrams that should have arrived but did not."""
        return self.losses.share or 0.0

    @property
    def forwarded(self) -> float:
        """The forwarding rate in bit/s: the load times the share of the datagrams that arrived."""
        expected = max(self.asked, self.sent)
        return self.load * max(0, self.sent - self.lost) / expected if expected else 0.0

    def to_json(self) -> dict[str, float]:
        """The trial as JSON data, with the figures derived from its counts."""
        derived = {"loss": self.loss, "forwarded_bit_per_s": self.forwarded}
        names = {"load": "load_bit_per_s", "duration": "duration_s"}
        stored = {names.get(key, key): value for key, value in msgspec.structs.asdict(self).items()}
        if not self.late:
            del stored["late"]
        return stored | derived

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Trial:
        """Inverse of `to_json`."""
        told = msgspec.convert(data, _Stored)
        load, duration = told.load_bit_per_s, told.duration_s
        return cls(load, duration, told.sent, told.lost, told.asked, told.valid, told.kept, told.late)


Measurer = Callable[[int, float], Trial]
"""Makes a trial, from a load in bit/s of payload and a duration in seconds."""


class Budget(msgspec.Struct):
    """The trial time that a search may take, and the time that it has taken, in seconds."""

    most: float
    spent: float = 0.0

    @property
    def over(self) -> bool:
        """True if the time of trials has reached its limit."""
        return self.spent >= self.most

    def spend(self, trial: Trial) -> Trial:
        """Count the duration of a trial; returns the trial."""
        self.spent += trial.duration
        return trial
