"""Reading `claims.toml`: what a study states and how it is checked. Nothing in it is executed."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from engpass.claims.checks import CHECKS, Check, Interval
from engpass.claims.quantity import Quantity
from engpass.error import EngpassError, nearest
from engpass.source import MAX_BYTES

KINDS = ("measured", "derived", "estimate")
"""Measured and published; following from standards or formulas; our prediction where nothing is published."""

MAIN = "main"
"""Campaign that a claim reads if it names no other, and that the report shows: the file as it is."""


class ClaimsError(EngpassError):
    """A claims file that is not in order."""


@dataclass(frozen=True)
class CampaignSpec:
    """A campaign that claims need: the study's testbed, with values set over it."""

    name: str
    set: tuple[tuple[str, str], ...] = ()
    engines: tuple[str, ...] | None = None
    variants: tuple[str, ...] | None = None
    repeats: int | None = None


@dataclass(frozen=True)
class Claim:
    """One statement, and its check."""

    id: str
    statement: str
    source: str
    published: str
    kind: str
    campaign: str
    engine: str
    flow: str
    check: Check
    accept: Interval | None
    where: tuple[tuple[str, str], ...] = ()
    """Swept paths and the values at which the claim looks, where several paths are swept."""

    @property
    def tolerance(self) -> str:
        """What counts as holding."""
        parts = [self.accept.text if self.accept else "", self.check.criterion()]
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class ClaimsFile:
    """The claims of a study, and the campaigns they need: the main one comes last."""

    title: str
    reference: str
    campaigns: tuple[CampaignSpec, ...]
    claims: tuple[Claim, ...]


