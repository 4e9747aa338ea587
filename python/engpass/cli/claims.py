"""The claims of a study on a terminal: a table for each kind, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from engpass.claims import KINDS, counted
from engpass.claims.expectation import expectation, heading

if TYPE_CHECKING:
    from engpass.claims import Judged
    from engpass.reproduce import Reproduction

_RESULTS = {
    "holds": ("yes", "green"),
    "fails": ("NO", "bold red"),
    "known difference": ("no, known", "yellow"),
    "holds after all": ("yes, not expected", "bold yellow"),
    "open": ("open", "cyan"),
}
_RESULT = 10
# Shares of the width that remains.
_STATEMENT, _EXPECTATION, _OBTAINED, _HOLDS_IF = 0.35, 0.2, 0.25, 0.2


def view(made: Reproduction, judged: Sequence[Judged], width: int) -> Group:
    """All claims by kind, the counts, and the notes of the study, for a console of this width."""
    # `Text` keeps names such as `[red]` from being read as markup.
    parts: list[RenderableType] = [Text(made.claims.title, style="bold"), Text(made.claims.reference), Text()]
    for kind, meaning in KINDS.items():
        of_kind = [one for one in judged if one.claim.kind == kind]
        if of_kind:
            parts += [Text.assemble((kind, "bold"), f": {meaning}"), _table(of_kind, width), Text()]
    parts.append(_counts(judged))
    for note in made.claims.notes:
        parts.append(Padding(Text(f"note: {note}"), (1, 0, 0, 0)))
    return Group(*parts)


def _table(judged: Sequence[Judged], width: int) -> Table:
    """The claims of one kind."""
    shown = Table(box=box.HORIZONTALS, show_lines=True, padding=(0, 1, 0, 0), pad_edge=False)
    room = width - _RESULT - 6
    shares = {
        "Statement": _STATEMENT,
        heading(
            stated=any(one.claim.published for one in judged), expected=any(one.claim.value for one in judged)
        ): _EXPECTATION,
        "Obtained": _OBTAINED,
        "Holds if": _HOLDS_IF,
    }
    for name, share in shares.items():
        shown.add_column(name, width=max(6, int(room * share)))
    shown.add_column("Holds", width=_RESULT)
    for one in judged:
        result, style = _RESULTS[one.status]
        shown.add_row(
            Text("\n").join(_statement(one)),
            Text("\n").join(_expectation(one)),
            Text(one.verdict.obtained if one.verdict else ""),
            Text(one.claim.measure.tolerance if one.claim.measure else ""),
            Text(result, style=style),
        )
    return shown


def _statement(one: Judged) -> Iterator[Text]:
    """The statement, and below it why it does not hold, or an observation that would decide it."""
    yield Text(one.claim.statement)
    if one.claim.reason:
        yield Text(f"why not: {one.claim.reason}", style="yellow" if one.status != "holds" else "dim")
    if one.claim.decided_by:
        yield Text(f"decided by: {one.claim.decided_by}", style="cyan")


def _expectation(one: Judged) -> Iterator[Text]:
    """The stated or expected value, and below it the value as the source prints it."""
    if text := expectation(one.claim.kind, one.claim.published, one.claim.value):
        yield Text(text)
    if one.claim.printed:
        yield Text(f"{one.claim.section}: {one.claim.printed}", style="dim")


def _counts(judged: Sequence[Judged]) -> Table:
    """Numbers of claims by kind and status, with the totals."""
    shown = Table(box=box.HORIZONTALS, padding=(0, 2, 0, 0), pad_edge=False)
    shown.add_column("Kind")
    for name in ("Claims", "Hold", "Fail", "Known differences", "Open"):
        shown.add_column(name, justify="right")
    for kind, counts in counted(judged).items():
        held = counts["holds"] + counts["holds_after_all"]
        numbers = (counts["claims"], held, counts["fails"], counts["known_difference"], counts["open"])
        shown.add_row(kind, *(str(number) if number else "-" for number in numbers))
    return shown
