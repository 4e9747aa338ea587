"""Calls of the core for points with real hosts: requests to agents, and outcomes of their answers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from engpass import _engpass
from engpass.campaign import Point
from engpass.jsondata import Json
from engpass.measure.agent import MeasureError
from engpass.measure.answers import Hello, Line, Membership
from engpass.types.agent import Asked, Requests
from engpass.types.outcome import Precision

_REQUESTS = msgspec.json.Decoder(Requests).decode


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """All that the controller knows after a run."""

    hellos: Mapping[str, Json]
    """Greetings of the agents, by host."""
    results: Mapping[str, msgspec.Raw]
    """Answers to `collect`, by host."""
    at: str
    """End of the point, ISO 8601."""
    took_s: float
    carrier: str
    """What carried the packets: `hosts`, `veth` or `model`."""
    notes: list[str]
    """Deviations of this network from the file, as sentences."""
    memberships: Mapping[str, GroupTrial] = {}
    """Trials in which the receivers of a multicast group join and leave, by traffic."""
    precision: Mapping[str, Precision] | None = None
    """Precision of the mean rate by traffic, if the run has a stop rule."""
    emulation: Emulation | None = None
    """The emulated network."""


class GroupTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial in which receivers join a multicast group and leave it."""

    member_s: float
    left_s: float
    """Seconds for which they listened after they had left."""
    receivers: Mapping[str, list[Membership]]
    """Joins and leaves by receiver."""
    error: str | None = None
    """Why the trial failed."""


class Emulation(msgspec.Struct, frozen=True, kw_only=True):
    """How a network was emulated, and the driver's answer at the end of the window."""

    clock: str
    no_offload: bool
    max_lateness: str
    tap: bool
    closed: Mapping[str, Json]


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except _engpass.NotMeasured as error:
        cause, cure = error.args
        raise MeasureError(cause, cure) from None


def requests(
    campaign: _engpass.Campaign, variant: str, sweep: Sequence[tuple[str, str]], asked: Asked
) -> Requests:
    """The requests to the agents of a point; raises `MeasureError` for traffic that agents cannot make."""
    with _told():
        return _REQUESTS(campaign.requests(variant, sweep, msgspec.json.encode(asked)))


def measured(campaign: _engpass.Campaign, point: Point, asked: Asked, answers: Answers) -> str:
    """The outcome of a point as JSON; raises `MeasureError` if an end of a flow failed."""
    texts = [msgspec.json.encode(one) for one in (asked, answers)]
    with _told():
        return campaign.measured(point.variant, point.sweep, point.repeat, *texts)


def check_end(host: str, done: Line) -> None:
    """Raise `MeasureError` if an end of a flow failed or ended before its time."""
    with _told():
        _engpass.check_end(done.flow, host, msgspec.json.encode(done))


def greetings(hellos: Mapping[str, Hello]) -> dict[str, Json]:
    """The greetings of agents as received."""
    return {host: hello.told for host, hello in hellos.items()}
