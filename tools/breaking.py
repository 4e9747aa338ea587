"""Checks that the claims of a study can fail: applies the `breaks` of each claim.

With its change applied a claim must fail; otherwise it would hold for any testbed. At least half of the
study's other claims must still hold; otherwise the change would break everything. Each claim runs only the
points that it reads, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

import msgspec
from break_rule import check_break
from msgspec.structs import replace

from engpass import _engpass
from engpass.campaign import Plan
from engpass.claims import Campaign, Claim, ClaimsFile, Measure, verdict
from engpass.claims.checks import Verdict
from engpass.environment import cores
from engpass.error import EngpassError, nearest
from engpass.results import outcomes
from engpass.results.ledger import slim
from engpass.settings import split
from engpass.source import Source, read
from engpass.testbed import Testbed

if TYPE_CHECKING:
    from engpass.gallery import Study
    from engpass.types.outcome import Outcome


class Attempt(msgspec.Struct, frozen=True):
    """The outcome of changing the testbed as the key `breaks` of one claim says."""

    claim: Claim
    obtained: str
    held: int
    """Number of other claims seen to hold with the change; counting stops once the result is certain."""
    others: int
    problem: str | None
    """Why the claim or its `breaks` is wrong, as text; `None` if both are right."""


class _Bench(msgspec.Struct):
    """A study with at most one change of its testbed; a point runs when a claim first needs it."""

    source: Source
    claims: ClaimsFile
    interrupt: _engpass.Interrupt
    change: tuple[str, str] | None = None
    _testbeds: dict[str, Testbed] = msgspec.field(default_factory=dict)
    _outcomes: dict[tuple[str, str, str, int], Outcome] = msgspec.field(default_factory=dict)

    def forbids(self, claim: Claim) -> str | None:
        """The reason why a claim may not name this change in `breaks`; `None` if it may."""
        measure = _measure(claim)
        pairs = self.claims.campaign(measure.campaign).set
        return self.change and check_break(Testbed(self.source, pairs).campaign, measure, *self.change)

    def affects(self, claim: Claim) -> bool:
        """True if the claim reads a point that the change may alter: in a variant, or in all of them."""
        path = split(self.change[0]) if self.change else ()
        return path[:1] != ("variant",) or path[1] in _measure(claim).check.variants()

    def timed(self, claim: Claim) -> tuple[Verdict, float]:
        """The verdict on a claim, and the wall-clock seconds that it took."""
        begin = time.perf_counter()
        return self.judge(claim), time.perf_counter() - begin

    def judge(self, claim: Claim) -> Verdict:
        """Check one claim. The verdict is not `judged` if the changed testbed cannot be loaded or run."""
        measure = _measure(claim)
        try:
            testbed = self._testbed(measure.campaign)
            axes = {axis.path for axis in testbed.axes}
            measure = replace(measure, where=tuple(pair for pair in measure.where if pair[0] in axes))
            made = [
                self._outcome(measure, testbed, variant, index)
                for variant in measure.check.variants()
                for index in _points(measure, testbed)
            ]
        except (_engpass.InvalidTestbed, _engpass.Unsupported, EngpassError) as error:
            lines = str(getattr(error, "rendered", error)).splitlines()
            said = next((line for line in lines if line.startswith("error")), lines[0])
            return Verdict(f"cannot be run: {said}", holds=False, judged=False)
        return verdict(measure, Campaign(testbed.axes, made))

    def _testbed(self, campaign: str) -> Testbed:
        if campaign not in self._testbeds:
            pairs = (*self.claims.campaign(campaign).set, *([self.change] if self.change else ()))
            self._testbeds[campaign] = Testbed(self.source, pairs)
        return self._testbeds[campaign]

    def _outcome(self, measure: Measure, testbed: Testbed, variant: str, index: int) -> Outcome:
        key = (measure.campaign, measure.engine, variant, index)
        if key not in self._outcomes:
            sweep = list(Plan((), (), testbed.axes, 1).sweep(index))
            text = testbed.campaign.run(measure.engine, variant, sweep, 0, self.interrupt)
            self._outcomes[key] = slim(outcomes.read(text))
        return self._outcomes[key]


def _measure(claim: Claim) -> Measure:
    assert claim.measure is not None, "open claims are left out"
    return claim.measure


def _points(measure: Measure, testbed: Testbed) -> list[int]:
    """The sweep points of the claim's campaign that the claim reads, as indices."""
    plan, where = Plan((), (), testbed.axes, 1), dict(measure.where)
    low, high = measure.check.reach()
    chosen = []
    for index in range(plan.sweep_points):
        inside = True
        for axis, value in zip(testbed.axes, plan.values(index), strict=True):
            if axis.path in where:
                inside &= value.text == where[axis.path]
            elif value.number is not None:
                slack = 1e-9 * abs(value.number)
                inside &= low is None or value.number >= low - slack
                inside &= high is None or value.number <= high + slack
        if inside:
            chosen.append(index)
    return chosen


