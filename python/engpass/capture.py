"""Captures of one run: the points on links where packets are captured, and the files they go to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engpass import assignment
from engpass.error import EngpassError
from engpass.jsondata import Json

if TYPE_CHECKING:
    from engpass import _engpass
    from engpass.campaign import Plan, Point

ENGINE = "simulate"
"""The engine that captures in the core itself: `Captures.run`."""
EMULATED = "emulate"
"""The engine whose driver process captures, as configured by `Captures.to_config`."""


class Captures(msgspec.Struct):
    """The captures of a run: the files to write, and after the run the reports on them."""

    files: tuple[tuple[str, str], ...]
    """Pairs of a point on a link (`link.NAME`, or `link.NAME.NODE` for one end) and the path of a file."""
    form: str | None = None
    limit: str | None = None
    captured: list[dict[str, Json]] = msgspec.field(default_factory=list)

    def run(self, campaign: _engpass.Campaign, point: Point, interrupt: _engpass.Interrupt) -> str:
        """Simulate a point with captures and return its outcome.

        Raises `EngpassError` if a file cannot be written.
        """
        try:
            outcome, captured = campaign.capture(
                point.variant,
                list(point.sweep),
                point.repeat,
                list(self.files),
                self.form,
                self.limit,
                interrupt,
            )
        except OSError as error:
            raise EngpassError(
                str(error), "the file is readable up to this point; `--capture-limit` limits its size"
            ) from None
        self.captured = json.loads(captured)
        return outcome

    def to_config(self) -> dict[str, list[list[str]] | str | None]:
        """The captures as a part of the configuration of the driver process."""
        files = [[point, path] for (point, _), path in zip(self.files, self.paths(), strict=True)]
        return {"files": files, "form": self.form, "limit": self.limit}

    def paths(self) -> list[str]:
        """Absolute paths of the files, because other processes have other working directories."""
        return [str(Path(path).absolute()) for _, path in self.files]

    def tell(self, captured: Sequence[Mapping[str, Json]]) -> None:
        """Keep a driver's reports on its captures, with the paths as the user wrote them."""
        given = {path: name for path, (_, name) in zip(self.paths(), self.files, strict=True)}
        self.captured = [{**file, "path": given.get(path := str(file["path"]), path)} for file in captured]


def parse(given: list[str], form: str | None, limit: str | None) -> Captures:
    """Parse texts `POINT=FILE`; a name with `=` is in quotes: `link."a=b"=FILE`. Raises `EngpassError`."""
    files: list[tuple[str, str]] = []
    for text in given:
        point, path = assignment.split(text) or (text, "")
        if not point or not path:
            raise EngpassError(
                f"`--capture {text}` has no file name",
                "write `--capture link.NAME=FILE`, with the name of a link",
            )
        if not Path(path).parent.is_dir():
            raise EngpassError(f"there is no directory for `{path}`", "create it first")
        files.append((point, path))
    return Captures(tuple(files), form, limit)


def check(captures: Captures, campaign: _engpass.Campaign, plan: Plan) -> None:
    """Raise `EngpassError` unless the plan has exactly one run that can capture, with all these links."""
    engines = [name for name in plan.engines if name in (ENGINE, EMULATED)]
    if not engines:
        raise EngpassError(
            f"{' and '.join(plan.engines)} cannot capture packets",
            f"use `--engine {ENGINE}` or `--engine {EMULATED}`",
        )
    cures = [] if len(engines) == 1 else [" or ".join(f"`--engine {engine}`" for engine in engines)]
    if len(plan.variants) > 1:
        cures.append(f"`--variant {plan.variants[0]}`")
    cures += [
        f"`--set {axis.path}={_quoted(axis.values[0].text)}`" for axis in plan.axes if len(axis.values) > 1
    ]
    if plan.repeats > 1:
        cures.append("`--repeats 1`")
    if cures:
        runs = len(engines) * len(plan.variants) * plan.sweep_points * plan.repeats
        raise EngpassError(
            f"a capture needs exactly one run, but there are {runs:,}", f"select one with {', '.join(cures)}"
        )
    point = next(point for point in plan if point.engine == engines[0])
    check_points(captures, campaign, point.variant, list(point.sweep))


def check_points(
    captures: Captures, campaign: _engpass.Campaign, variant: str, sweep: list[tuple[str, str]]
) -> None:
    """Raise `EngpassError` unless the testbed has these points on links and each supports the file format."""
    points = [name for name, _ in captures.files]
    try:
        campaign.check_captures(variant, sweep, points, captures.form, captures.limit)
    except ValueError as error:
        cause, _, cure = str(error).partition("\nhelp: ")
        if cause.startswith("the testbed has no ") and any("=" in path for _, path in captures.files):
            cure += "; put a name with `=` in quotes: `--capture 'link.\"a=b\"=FILE'`"
        raise EngpassError(cause, cure or None) from None


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text
