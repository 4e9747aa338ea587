"""The claims of a study as tables, one for each kind."""

from collections.abc import Sequence

from engpass.claims import KINDS, summed
from engpass.claims.expectation import expectation, heading
from engpass.results.record import Claim
from engpass.show.markup import esc, prose, table
from engpass.units import plain

_RESULTS = {
    "holds": ("good", "✓ holds"),
    "fails": ("bad", "✗ does not hold"),
    "known difference": ("mark", "≠ known difference"),
    "holds after all": ("mark", "✓ holds after all"),
    "open": ("muted", "? open"),
}


def claims_section(claims: Sequence[Claim], notes: Sequence[str] = ()) -> str:
    """All claims by kind, with the verdict of each, and the notes of the study; empty without claims."""
    if not claims:
        return ""
    found = list(dict.fromkeys(str(claim.get("kind", "")) for claim in claims))
    kinds = [kind for kind in KINDS if kind in found] + [kind for kind in found if kind not in KINDS]
    tables = [_table(kind, [c for c in claims if str(c.get("kind", "")) == kind]) for kind in kinds]
    items = "".join(f"<li>{prose(note)}</li>" for note in notes)
    return (
        f"<p>{esc(summed([_status(claim) for claim in claims]))}.</p>"
        + "\n".join(tables)
        + (f"<ul>{items}</ul>" if items else "")
    )


def _table(kind: str, claims: Sequence[Claim]) -> str:
    said = summed([_status(claim) for claim in claims])
    meaning = f"{KINDS[kind]}; " if kind in KINDS else ""
    stated, expected = (any(claim.get(key) is not None for claim in claims) for key in ("published", "value"))
    return table(
        f'<span class="badge">{esc(kind)}</span> {esc(meaning)}{esc(said)}',
        ["Statement", heading(stated=stated, expected=expected), "Obtained", "Holds if", "Result"],
        [_row(claim) for claim in claims],
        kind="cards",
    )


def _row(claim: Claim) -> list[str]:
    status = _status(claim)
    section = f"section {claim['section']}" if claim.get("section") else ""
    below = [", ".join(str(text) for text in (section, claim.get("source")) if text)]
    if claim.get("reason"):
        below.append(f"why not: {claim['reason']}")
    if claim.get("decided_by"):
        below.append(f"decided by: {claim['decided_by']}")
    said = "".join(f'<br><span class="muted">{prose(text)}</span>' for text in below if text)
    published, value = (_text(claim.get(key)) for key in ("published", "value"))
    expected = _shown(expectation(str(claim.get("kind", "")), published, value) or None)
    if claim.get("printed"):
        expected += f'<br><span class="muted">“{esc(claim["printed"])}”</span>'
    style, words = _RESULTS[status]
    return [
        f'<div class="wide">{prose(claim.get("statement", ""))}{said}</div>',
        f"<div>{expected}</div>",
        _shown(_text(claim.get("obtained"))),
        esc(claim.get("tolerance") or ""),
        # Keep the sign and the word after it on one line.
        f'<span class="{style}">{words.replace(" ", "&nbsp;", 1)}</span>',
    ]


def _status(claim: Claim) -> str:
    """The status of a claim, derived from `holds` if the file has no status."""
    status = claim.get("status")
    if status in _RESULTS:
        return str(status)
    holds = claim.get("holds")
    return "open" if holds is None else "holds" if holds else "fails"


def _text(value: object) -> str | None:
    """A value of a claim as text; `None` if there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    return plain(float(value)) if isinstance(value, (int, float)) else str(value)


def _shown(text: str | None) -> str:
    return '<span class="muted">&ndash;</span>' if text is None else prose(text)