def break_claims(
    study: Study, tell: Callable[[Attempt], None], *, wanted: Sequence[str] = (), jobs: int | None = None
) -> list[Attempt]:
    """Apply the breaks of a study's claims, or of the wanted ones; `tell` gets each attempt when it ends.

    Raises `ClaimsError`, and `EngpassError` for a wanted claim that the study does not make.
    """
    claims = study.claims()
    names = [claim.id for claim in claims.claims if claim.measure is not None]
    for name in wanted:
        if any(claim.id == name for claim in claims.claims if claim.measure is None):
            raise EngpassError(
                f"claim `{name}` of `{study.name}` is open: it has no check that could fail",
                "leave this claim out, or name one that has a check",
            )
        if name not in names:
            raise EngpassError(f"`{study.name}` has no claim `{name}`", nearest(name, names))
    source = Source(study.shown, read(study.testbed).data)
    interrupt = _engpass.Interrupt()
    attempts: list[Attempt] = []

    def take(found: Sequence[Attempt]) -> None:
        for attempt in found:
            attempts.append(attempt)
            tell(attempt)

    with ThreadPoolExecutor(jobs or cores()) as pool:
        try:
            plain = _Bench(source, claims, interrupt)
            checked = [claim for claim in claims.claims if claim.measure is not None]
            whole = _Whole(dict(zip(names, pool.map(plain.timed, checked), strict=True)))
            take(
                [_unbroken(claim, whole.verdict(claim)) for claim in checked if not whole.as_expected(claim)]
            )
            groups: dict[tuple[str, str], list[Claim]] = {}
            for claim in checked:
                if claim.breaks and whole.as_expected(claim) and (not wanted or claim.id in wanted):
                    groups.setdefault(claim.breaks, []).append(claim)
            holding = [claim for claim in checked if claim.expected and whole.verdict(claim).holds]
            futures = [
                pool.submit(_attempt, _Bench(source, claims, interrupt, change), group, holding, whole)
                for change, group in groups.items()
            ]
            for future in as_completed(futures):
                take(future.result())
        except BaseException:
            interrupt.set()
            pool.shutdown(cancel_futures=True)
            raise
    return attempts


class _Whole(msgspec.Struct, frozen=True):
    """The verdicts on all claims with the testbed unchanged, each with its seconds, by claim id."""

    found: dict[str, tuple[Verdict, float]]

    def verdict(self, claim: Claim) -> Verdict:
        return self.found[claim.id][0]

    def seconds(self, claim: Claim) -> float:
        return self.found[claim.id][1]

    def as_expected(self, claim: Claim) -> bool:
        return self.verdict(claim).holds is claim.expected


def _unbroken(claim: Claim, found: Verdict) -> Attempt:
    """The report on a claim whose verdict with the testbed unchanged is not the expected one."""
    problem = "it does not hold without its change, with one repeat"
    if not claim.expected:
        problem = "it holds: remove `expected = false` and `reason`, and add `breaks`"
    return Attempt(claim, found.obtained, 0, 0, problem)


def _attempt(bench: _Bench, group: Sequence[Claim], holding: Sequence[Claim], whole: _Whole) -> list[Attempt]:
    """Apply one change; judge the claims that name it, and others until it is clear whether half hold."""
    verdicts: dict[str, Verdict] = {}

    def judge(claim: Claim) -> Verdict:
        if claim.id not in verdicts:
            verdicts[claim.id] = bench.judge(claim) if bench.affects(claim) else whole.verdict(claim)
        return verdicts[claim.id]

    attempts = []
    for claim in group:
        if problem := bench.forbids(claim):
            attempts.append(Attempt(claim, "", 0, 0, problem))
            continue
        found = judge(claim)
        others = [other for other in holding if other is not claim]
        others.sort(key=lambda other: whole.seconds(other) if bench.affects(other) else 0.0)
        held = 0
        for number, other in enumerate(others):
            left = len(others) - number
            if 2 * held >= len(others) or 2 * (held + left) < len(others):
                break
            held += judge(other).holds
        if not found.judged:
            problem = f"with this change the claim {found.obtained}"
        elif found.holds:
            problem = "the claim holds even with this change"
        elif 2 * held < len(others):
            problem = f"fewer than half of the {len(others)} other claims still hold"
        attempts.append(Attempt(claim, found.obtained, held, len(others), problem))
    return attempts
