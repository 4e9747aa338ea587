# ruff: noqa: D102 (the record says itself what its fields are)
"""The fields of a stored run that the report reads, so that it does not depend on the store."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from engpass.campaign import Axis
from engpass.jsondata import Json
from engpass.types.plan import Drawing

Claim: TypeAlias = Mapping[str, Json]
"""A statement and its verdict, with the keys of `Judged.to_json`; all but `statement` may be missing."""


class File(Protocol):
    """A testbed file, and the overrides with which it ran."""

    @property
    def source(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def overrides(self) -> Sequence[tuple[str, str]]: ...


class Named(File, Protocol):
    """A testbed file with its name, description and drawing."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def topology(self) -> Drawing: ...


class Run(Named, Protocol):
    """A stored run: `engpass.store.RunRecord`, or any object with these fields."""

    @property
    def id(self) -> str: ...
    @property
    def engines(self) -> Sequence[str]: ...
    @property
    def variants(self) -> Sequence[str]: ...
    @property
    def axes(self) -> Sequence[Axis]: ...
    @property
    def repeats(self) -> int: ...
    @property
    def environment(self) -> Mapping[str, Json]: ...
    @property
    def created(self) -> str: ...
    @property
    def points_total(self) -> int: ...
    @property
    def points_done(self) -> int: ...
    @property
    def status(self) -> str: ...
