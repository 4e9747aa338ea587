"""The records that the store writes and returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import to_builtins

from engpass.campaign import Axis, Plan, Point, digest
from engpass.environment import Environment
from engpass.jsondata import Json
from engpass.results.record import Named
from engpass.types.outcome import VERSION
from engpass.types.plan import Drawing

if TYPE_CHECKING:
    from engpass.types.outcome import SweptValue

CAMPAIGN = "campaign"
"""The method of a run whose points do not depend on each other."""


def drawn(topology: Drawing) -> dict[str, Json]:
    """A drawing as JSON data, with empty lists included."""
    return {name: to_builtins(getattr(topology, name)) for name in topology.__struct_fields__}


class RunRecord(msgspec.Struct, frozen=True):
    """A stored run, of a campaign, a search or a path: its settings, environment and progress.

    A search or a path has one engine and one variant, and its points are its trials or steps.
    """

    id: str
    name: str
    source: str
    text: str
    overrides: list[tuple[str, str]]
    engines: list[str]
    variants: list[str]
    axes: tuple[Axis, ...]
    repeats: int
    topology: Drawing
    environment: Environment
    """Environment of the first session; `Store.sessions` has those of all sessions."""
    created: str
    points_total: int
    """Points of the plan; of a search or a path, the points done."""
    points_done: int
    """Points with an outcome; points that ended with an error do not count."""
    status: str
    """`done`, `partial` (points are missing) or `failed` (all were tried, some ended with an error)."""
    points_failed: int = 0
    used: str = ""
    """When the last session began, ISO 8601; `last` selects the run with the latest."""
    description: str | None = None
    digest: str = ""
    method: str = CAMPAIGN
    """`campaign`, the method of a search, or `rfc6349` for a path."""
    traffic: str = ""
    """The traffic that a search varies, or whose path is measured."""
    settings: dict[str, Json] = msgspec.field(default_factory=dict)
    """The settings of a search or a path."""
    result: dict[str, Json] | None = None
    """The result of a search or a path; `None` until it has ended."""
    trials: list[dict[str, Json]] = msgspec.field(default_factory=list)
    """The trials of a search or the steps of a path; empty in `Store.runs`."""

    @property
    def plan(self) -> Plan:
        """The points of this campaign."""
        return Plan(tuple(self.engines), tuple(self.variants), self.axes, self.repeats)

    @property
    def engine(self) -> str:
        """The first engine; a search or a path has no other."""
        return self.engines[0]

    @property
    def variant(self) -> str:
        """The first variant; a search or a path has no other."""
        return self.variants[0]

    def to_json(self) -> dict[str, Json]:
        """The record as JSON data."""
        common = {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "method": self.method,
            "source": self.source,
            "created": self.created,
            "used": self.used,
            "status": self.status,
            "points_total": self.points_total,
            "points_done": self.points_done,
            "points_failed": self.points_failed,
            "overrides": [list(pair) for pair in self.overrides],
            "topology": drawn(self.topology),
            "environment": self.environment,
            "text": self.text,
        }
        names = "engines variants axes repeats"
        if self.method != CAMPAIGN:
            names = "engine variant traffic settings trials result"
        return common | {name: to_builtins(getattr(self, name)) for name in names.split()}


def new_record(
    testbed: Named,
    plan: Plan,
    environment: Environment,
    *,
    method: str = CAMPAIGN,
    traffic: str = "",
    settings: Mapping[str, Json] | None = None,
    emulation: Mapping[str, str | int | bool] | None = None,
) -> RunRecord:
    """The record of a run that is to begin; the store gives it an id."""
    told = dict(settings or {})
    more: dict[str, Json] = {} if emulation is None else {"emulation": emulation}
    if method != CAMPAIGN:
        more |= {"method": method, "traffic": traffic, "settings": told}
    return RunRecord(
        id="",
        name=testbed.name,
        description=testbed.description,
        source=testbed.source,
        text=testbed.text,
        overrides=list(testbed.overrides),
        engines=list(plan.engines),
        variants=list(plan.variants),
        axes=plan.axes,
        repeats=plan.repeats,
        topology=testbed.topology,
        environment=environment,
        created=str(environment["started"]),
        points_total=plan.total if method == CAMPAIGN else 0,
        points_done=0,
        status="partial",
        digest=digest(plan, testbed.text, testbed.overrides, more),
        method=method,
        traffic=traffic,
        settings=told,
    )


class Finished(msgspec.Struct, frozen=True):
    """A point that ended: with an outcome (JSON text) or with an error."""

    position: int
    seconds: float
    outcome: str | None
    error: str | None
    trial: str | None = None
    """Of a search or a path: the trial or step as JSON text. It may have no outcome."""


class Failure(msgspec.Struct, frozen=True):
    """A point that ended with an error."""

    point: Point
    error: str

    def to_json(self, sweep: Mapping[str, SweptValue]) -> dict[str, Json]:
        """The failure as JSON data, with the keys of an outcome and `error`."""
        return {
            "version": VERSION,
            "variant": self.point.variant,
            "engine": self.point.engine,
            "repeat": self.point.repeat,
            "seed": None,
            "sweep": to_builtins(sweep),
            "flows": {},
            "links": {},
            "error": self.error,
        }
