"""What TCP flows get if the phase of their packets varies, beside what they get in a run without chance."""

from __future__ import annotations

import msgspec

from engpass import formatting
from engpass.jsondata import Json
from engpass.results.samples import GOODPUT, TRANSFER_TIME

_NAMED = 3
"""Maximum number of links or flows that a sentence names."""


class Shaken(msgspec.Struct, frozen=True, kw_only=True):
    """A run with a jitter of the first links of several TCP flows, whose shares it changes much."""

    flow: str
    links: tuple[str, ...]
    jitter: str
    ends: bool
    """True if the flows are transfers that end: values are then their times in s, else goodputs in bit/s."""
    before: dict[str, float]
    after: dict[str, float]

    @property
    def text(self) -> str:
        """A sentence on what the flows get with the jitter."""
        what = "times of the transfers" if self.ends else "shares of the TCP flows"
        links = formatting.listed([f"`{link}`" for link in self.links[:_NAMED]])
        on = f"link{'s' if self.links[1:] else ''} {links}"
        if len(self.links) > _NAMED:
            on = f"the first links of these {len(self.after)} flows"
        return (
            f"the {what} depend on the phase in which packets meet the full queue, because nothing in this"
            f" file is random: with a jitter of {self.jitter} on {on}, {self._get()}"
        )

    def _get(self) -> str:
        base = "s" if self.ends else "bit/s"
        own = formatting.quantity(self.after[self.flow], base)
        verb = "ends after" if self.ends else "gets"
        rest = {name: value for name, value in self.after.items() if name != self.flow}
        if len(rest) < _NAMED:
            said = [f"`{name}` {formatting.quantity(value, base)}" for name, value in rest.items()]
            return formatting.listed([f"`{self.flow}` {verb} {own}", *said])
        others = formatting.both(min(rest.values()), max(rest.values()), base)
        return f"`{self.flow}` {verb} {own}, the other {len(rest)} {'after ' if self.ends else ''}{others}"

    def to_json(self) -> dict[str, Json]:
        """The jitter and the value of each flow without and with it, as JSON data."""
        figure = TRANSFER_TIME if self.ends else GOODPUT
        return {
            "links": list(self.links),
            "jitter": self.jitter,
            figure.name: {name: [value, self.after[name]] for name, value in self.before.items()},
        }
