"""The claims of a study and their verdicts, by kind of claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from engpass.claims import KINDS, summed
from engpass.claims.expectation import expectation, heading
from engpass.jsondata import Json
from engpass.show.blocks import Block, Cell, Column, Lines, Marked, Prose, Table, columns
from engpass.units import plain

if TYPE_CHECKING:
    from engpass.results.record import Claim

_RESULTS = {
    "holds": Marked("✓ holds", "good"),
    "fails": Marked("✗ does not hold", "bad"),
    "known difference": Marked("≠ known difference", "mark"),
    "holds after all": Marked("✓ holds after all", "mark"),
    "open": Marked("? open", "muted"),
}


def view(claims: Sequence[Claim], notes: Sequence[str] = ()) -> list[Block]:
    """All claims by kind, with the verdict of each, and the notes of the study; nothing without claims."""
    if not claims:
        return []
    found: dict[str, list[Claim]] = {kind: [] for kind in KINDS}
    for claim in claims:
        found.setdefault(str(claim.get("kind", "")), []).append(claim)
    return [
        Prose(f"{summed([_status(claim) for claim in claims])}."),
        *(_table(kind, of_kind) for kind, of_kind in found.items() if of_kind),
        *(Prose(text, Marked("note", "muted")) for text in notes),
    ]


def _table(kind: str, claims: Sequence[Claim]) -> Table:
    meaning = f"{KINDS[kind]}; " if kind in KINDS else ""
    stated, expected = (any(claim.get(key) is not None for claim in claims) for key in ("published", "value"))
    heads = ("Statement", heading(stated=stated, expected=expected), "Obtained", "Holds if", "Result")
    title = f"{kind}: {meaning}{summed([_status(claim) for claim in claims])}"
    return Table(title, columns(*heads, left=len(heads)), [_row(claim) for claim in claims], texts=True)


def _row(claim: Claim) -> list[Cell]:
    published, value = (_text(claim.get(key)) for key in ("published", "value"))
    printed = Marked(f"“{claim['printed']}”" if claim.get("printed") else "", "muted")
    return [
        Lines([str(claim.get("statement", "")), *_below(claim)]),
        Lines([expectation(str(claim.get("kind", "")), published, value), printed]),
        _text(claim.get("obtained")),
        _text(claim.get("tolerance")),
        _RESULTS[_status(claim)],
    ]


def _below(claim: Mapping[str, Json]) -> Iterator[Marked]:
    """Where the source says it, why it does not hold, or an observation that would decide it."""
    section = f"section {claim['section']}" if claim.get("section") else ""
    yield Marked(", ".join(str(text) for text in (section, claim.get("source")) if text), "muted")
    if claim.get("reason"):
        yield Marked(f"why not: {claim['reason']}", "muted" if _status(claim) == "holds" else "mark")
    if claim.get("decided_by"):
        yield Marked(f"decided by: {claim['decided_by']}", "muted")


def _status(claim: Mapping[str, Json]) -> str:
    """The status of a claim, derived from `holds` if the file has no status."""
    status = claim.get("status")
    if status in _RESULTS:
        return str(status)
    holds = claim.get("holds")
    return "open" if holds is None else "holds" if holds else "fails"


def _text(value: Json) -> str | None:
    """A value of a claim as text; `None` if there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(float(value)) if isinstance(value, (int, float)) else str(value)


def counts(counted: Mapping[str, Mapping[str, int]]) -> Table:
    """Numbers of claims by kind and status, with the totals."""
    keys = {"Claims": ("claims",), "Hold": ("holds", "holds_after_all"), "Fail": ("fails",)}
    keys |= {"Known differences": ("known_difference",), "Open": ("open",)}
    rows: list[list[Cell]] = [
        [kind, *(sum(found[key] for key in group) or "-" for group in keys.values())]
        for kind, found in counted.items()
    ]
    return Table("", [Column("Kind"), *(Column(title, right=True) for title in keys)], rows)
