"""The plan of a point: hosts, links and traffic as integers, for engines with real hosts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engpass import _engpass
from engpass.types.plan import PointPlan


def point_plan(campaign: _engpass.Campaign, variant: str, sweep: Sequence[tuple[str, str]]) -> PointPlan:
    """The plan of a variant at a point of the sweep; raises `InvalidTestbed`."""
    return msgspec.json.decode(campaign.numbers(variant, sweep), type=PointPlan)
