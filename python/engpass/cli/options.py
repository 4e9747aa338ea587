"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from engpass.campaign import MAX_POINTS, MODEL
from engpass.cli import console
from engpass.environment import DEFAULT_STORE
from engpass.error import EngpassError

if TYPE_CHECKING:
    from engpass.testbed import Testbed

File = Annotated[str, typer.Argument(metavar="FILE", help="Testbed file; `-` is standard input.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help='Override a value, as in traffic.stream.message="9 kB".'
    ),
]
Variants = Annotated[
    list[str] | None, typer.Option("--variant", metavar="NAME", help="Only this variant; may be given again.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines on standard output.")]
Yes = Annotated[bool, typer.Option("--yes", help=f"Agree to more than {MAX_POINTS:,} points.")]
StoreAt = Annotated[
    str,
    typer.Option("--store", metavar="PATH|URL", help="Where runs are kept: a file, or a postgresql:// URL."),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, its beginning, or `last`.")]


STORE = DEFAULT_STORE
"""Default of `StoreAt`."""


def overrides(given: list[str] | None) -> list[tuple[str, str]]:
    """Pairs of path and value from `--set`; raises `EngpassError`."""
    pairs = []
    for text in given or []:
        path, equals, value = text.partition("=")
        path, value = path.strip(), value.strip()
        if not equals or not path:
            raise EngpassError(f"`--set {_shown(text)}` has no value", "write `--set PATH=VALUE`")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise EngpassError(f"`--set {_shown(text)}` is not UTF-8", "write it in UTF-8") from None
        pairs.append((path, value))
    return pairs


def tell_left_out(testbed: Testbed, engines: Iterable[str], variants: Iterable[str]) -> None:
    """Say which keys the engines leave out."""
    told: dict[str, None] = {}
    named = " and ".join(name for name in engines if name in MODEL)
    for variant in variants:
        if named:
            told |= {f"{named}: {text}": None for text in testbed.campaign.left_out(variant)}
        live = " and ".join(name for name in engines if name not in MODEL)
        if live:
            from engpass.measure import left_out

            told |= {f"{live}: {text}": None for text in left_out(testbed.campaign, variant)}
    for text in told:
        console.tell(f"note: {text}")


def _shown(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def max_points(yes: bool) -> int | None:
    """Points that are run without a further question."""
    return None if yes else MAX_POINTS
