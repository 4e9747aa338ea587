"""Reproduces a study: runs the campaigns that its claims need, then checks the claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from engpass.campaign import check_size
from engpass.campaign_runner import Progress, Watch
from engpass.claims import MAIN, Campaign, CampaignSpec, ClaimsFile, Judged, Measure, judge
from engpass.error import EngpassError
from engpass.gallery import Study
from engpass.memory import MOST
from engpass.results.ledger import slim
from engpass.source import Source, read
from engpass.testbed import Testbed

if TYPE_CHECKING:
    from engpass.campaign import Plan
    from engpass.store import RunRecord, Store


class Part(msgspec.Struct, frozen=True):
    """One campaign of a study with its testbed and plan, ready to run."""

    spec: CampaignSpec
    testbed: Testbed
    plan: Plan


class Ran(msgspec.Struct, frozen=True):
    """The campaigns of a study after a run: their progress and records."""

    records: dict[str, RunRecord]
    """The runs in the store, by the name of the campaign."""
    interrupted: bool

    @property
    def failed(self) -> list[RunRecord]:
        """The campaigns with a point that ended in an error."""
        return [record for record in self.records.values() if record.points_failed]


class Reproduction(msgspec.Struct, frozen=True):
    """A study: its claims, and the campaigns that they need."""

    study: Study
    claims: ClaimsFile
    parts: tuple[Part, ...]

    @property
    def total(self) -> int:
        """Number of points of all campaigns together."""
        return sum(part.plan.total for part in self.parts)

    def run(
        self,
        store: Store,
        *,
        jobs: int | None = None,
        watch: Watch | None = None,
        max_memory: int | None = MOST,
    ) -> Ran:
        """Run the points that the store does not have yet. Ctrl-C ends the run; finished points are kept.

        Raises `NeedsMemoryError` if a campaign needs more than `max_memory` bytes.
        """
        # Enter all campaigns into the store before the first runs: the bar counts points stored earlier.
        started = [
            part.testbed.start(part.plan, store, jobs=jobs, max_memory=max_memory) for part in self.parts
        ]
        records = {part.spec.name: store.run(s.run_id) for part, s in zip(self.parts, started, strict=True)}
        sums = _Sums(self.total, sum(r.points_done for r in records.values()), watch)
        for part, begun in zip(self.parts, started, strict=True):
            found = records[part.spec.name].points_done
            ended = begun.go(lambda progress, found=found: sums.tell(progress, found))  # type: ignore[misc]
            sums.add(ended.progress, found)
            records[part.spec.name] = store.run(begun.run_id)
            if ended.interrupted:
                return Ran(records, interrupted=True)
        return Ran(records, interrupted=False)

    def judge(self, store: Store, ran: Ran) -> list[Judged]:
        """Check the claims against the outcomes in the store."""
        campaigns = {}
        for part in self.parts:
            outcomes = (slim(outcome) for outcome in store.outcomes(ran.records[part.spec.name].id))
            campaigns[part.spec.name] = Campaign(part.testbed.axes, outcomes)
        return judge(self.claims.claims, campaigns)

    def report(self, store: Store, ran: Ran, judged: Sequence[Judged]) -> str:
        """The HTML report of the main campaign together with the claims."""
        from engpass.report import render

        record = ran.records[MAIN]
        outcomes = [slim(outcome) for outcome in store.outcomes(record.id)]
        return render(record, outcomes, [one.to_json() for one in judged], self.claims.notes)


def prepare(
    study: Study,
    overrides: Sequence[tuple[str, str]] = (),
    repeats: int | None = None,
    max_points: int | None = None,
) -> Reproduction:
    """Read a study, and check its testbed and the names in its claims for every campaign.

    `overrides` apply to all campaigns, and have precedence over their own values. Raises `InvalidTestbed`,
    and `EngpassError` for other errors (`ClaimsError` for the claims file, `ChoiceError` for unknown names),
    also if there are more than `max_points` points.
    """
    claims = study.claims()
    source = Source(study.shown, read(study.testbed).data)
    parts = []
    for spec in claims.campaigns:
        pairs = (*spec.set, *overrides)
        testbed = Testbed(source, pairs, path=study.testbed)
        plan = testbed.plan(spec.engines, spec.variants, repeats or spec.repeats)
        parts.append(Part(spec, testbed, plan))
    # The plan of a campaign may have only few of the points of its testbed.
    check_size(sum(part.plan.total for part in parts), max_points)
    for claim in claims.claims:
        if claim.measure is not None:
            part = next(part for part in parts if part.spec.name == claim.measure.campaign)
            _check_names(claim.id, part, claim.measure)
            _check_where(claim.id, part, claim.measure)
    return Reproduction(study, claims, tuple(parts))


def _check_names(claim: str, part: Part, measure: Measure) -> None:
    """Raise `EngpassError` if a claim names an engine, variant or link that its campaign does not have.

    Such a claim is a mistake in the file, not a claim that fails.
    """
    from engpass.error import nearest

    links = [link.name for link in part.testbed.topology.links]
    for what, name, known in (
        ("engine", measure.engine, part.plan.engines),
        *(("variant", name, part.plan.variants) for name in measure.check.variants()),
        *(("link", name, links) for name in (measure.link,) if name is not None),
    ):
        if name not in known:
            raise EngpassError(
                f"claim `{claim}`: the campaign `{part.spec.name}` has no {what} `{name}`",
                nearest(name, known),
            )


def _check_where(claim: str, part: Part, measure: Measure) -> None:
    """Raise `EngpassError` if a claim names a swept value that its campaign does not have."""
    from engpass.error import nearest

    axes = {axis.path: [value.text for value in axis.values] for axis in part.testbed.axes}
    for path, text in measure.where:
        known = axes.get(path)
        if known is None:
            raise EngpassError(
                f"claim `{claim}`: the campaign `{part.spec.name}` does not sweep `{path}`",
                nearest(path, list(axes)),
            )
        if text not in known:
            raise EngpassError(
                f"claim `{claim}`: `{path}` never has the value `{text}`", nearest(text, known)
            )


class _Sums:
    """Adds up the progress of several campaigns."""

    def __init__(self, total: int, found: int, watch: Watch | None) -> None:
        self._base = Progress(total, found, 0, found, 0)
        self._watch = watch

    def tell(self, progress: Progress, found: int) -> None:
        if self._watch is not None:
            self._watch(self._with(progress, found))

    def add(self, progress: Progress, found: int) -> None:
        self._base = self._with(progress, found)

    def _with(self, progress: Progress, found: int) -> Progress:
        base = self._base
        return replace(
            base,
            done=base.done + progress.done - found,
            failed=base.failed + progress.failed,
            under_way=progress.under_way,
        )
