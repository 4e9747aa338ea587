# ruff: noqa: D102 (the record says itself what its fields are)
"""What the report reads of a run: the fields of the store's record, and nothing of the store itself."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

Outcome: TypeAlias = Mapping[str, Any]
"""One point as the engines give it: variant, engine, repeat, seed, sweep, flows, links, drops."""

Claim: TypeAlias = Mapping[str, Any]
"""A published statement and what became of it.

Id, statement, source, published, obtained, tolerance, holds, kind.
"""


class File(Protocol):
    """A testbed file as something ran with it."""

    @property
    def source(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def overrides(self) -> Sequence[tuple[str, str]]: ...


class Run(File, Protocol):
    """A stored run. `engpass.store.RunRecord` fits; so does anything else with these fields."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def engines(self) -> Sequence[str]: ...
    @property
    def variants(self) -> Sequence[str]: ...
    @property
    def axes(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def repeats(self) -> int: ...
    @property
    def topology(self) -> Mapping[str, Any]: ...
    @property
    def environment(self) -> Mapping[str, Any]: ...
    @property
    def created(self) -> str: ...
    @property
    def points_total(self) -> int: ...
    @property
    def points_done(self) -> int: ...
    @property
    def status(self) -> str: ...
