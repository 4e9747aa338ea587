"""The records that the store writes and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import to_builtins

from engpass.campaign import Axis, Plan, Point
from engpass.environment import Environment
from engpass.types.outcome import VERSION
from engpass.types.plan import Drawing

if TYPE_CHECKING:
    from engpass.types.outcome import SweptValue


def drawn(topology: Drawing) -> dict[str, object]:
    """A drawing as JSON data, with empty lists included."""
    return {name: to_builtins(getattr(topology, name)) for name in topology.__struct_fields__}


@dataclass(frozen=True)
class RunRecord:
    """A stored run of a campaign: its settings, environment and progress."""

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
    points_done: int
    """Points with an outcome; points that ended with an error do not count."""
    status: str
    """`done`, `partial` (points are missing) or `failed` (all were tried, some ended with an error)."""
    points_failed: int = 0
    used: str = ""
    """When the last session began, ISO 8601; `last` selects the run with the latest."""
    description: str | None = None
    digest: str = field(default="", repr=False)

    @property
    def plan(self) -> Plan:
        """The points of this campaign."""
        return Plan(tuple(self.engines), tuple(self.variants), self.axes, self.repeats)

    def to_json(self) -> dict[str, object]:
        """The record as JSON data."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "source": self.source,
            "created": self.created,
            "used": self.used,
            "status": self.status,
            "points_total": self.points_total,
            "points_done": self.points_done,
            "points_failed": self.points_failed,
            "engines": self.engines,
            "variants": self.variants,
            "overrides": [list(pair) for pair in self.overrides],
            "axes": to_builtins(self.axes),
            "repeats": self.repeats,
            "topology": drawn(self.topology),
            "environment": self.environment,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Finished:
    """A point that ended: with an outcome (JSON text) or with an error."""

    position: int
    seconds: float
    outcome: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A point that ended with an error."""

    point: Point
    error: str

    def to_json(self, sweep: Mapping[str, SweptValue]) -> dict[str, object]:
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
