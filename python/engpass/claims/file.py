"""The data of claims: their kinds, the claims of a study, and the campaigns that they need."""

from __future__ import annotations

from dataclasses import dataclass

from engpass.claims.checks import Check, Interval
from engpass.error import EngpassError

KINDS = {
    "measured": "the source states it as measured",
    "derived": "follows from the source's formulas or reasoning, or from a standard",
    "estimate": "values or bounds are approximate or fitted to the result: a claim that holds proves little",
    "prediction": "predicted by us before the run; there is no published value",
    "open": "the source does not determine it",
}
"""The kinds of claims in the order in which tables show them, each with its meaning."""

MAIN = "main"
"""Name of the default campaign of claims, which the report shows: the testbed file without overrides."""


class ClaimsError(EngpassError):
    """A claims file is invalid."""


@dataclass(frozen=True)
class CampaignSpec:
    """A campaign that claims need: the study's testbed, with overrides."""

    name: str
    set: tuple[tuple[str, str], ...] = ()
    engines: tuple[str, ...] | None = None
    variants: tuple[str, ...] | None = None
    repeats: int | None = None


@dataclass(frozen=True)
class Measure:
    """How a claim is checked: on which campaign, engine and flow, and with which check."""

    check: Check
    accept: Interval | None
    """Accepted values of a numeric check, `None` for a check that compares no number."""
    campaign: str
    engine: str
    flow: str
    link: str | None = None
    """Link whose first direction the check reads, instead of the flow."""
    where: tuple[tuple[str, str], ...] = ()
    """Swept paths with the values that the claim is about, if several paths are swept."""

    @property
    def tolerance(self) -> str:
        """The condition under which the claim holds, in words."""
        parts = [self.accept.text if self.accept else "", self.check.criterion()]
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class Claim:
    """One statement of a study."""

    id: str
    statement: str
    kind: str
    source: str | None = None
    """Standard, formula or figure; may be missing if `section` is given."""
    published: str | None = None
    """The stated value in the units of Engpass, if the source prints it."""
    section: str | None = None
    """Number or title of the section of the source that prints the value."""
    printed: str | None = None
    """The value as that section prints it."""
    value: str | None = None
    """The stated value if no source prints it: it follows from formulas, or is a prediction."""
    measure: Measure | None = None
    """`None` for an open claim."""
    expected: bool = True
    """`False` for a known difference: the claim is not expected to hold."""
    reason: str | None = None
    """Why a known difference does not hold."""
    decided_by: str | None = None
    """For an open claim: an observation that would decide it."""
    breaks: tuple[str, str] | None = None
    """A path of the testbed and a value for it under which this claim fails."""


@dataclass(frozen=True)
class ClaimsFile:
    """The claims of a study in the order of their kinds, and the campaigns they need: the main one last."""

    title: str
    reference: str
    campaigns: tuple[CampaignSpec, ...]
    claims: tuple[Claim, ...]
    text: str | None = None
    """Title that identifies the text of the study's source; `None` without a source text."""
    notes: tuple[str, ...] = ()
    """Sentences about the whole study: missing figures, parts that the testbed leaves out."""

    def campaign(self, name: str) -> CampaignSpec:
        """The campaign of a name that a claim uses."""
        return next(spec for spec in self.campaigns if spec.name == name)
