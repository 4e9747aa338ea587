"""The content of a claims file: kinds of claims, the claims of a study, and the campaigns they need."""

from __future__ import annotations

import msgspec

from engpass.claims.checks import Check, Interval
from engpass.error import EngpassError

KINDS = {
    "measured": "the source states it as measured",
    "derived": "follows from the source's formulas or reasoning, or from a standard",
    "estimate": "values or bounds are approximate or fitted to the result: a claim that holds proves little",
    "prediction": "predicted by us before the run; there is no published value",
    "open": "the source does not determine it",
}
"""The kinds of claims, in the order in which tables show them, with the meaning of each."""

MAIN = "main"
"""Name of the campaign that claims use by default and the report shows: the testbed without overrides."""


class ClaimsError(EngpassError):
    """A claims file has an error."""


class CampaignSpec(msgspec.Struct, frozen=True):
    """A campaign that claims need: the study's testbed with some overrides."""

    name: str
    set: tuple[tuple[str, str], ...] = ()
    engines: tuple[str, ...] | None = None
    variants: tuple[str, ...] | None = None
    repeats: int | None = None


class Measure(msgspec.Struct, frozen=True):
    """How a claim is checked: the campaign, engine and flow, and the check with its arguments."""

    check: Check
    accept: Interval | None
    """The values that the claim accepts; `None` if its check compares no number."""
    campaign: str
    engine: str
    flow: str
    link: str | None = None
    """The link whose first direction is checked, instead of the flow."""
    node: str | None = None
    """Node whose engine the check reads instead of the flow: `HOST`, `ROUTER` or `ROUTER.CARD`."""
    where: tuple[tuple[str, str], ...] = ()
    """If several paths are swept: the values of all but one, for which the claim is made."""

    @property
    def tolerance(self) -> str:
        """The condition under which the claim holds, as text."""
        parts = [self.accept.text if self.accept else "", self.check.criterion()]
        return "; ".join(part for part in parts if part)


class Claim(msgspec.Struct, frozen=True):
    """One statement of a study."""

    id: str
    statement: str
    kind: str
    source: str | None = None
    """The standard, formula or figure; may be missing if `section` is given."""
    published: str | None = None
    """The value that the source prints, in the units of Engpass."""
    section: str | None = None
    """Number or title of the section of the source that prints the value."""
    printed: str | None = None
    """The value exactly as that section prints it."""
    value: str | None = None
    """The value if no source prints it: derived from formulas, or predicted."""
    measure: Measure | None = None
    """How the claim is checked; `None` for an open claim."""
    expected: bool = True
    """False for a known difference: a claim that Engpass is not expected to fulfil."""
    reason: str | None = None
    """The reason for a known difference."""
    decided_by: str | None = None
    """For an open claim: the observation that would decide it."""
    breaks: tuple[str, str] | None = None
    """A path of the testbed, and a value for it with which this claim must fail."""


class ClaimsFile(msgspec.Struct, frozen=True):
    """The claims of a study, ordered by kind, and the campaigns they need, of which the main one is last."""

    title: str
    reference: str
    campaigns: tuple[CampaignSpec, ...]
    claims: tuple[Claim, ...]
    text: str | None = None
    """Title by which the text of the study's source is found; `None` without a text."""
    notes: tuple[str, ...] = ()
    """Sentences about the whole study, such as missing figures, and parts that the testbed leaves out."""

    def campaign(self, name: str) -> CampaignSpec:
        """The campaign of this name."""
        return next(spec for spec in self.campaigns if spec.name == name)
