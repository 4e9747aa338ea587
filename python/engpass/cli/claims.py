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


def table(made: Reproduction, judged: Sequence[Judged]) -> Table:
    """What was published, what came out, and whether it holds."""
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
    shown.add_column("Statement", ratio=5, overflow="fold", min_width=20)
    shown.add_column("Published", ratio=3, overflow="fold", min_width=10)
    shown.add_column("Obtained", ratio=4, overflow="fold", min_width=12)
    shown.add_column("Tolerance", ratio=4, overflow="fold", min_width=12)
    shown.add_column("Holds", no_wrap=True)
    shown.add_column("Kind", no_wrap=True)
    for one in judged:
        holds = Text("yes", style="green") if one.verdict.holds else Text("NO", style="bold red")
        claim = one.claim
        texts = (claim.statement, claim.published, one.verdict.obtained, claim.tolerance)
        # Names come from files: no `[red]` in them is markup.
        shown.add_row(*(Text(text) for text in texts), holds, Text(claim.kind))
    return shown