def read(path: Path) -> ClaimsFile:
    """Read a claims file; raises `ClaimsError` with cause and cure."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ClaimsError(f"`{path}` cannot be read: {error.strerror}", "check the path") from None
    if len(data) > MAX_BYTES:
        raise ClaimsError(f"`{path}` is too large for a claims file", "check the path")
    try:
        tables = tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise ClaimsError(f"`{path}` is not UTF-8", "write it in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClaimsError(f"`{path}` is not TOML: {error}", "correct it there") from None
    return _Reader(str(path)).file(tables)


class _Reader:
    """Turns tables into claims; its messages name the file and the claim."""

    def __init__(self, where: str) -> None:
        self._where = where

    def fail(self, at: str, cause: str, cure: str) -> ClaimsError:
        return ClaimsError(f"{self._where}: {at}: {cause}", cure)

    def file(self, tables: Mapping[str, Any]) -> ClaimsFile:
        top = "top level"
        self._known(
            top, tables, {"title": str, "reference": str, "flow": str, "campaign": dict, "claim": list}
        )
        title, reference = self._text(top, tables, "title"), self._text(top, tables, "reference")
        flow = str(tables.get("flow", "stream"))
        campaigns = [self._campaign(name, table) for name, table in tables.get("campaign", {}).items()]
        names = {campaign.name for campaign in campaigns}
        if MAIN not in names:
            campaigns.append(CampaignSpec(MAIN))
        # The run that the report shows is the one that was used last.
        campaigns.sort(key=lambda campaign: campaign.name == MAIN)
        claims = [self._claim(i, table, flow) for i, table in enumerate(tables.get("claim", []), 1)]
        if not claims:
            raise self.fail(top, "there are no claims", "write at least one `[[claim]]`")
        seen: set[str] = set()
        for claim in claims:
            if claim.id in seen:
                raise self.fail(f"claim `{claim.id}`", "two claims have this id", "rename one of them")
            seen.add(claim.id)
            if claim.campaign not in names | {MAIN}:
                cure = nearest(claim.campaign, [*names, MAIN])
                raise self.fail(f"claim `{claim.id}`", f"there is no campaign `{claim.campaign}`", cure)
        return ClaimsFile(title, reference, tuple(campaigns), tuple(claims))

    def _campaign(self, name: str, table: Any) -> CampaignSpec:  # noqa: ANN401 (whatever TOML has there)
        at = f"campaign `{name}`"
        if not isinstance(table, dict):
            raise self.fail(at, "it is no table", f"write `[campaign.{name}]`")
        known = {"set": dict, "engines": list, "variants": list, "repeats": int}
        self._known(at, table, known)
        return CampaignSpec(
            name,
            self._pairs(at, table, "set"),
            self._names(at, table, "engines"),
            self._names(at, table, "variants"),
            table.get("repeats"),
        )

    def _pairs(self, at: str, table: Mapping[str, Any], key: str) -> tuple[tuple[str, str], ...]:
        """Paths and their values as texts."""
        pairs = table.get(key, {})
        for path, value in pairs.items():
            if not isinstance(value, str):
                raise self.fail(
                    at, f"the value of `{path}` is no text", "write values as in `--set`, in quotes"
                )
        return tuple(pairs.items())

    def _names(self, at: str, table: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
        names = table.get(key)
        if names is None:
            return None
        if not names or not all(isinstance(name, str) for name in names):
            raise self.fail(at, f"`{key}` is no list of names", f'write `{key} = ["NAME"]`')
        return tuple(names)

    def _claim(self, number: int, table: Any, flow: str) -> Claim:  # noqa: ANN401 (whatever TOML has there)
        at = f"claim {number}"
        if not isinstance(table, dict):
            raise self.fail(at, "it is no table", "write `[[claim]]`")
        if isinstance(table.get("id"), str):
            at = f"claim `{table['id']}`"
        texts = ("id", "statement", "source", "published", "kind", "check")
        optional: dict[str, type] = {
            "tolerance": str,
            "accept": list,
            "campaign": str,
            "engine": str,
            "flow": str,
            "where": dict,
            "with": dict,
        }
        self._known(at, table, {**dict.fromkeys(texts, str), **optional})
        values = {key: self._text(at, table, key) for key in texts}
        if values["kind"] not in KINDS:
            raise self.fail(at, f"there is no kind `{values['kind']}`", nearest(values["kind"], KINDS))
        check = self._check(at, values["check"], table.get("with", {}))
        return Claim(
            id=values["id"],
            statement=values["statement"],
            source=values["source"],
            published=values["published"],
            kind=values["kind"],
            campaign=table.get("campaign", MAIN),
            engine=table.get("engine", "simulate"),
            flow=table.get("flow", flow),
            check=check,
            accept=self._accept(at, check, values["published"], table),
            where=self._pairs(at, table, "where"),
        )

    def _check(self, at: str, name: str, arguments: Mapping[str, Any]) -> Check:
        if name not in CHECKS:
            raise self.fail(at, f"there is no check `{name}`", nearest(name, CHECKS))
        kind = CHECKS[name]
        hints = get_type_hints(kind)
        fields = {field.name.rstrip("_"): field for field in dataclasses.fields(kind)}
        given: dict[str, Any] = {}
        for key, value in arguments.items():
            if key not in fields:
                raise self.fail(at, f"the check `{name}` has no argument `{key}`", nearest(key, fields))
            if not isinstance(value, str):
                raise self.fail(at, f"the argument `{key}` is no text", "write it in quotes")
            field = fields[key]
            wants_text = hints[field.name] is str
            given[field.name] = value if wants_text else self._quantity(at, value)
        for key, field in fields.items():
            if field.name not in given and field.default is dataclasses.MISSING:
                raise self.fail(at, f"the check `{name}` needs the argument `{key}`", "give it in `with`")
        return kind(**given)

    def _accept(self, at: str, check: Check, published: str, table: Mapping[str, Any]) -> Interval | None:
        tolerance, accept = table.get("tolerance"), table.get("accept")
        if not check.numeric:
            if tolerance is not None or accept is not None:
                raise self.fail(at, "this check compares no number", "leave `tolerance` and `accept` out")
            return None
        if (tolerance is None) == (accept is None):
            cause = "it needs what is accepted, once"
            raise self.fail(
                at, cause, 'give `tolerance = "2 %"`, or `accept = ["20.5 Mbit/s", "22.1 Mbit/s"]`'
            )
        if accept is not None:
            if len(accept) != 2 or not all(isinstance(bound, str) for bound in accept):
                raise self.fail(at, "`accept` is no pair of quantities", 'write `["20 Mbit/s", "22 Mbit/s"]`')
            low, high = (self._quantity(at, bound) for bound in accept)
            if low.unit != high.unit or low.value > high.value:
                raise self.fail(at, f"`{low}` to `{high}` is no interval", "give the lower one first")
            decimals = max(2, low.decimals, high.decimals)
            return Interval(low.value, high.value, low.unit, f"{low} to {high}", decimals)
        middle, spread = self._quantity(at, published), self._quantity(at, str(tolerance))
        if spread.unit == middle.unit:
            # Of a share, per cent are points of it.
            half = spread.value
        elif spread.unit == "":
            half = abs(middle.value) * spread.value
        else:
            raise self.fail(at, f"`{tolerance}` is no tolerance of `{published}`", "give it in the same unit")
        bounds = (middle.value - half, middle.value + half)
        return Interval(*bounds, middle.unit, f"±{tolerance}", max(2, middle.decimals))

    def _quantity(self, at: str, text: str) -> Quantity:
        try:
            return Quantity.parse(text)
        except ValueError as error:
            raise self.fail(at, str(error), "correct it there") from None

    def _text(self, at: str, table: Mapping[str, Any], key: str) -> str:
        if key not in table:
            raise self.fail(at, f"it has no `{key}`", f'give `{key} = "…"`')
        text: str = table[key]
        if not text.strip():
            raise self.fail(at, f"`{key}` is empty", "say something")
        return text

    def _known(self, at: str, table: Mapping[str, Any], known: Mapping[str, type]) -> None:
        for key, value in table.items():
            if key not in known:
                raise self.fail(at, f"unknown key `{key}`", nearest(key, known))
            if not isinstance(value, known[key]) or isinstance(value, bool):
                names = {str: "text", list: "a list", dict: "a table", int: "a whole number"}
                raise self.fail(at, f"`{key}` is not {names[known[key]]}", "correct it there")
