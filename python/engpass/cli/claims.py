"""The table of claims, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from engpass.claims import Judged
    from engpass.reproduce import Reproduction


# Below this width the kind stands under the verdict, and the statement gets its room.
_NARROW = 110


def table(made: Reproduction, judged: Sequence[Judged], width: int) -> Table:
    """What was published, what came out, and whether it holds, for a console of this width."""
    narrow = width < _NARROW
    shown = Table(
        title=Text(made.claims.title),
        title_justify="left",
        title_style="bold",
        caption=Text(made.claims.reference),
        caption_justify="left",
        box=box.HORIZONTALS,
        show_lines=True,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    # Fixed where there is little room: Rich would cut the verdict before it wraps a statement.
    room = width - 8 - 2 - 5
    shares = {"Statement": 0.38, "Published": 0.18, "Obtained": 0.23, "Tolerance": 0.21}
    for name, share in shares.items():
        fixed = max(6, int(room * share)) if narrow else None
        shown.add_column(name, width=fixed, max_width=48)
    shown.add_column("Holds", width=8 if narrow else 5)
    if not narrow:
        shown.add_column("Kind", width=8)
    for one in judged:
        holds = Text("yes", style="green") if one.verdict.holds else Text("NO", style="bold red")
        claim = one.claim
        texts = (claim.statement, claim.published, one.verdict.obtained, claim.tolerance)
        # Names come from files: no `[red]` in them is markup.
        last = [holds + Text(f"\n{claim.kind}", style="dim")] if narrow else [holds, Text(claim.kind)]
        shown.add_row(*(Text(text) for text in texts), *last)
    return shown
