"""The gallery: published studies as testbeds, with their statements as checked claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from engpass.error import ChoiceError, EngpassError, nearest

if TYPE_CHECKING:
    from engpass.claims import ClaimsFile

HOME = Path(__file__).with_name("studies")
"""Directory of the studies in the package; in a checkout, a link to its `gallery` directory."""

TESTBED, CLAIMS, PAGE = "testbed.toml", "claims.toml", "README.md"
"""Names of the three files of a study."""


class Study(msgspec.Struct, frozen=True):
    """A study: a directory with a testbed, its claims and a page about both."""

    name: str
    directory: Path

    @property
    def testbed(self) -> Path:
        """The testbed file."""
        return self.directory / TESTBED

    @property
    def shown(self) -> str:
        """Name of the testbed file in records and messages, the same wherever the package is installed."""
        ours = self.directory.parent == HOME.resolve()
        return f"{self.name}/{TESTBED}" if ours else str(self.testbed)

    @property
    def page(self) -> Path:
        """The study's page: published results, the results of Engpass, and estimates."""
        return self.directory / PAGE

    def claims(self) -> ClaimsFile:
        """Read the claims of the study; raises `ClaimsError`."""
        from engpass.claims import read

        return read(self.directory / CLAIMS)


def studies() -> list[Study]:
    """All studies of the gallery, by name. Raises `EngpassError` if the package came without them."""
    if not HOME.is_dir():
        raise EngpassError(f"the gallery is missing: there is no directory `{HOME}`", "reinstall the package")
    home = HOME.resolve()
    found = [path for path in home.iterdir() if (path / CLAIMS).is_file()]
    return [Study(path.name, path) for path in sorted(found)]


def study(name: str) -> Study:
    """The study of this name, or in this directory with a testbed and claims; raises `ChoiceError`."""
    known = studies()
    for found in known:
        if found.name == name:
            return found
    path = Path(name)
    try:
        there = path.is_dir()
    except (OSError, ValueError):
        there = False
    if there:
        for needed in (TESTBED, CLAIMS):
            if not (path / needed).is_file():
                raise ChoiceError(
                    f"`{name}` is not a study: it has no `{needed}`", f"create `{path / needed}`"
                )
        return Study(path.resolve().name, path)
    raise ChoiceError(f"unknown study `{name}`", nearest(name, [found.name for found in known]))
