"""One trial: so much offered for so long, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import msgspec

from engpass.error import EngpassError
from engpass.losses import Losses

KEPT = 0.98
"""A sender that reaches less of the asked load than this did not offer it."""


class SearchError(EngpassError):
    """A search that cannot be made, or came to no end."""


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    load_bit_per_s: int
    duration_s: float
    sent: int
    lost: int
    asked: int
    valid: bool = True


@dataclass(frozen=True)
class Trial:
    """A trial and its result (RFC 9971, "Trial Result").

    Loads are of payload, in bit/s; counts are datagrams.
    """

    load: int
    duration: float
    """What was asked for, in seconds."""
    sent: int
    lost: int
    asked: int
    """Datagrams that the load makes in that time."""
    valid: bool = True
    """Whether the engine stands by it: an emulated network may have come too late."""

    @property
    def kept(self) -> bool:
        """Whether the sender offered what was asked."""
        return self.sent >= KEPT * self.asked

    @property
    def losses(self) -> Losses:
        """The datagrams that should have come in, and those that did not.

        A datagram that the sender could not offer counts as lost (RFC 9971 recommends to turn a severe
        deviation of the offered from the intended load into loss): else the sender's own limit would look
        like the network's.
        """
        expected = self.sent if self.kept else max(self.asked, self.sent)
        return Losses(expected, max(0, expected - (self.sent - self.lost)))

    @property
    def loss(self) -> float:
        """The share that did not come in."""
        return self.losses.share or 0.0

    @property
    def forwarded(self) -> float:
        """The forwarding rate: load times what was not lost, in bit/s."""
        return self.load * (1.0 - self.loss)

    def to_json(self) -> dict[str, float]:
        """The trial as JSON data, with what follows from its counts."""
        derived = {"loss": self.loss, "forwarded_bit_per_s": self.forwarded, "kept": self.kept}
        names = {"load": "load_bit_per_s", "duration": "duration_s"}
        return {names.get(key, key): value for key, value in asdict(self).items()} | derived

    @classmethod
    def from_json(cls, data: Mapping[str, float]) -> Trial:
        """Inverse of `to_json`."""
        told = msgspec.convert(data, _Stored)
        return cls(told.load_bit_per_s, told.duration_s, told.sent, told.lost, told.asked, told.valid)


Measurer = Callable[[int, float], Trial]
"""Makes a trial: a load in bit/s of payload, a duration in seconds."""


@dataclass
class Budget:
    """How long a search may go on, in seconds of trials."""

    most: float
    spent: float = 0.0

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.spent >= self.most

    def spend(self, trial: Trial) -> Trial:
        """Count a trial."""
        self.spent += trial.duration
        return trial
