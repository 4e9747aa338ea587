"""Arguments and options that several commands share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from engpass import assignment
from engpass.campaign import MAX_POINTS, MODEL
from engpass.cli import console
from engpass.environment import DEFAULT_STORE
from engpass.error import EngpassError

if TYPE_CHECKING:
    from engpass.capture import Captures
    from engpass.testbed import Testbed

File = Annotated[str, typer.Argument(metavar="FILE", help="Testbed file; `-` is standard input.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help='Override a value, as in traffic.stream.message="9 kB".'
    ),
]
Variants = Annotated[
    list[str] | None, typer.Option("--variant", metavar="NAME", help="Only this variant; can be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines on standard output.")]
Yes = Annotated[
    bool,
    typer.Option("--yes", help=f"Allow more than {MAX_POINTS:,} points, and more than 1 GiB of memory."),
]
Memory = Annotated[bool, typer.Option("--yes", help="Allow more than 1 GiB of memory.")]
StoreAt = Annotated[
    str,
    typer.Option("--store", metavar="PATH|URL", help="Store of runs: a file or a postgresql:// URL."),
]
Capture = Annotated[
    list[str] | None,
    typer.Option(
        "--capture",
        metavar="POINT=FILE",
        help="Write packets on link.NAME (or sent by a node, link.NAME.NODE) as pcapng; can be repeated.",
    ),
]
CaptureAs = Annotated[
    str | None,
    typer.Option(
        "--capture-as",
        metavar="FORM",
        help="frames, ip, pdus, cells or raw-cells (default: the link's own units).",
    ),
]
CaptureLimit = Annotated[
    str | None,
    typer.Option(
        "--capture-limit",
        metavar="LIMIT",
        help="Limit of a capture, as in '1000 packets', '20 MB' or '2 s' (default: 256 MiB).",
    ),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run (or its first characters), or `last`.")]


STORE = DEFAULT_STORE
"""Default value of the option `StoreAt`."""


def captures(given: list[str] | None, form: str | None, limit: str | None) -> Captures | None:
    """Parse `--capture`, `--capture-as` and `--capture-limit`; raises `EngpassError`."""
    from engpass import capture

    if given:
        return capture.parse(given, form, limit)
    if form or limit:
        raise EngpassError("`--capture` is missing", "add `--capture link.NAME=FILE`")
    return None


def named(captures: Captures | None) -> list[tuple[str, str]]:
    """Descriptions and paths of the capture files, as `files.apart` takes them."""
    return [] if captures is None else [(f"the capture of `{point}`", path) for point, path in captures.files]


def overrides(given: list[str] | None) -> list[tuple[str, str]]:
    """Parse `--set` options into pairs of path and value; raises `EngpassError`."""
    pairs = []
    for text in given or []:
        path, value = (part.strip() for part in assignment.split(text) or ("", ""))
        if not path:
            raise EngpassError(f"`--set {_shown(text)}` has no value", "write `--set PATH=VALUE`")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise EngpassError(f"`--set {_shown(text)}` is not UTF-8", "write it in UTF-8") from None
        pairs.append((path, value))
    return pairs


def tell_left_out(
    testbed: Testbed,
    engines: Iterable[str],
    variants: Iterable[str],
    sweep: Sequence[tuple[str, str]] = (),
) -> None:
    """Print which keys the engines ignore in each variant, at the file's values or at a point of the sweep.

    Invalid variants are skipped, since their errors are reported when they run.
    """
    from engpass._engpass import InvalidTestbed

    told: dict[str, dict[str, None]] = {}
    engines = tuple(engines)
    if not set(engines) <= set(MODEL):
        console.tell_unmade(testbed)
    for variant in variants:
        for engine in engines:
            with contextlib.suppress(InvalidTestbed):
                if engine in MODEL:
                    found = testbed.campaign.left_out(variant, sweep)
                else:
                    found = testbed.campaign.unset_keys(variant, sweep, engine)
                for text in found:
                    told.setdefault(text, {})[engine] = None
    for text, leaving in told.items():
        console.tell(f"note: {' and '.join(leaving)}: {text}")


def _shown(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def max_points(yes: bool) -> int | None:
    """Maximum number of points that a run may have; `None` with `--yes`."""
    return None if yes else MAX_POINTS
