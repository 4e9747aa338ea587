"""From outcomes to verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engpass.claims.checks import Verdict
from engpass.claims.curves import Campaign, Curve, NoDataError
from engpass.claims.file import Claim


@dataclass(frozen=True)
class Judged:
    """A claim and what became of it."""

    claim: Claim
    verdict: Verdict

    def to_json(self) -> dict[str, str | bool]:
        """The claim as `engpass reproduce --json` prints it and the report shows it."""
        return {
            "id": self.claim.id,
            "statement": self.claim.statement,
            "source": self.claim.source,
            "published": self.claim.published,
            "obtained": self.verdict.obtained,
            "tolerance": self.claim.tolerance,
            "holds": self.verdict.holds,
            "kind": self.claim.kind,
        }


def judge(claims: Iterable[Claim], campaigns: Mapping[str, Campaign]) -> list[Judged]:
    """Check every claim on the outcomes of its campaign. One without data does not hold, and says so."""
    return [Judged(claim, _verdict(claim, campaigns[claim.campaign])) for claim in claims]


def _verdict(claim: Claim, campaign: Campaign) -> Verdict:
    def curves(variant: str, quantity: str) -> Curve:
        curve = campaign.curve(claim.engine, variant, claim.flow, quantity, dict(claim.where))
        # Who states bytes per second is answered in them.
        in_bytes = claim.accept is not None and claim.accept.unit == "B/s"
        return curve.in_bytes() if in_bytes else curve

    try:
        return claim.check.judge(curves, claim.accept)
    except NoDataError as error:
        return Verdict(f"cannot be checked: {error}", holds=False)
