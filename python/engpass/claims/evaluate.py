"""Checks claims on outcomes and counts the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from engpass.claims.checks import Verdict
from engpass.claims.curves import Campaign, Curve
from engpass.claims.file import KINDS, Claim, Measure
from engpass.claims.missing import NoDataError

Status = Literal["holds", "fails", "known difference", "holds after all", "open"]
"""The result of a claim; `holds after all`: it holds although the file does not expect that."""


class Judged(msgspec.Struct, frozen=True):
    """A claim with the verdict on it."""

    claim: Claim
    verdict: Verdict | None
    """`None` for an open claim, which has no check."""

    @property
    def status(self) -> Status:
        """The result of the claim: its verdict compared with what the file expects."""
        if self.verdict is None:
            return "open"
        if self.claim.expected:
            return "holds" if self.verdict.holds else "fails"
        return "holds after all" if self.verdict.holds else "known difference"

    def to_json(self) -> dict[str, str | bool | dict[str, str] | None]:
        """The claim as JSON data, for `engpass reproduce --json` and for the report."""
        claim, measure = self.claim, self.claim.measure
        return {
            "id": claim.id,
            "kind": claim.kind,
            "statement": claim.statement,
            "source": claim.source,
            "published": claim.published,
            "section": claim.section,
            "printed": claim.printed,
            "value": claim.value,
            "obtained": self.verdict.obtained if self.verdict else None,
            "tolerance": measure.tolerance if measure else None,
            "holds": self.verdict.holds if self.verdict else None,
            "expected": claim.expected if self.verdict else None,
            "status": self.status,
            "reason": claim.reason,
            "decided_by": claim.decided_by,
            "breaks": dict([claim.breaks]) if claim.breaks else None,
        }


def judge(claims: Iterable[Claim], campaigns: Mapping[str, Campaign]) -> list[Judged]:
    """Check every claim on the outcomes of its campaign; a claim without data does not hold."""
    return [
        Judged(claim, verdict(measure, campaigns[measure.campaign]) if (measure := claim.measure) else None)
        for claim in claims
    ]


def verdict(measure: Measure, campaign: Campaign) -> Verdict:
    """Check one claim on the outcomes of its campaign; without data the verdict is not `judged`."""

    def curves(variant: str, quantity: str) -> Curve:
        where = dict(measure.where)
        curve = campaign.curve(
            measure.engine, variant, measure.flow, quantity, where, measure.link, measure.node
        )
        # The result of a claim in bytes per second is in bytes per second too.
        in_bytes = measure.accept is not None and measure.accept.unit == "B/s"
        return curve.in_bytes() if in_bytes else curve

    try:
        return measure.check.judge(curves, measure.accept)
    except NoDataError as error:
        return Verdict(f"cannot be checked: {error}", holds=False, judged=False)


def counted(judged: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """The number of claims for each kind that occurs: in total, and per status."""
    counts: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        of_kind = [one.status for one in judged if one.claim.kind == kind]
        if of_kind:
            counts[kind] = {"claims": len(of_kind)}
            for status in ("holds", "fails", "known difference", "holds after all", "open"):
                counts[kind][status.replace(" ", "_")] = of_kind.count(status)
    return counts


def summed(statuses: Sequence[str]) -> str:
    """The verdicts summed up in a sentence: `23 of 27 claims hold, 2 known differences, 2 open`."""
    unknown = statuses.count("open")
    if unknown == len(statuses):
        return f"{unknown} open"
    held = statuses.count("holds") + statuses.count("holds after all")
    said = f"{held} of {len(statuses)} claims hold"
    if known := statuses.count("known difference"):
        said += f", {known} known difference{'s' if known > 1 else ''}"
    if failed := statuses.count("fails"):
        said += f", {failed} fail{'' if failed > 1 else 's'}"
    if unknown:
        said += f", {unknown} open"
    return said
