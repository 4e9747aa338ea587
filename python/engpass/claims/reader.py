"""Reads `claims.toml`; nothing in it is executed. Every error names the line, the cause and the cure."""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import get_type_hints

import msgspec

from engpass.claims.checks import CHECKS, Check, Interval
from engpass.claims.file import KINDS, MAIN, CampaignSpec, Claim, ClaimsError, ClaimsFile, Measure
from engpass.claims.quantity import Quantity
from engpass.error import nearest
from engpass.settings import split
from engpass.source import MAX_BYTES, Toml

_Table = Mapping[str, Toml]

_TOP = {
    "title": str,
    "reference": str,
    "text": str,
    "notes": list,
    "flow": str,
    "campaign": dict,
    "claim": list,
}
_TEXTS = ("id", "statement", "source", "kind", "check")
_CLAIM: dict[str, type] = {
    **dict.fromkeys((*_TEXTS, "published", "section", "printed", "value"), str),
    **dict.fromkeys(("tolerance", "least", "most", "campaign", "engine", "flow", "link", "node"), str),
    **dict.fromkeys(("reason", "decided_by"), str),
    **dict.fromkeys(("where", "with", "breaks"), dict),
    "expected": bool,
}
_CHECKED = (
    "value",
    "check",
    "with",
    "tolerance",
    "least",
    "most",
    "where",
    "link",
    "node",
    "expected",
    "reason",
)
_NAMES = {
    str: "text",
    list: "a list",
    dict: "a table",
    int: "a whole number",
    bool: "`true` or `false`",
}
# A printed value is a number with a unit, or one word; `_is_word` limits words without blanks between them.
_NUMBER = re.compile(r"\d[\d.,]*\s*\S{0,12}")
_WORD = re.compile(r"[^\W\d_][\w-]{0,23}")
_MOST_WITHOUT_BLANKS = 6


def read(path: Path) -> ClaimsFile:
    """Read a claims file; raises `ClaimsError` with file, line, cause and cure."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ClaimsError(f"`{path}` cannot be read: {error.strerror}", "check the path") from None
    if len(data) > MAX_BYTES:
        raise ClaimsError(f"`{path}` is too large for a claims file", "check the path")
    try:
        text = data.decode()
        tables: dict[str, Toml] = tomllib.loads(text)
    except UnicodeDecodeError:
        raise ClaimsError(f"`{path}` is not UTF-8", "write it in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ClaimsError(f"`{path}` is not TOML: {error}", "correct it there") from None
    return _Reader(str(path), text).file(tables)


class _Place(msgspec.Struct, frozen=True):
    """A table of the file, for errors: its name, its header line, and its index among equal headers."""

    name: str
    header: str = ""
    index: int = 0


class _Reader:
    """Turns the tables of a claims file into claims, and finds the line of an error."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()

    def fail(self, at: _Place, cause: str, cure: str, key: str | None = None) -> ClaimsError:
        return ClaimsError(f"{self._path}:{self._line(at, key)}: {at.name}: {cause}", cure)

    def _line(self, at: _Place, key: str | None) -> int:
        """Number of the line that sets a key of a table; else the line of the table's header, else 1."""
        headers = [n for n, line in enumerate(self._lines, 1) if at.header and line.strip() == at.header]
        start = headers[at.index] if at.index < len(headers) else 0
        for number, line in enumerate(self._lines[start:], start + 1):
            if line.lstrip().startswith("["):
                break
            if key is not None and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
                return number
        return max(start, 1)

    def file(self, tables: _Table) -> ClaimsFile:
        top = _Place("top level")
        self._known(top, tables, _TOP)
        title, reference = self._text(top, tables, "title"), self._text(top, tables, "reference")
        listed = _list(tables.get("notes"))
        notes = _texts(listed)
        if len(notes) < len(listed):
            raise self.fail(top, "`notes` is not a list of sentences", 'write `notes = ["…"]`', "notes")
        campaigns = [self._campaign(name, table) for name, table in _table(tables.get("campaign")).items()]
        names = {campaign.name for campaign in campaigns}
        if MAIN not in names:
            campaigns.append(CampaignSpec(MAIN))
        # The main campaign runs last, since the report shows the last run.
        campaigns.sort(key=lambda campaign: campaign.name == MAIN)
        listed = _list(tables.get("claim"))
        if not listed:
            raise self.fail(top, "there are no claims", "write at least one `[[claim]]`")
        claims: dict[str, Claim] = {}
        for index, table in enumerate(listed):
            at = _Place(f"claim {index + 1}", "[[claim]]", index)
            claim = self._claim(at, table, tables, {*names, MAIN})
            if claim.id in claims:
                raise self.fail(at, f"two claims have the id `{claim.id}`", "rename one of them", "id")
            claims[claim.id] = claim
        order = list(KINDS)
        in_order = sorted(claims.values(), key=lambda claim: order.index(claim.kind))
        return ClaimsFile(
            title, reference, tuple(campaigns), tuple(in_order), _text_at(tables, "text"), notes
        )

    def _campaign(self, name: str, table: Toml) -> CampaignSpec:
        at = _Place(f"campaign `{name}`", f"[campaign.{name}]")
        if not isinstance(table, dict):
            raise self.fail(at, "it is not a table", f"write `[campaign.{name}]`")
        self._known(at, table, {"set": dict, "engines": list, "variants": list, "repeats": int})
        repeats = table.get("repeats")
        return CampaignSpec(
            name,
            self._pairs(at, table, "set"),
            self._names(at, table, "engines"),
            self._names(at, table, "variants"),
            repeats if isinstance(repeats, int) else None,
        )

    def _pairs(self, at: _Place, table: _Table, key: str) -> tuple[tuple[str, str], ...]:
        """The pairs of path and value in a table; raises `ClaimsError` if a value is not text."""
        pairs: list[tuple[str, str]] = []
        for path, value in _table(table.get(key)).items():
            if not isinstance(value, str):
                cause = f"the value of `{path}` is not text"
                raise self.fail(at, cause, "write values as in `--set`, in quotes", key)
            pairs.append((path, value))
        return tuple(pairs)

    def _names(self, at: _Place, table: _Table, key: str) -> tuple[str, ...] | None:
        if key not in table:
            return None
        listed = _list(table[key])
        names = _texts(listed)
        if not names or len(names) < len(listed):
            raise self.fail(at, f"`{key}` is not a list of names", f'write `{key} = ["NAME"]`', key)
        return names

    def _claim(self, at: _Place, table: Toml, tables: _Table, campaigns: set[str]) -> Claim:
        if not isinstance(table, dict):
            raise self.fail(at, "it is not a table", "write `[[claim]]`")
        if isinstance(table.get("id"), str):
            at = msgspec.structs.replace(at, name=f"claim `{table['id']}`")
        self._known(at, table, _CLAIM)
        kind = self._text(at, table, "kind")
        if kind not in KINDS:
            raise self.fail(at, f"unknown kind `{kind}`", nearest(kind, KINDS), "kind")
        name = _text_or(table, "campaign", MAIN)
        if name not in campaigns:
            raise self.fail(at, f"unknown campaign `{name}`", nearest(name, sorted(campaigns)), "campaign")
        published, section, printed, value = self._stated(at, table, kind, tables.get("text") is not None)
        expected, reason, decided_by = self._outlook(at, table, kind)
        return Claim(
            id=self._text(at, table, "id"),
            statement=self._text(at, table, "statement"),
            source=_text_at(table, "source") if "section" in table else self._text(at, table, "source"),
            kind=kind,
            published=published,
            section=section,
            printed=printed,
            value=value,
            measure=None
            if kind == "open"
            else self._measure(at, table, published or value or "", _text_or(tables, "flow", "stream")),
            expected=expected,
            reason=reason,
            decided_by=decided_by,
            breaks=self._breaks(at, table, needed=kind != "open" and expected),
        )

    def _stated(
        self, at: _Place, table: _Table, kind: str, has_text: bool
    ) -> tuple[str | None, str | None, str | None, str | None]:
        """The keys `published`, `section`, `printed` and `value`; `value` only if no source prints it."""
        printed = "printed" in table or "section" in table or "published" in table
        if kind == "measured" and not printed:
            cure = "give the `section`, and copy the value exactly as printed there to `printed`"
            raise self.fail(at, "a measured claim needs the value that its source prints", cure)
        if kind == "prediction" and printed:
            cure = "use `value` for the predicted value, or use another kind"
            raise self.fail(at, "a prediction has no published value", cure, "published")
        if printed and "value" in table:
            cure = "keep `published` if the source prints the value, otherwise keep `value`"
            raise self.fail(at, "it has both `published` and `value`", cure, "value")
        if not printed:
            return None, None, None, None if kind == "open" else self._text(at, table, "value")
        for key in ("section", "printed") if kind == "open" else ("published", "section", "printed"):
            if key not in table:
                cure = f'give `{key} = "…"`; use `value` for a value that no source prints'
                raise self.fail(at, f"a printed value needs `{key}`", cure)
            self._text(at, table, key)
        if not has_text:
            cure = "give `text`, the title of the source as it appears in its text"
            raise self.fail(at, "the file does not name the source text", cure, "printed")
        text = self._text(at, table, "printed")
        if not _NUMBER.fullmatch(text) and not _is_word(text):
            cure = "copy a number with its unit, or one word for a shape"
            raise self.fail(at, f"`printed` is `{text}`, neither a number nor one word", cure, "printed")
        return _text_at(table, "published"), _text_at(table, "section"), text, None

    def _outlook(self, at: _Place, table: _Table, kind: str) -> tuple[bool, str | None, str | None]:
        """Whether the claim is expected to hold, why not, and for an open one what would decide it."""
        if kind == "open":
            for key in _CHECKED:
                if key in table:
                    raise self.fail(at, f"an open claim has no `{key}`", "remove it", key)
            return True, None, self._text(at, table, "decided_by")
        if "decided_by" in table:
            cure = 'remove it, or set `kind = "open"`'
            raise self.fail(
                at,
                f"`decided_by` is for open claims: a claim of kind `{kind}` is decided by its check",
                cure,
                "decided_by",
            )
        expected = table.get("expected") is not False
        if expected and "reason" in table:
            cure = "remove it, or add `expected = false`"
            raise self.fail(
                at,
                "`reason` says why a claim is expected to fail, and needs `expected = false`",
                cure,
                "reason",
            )
        return expected, None if expected else self._text(at, table, "reason"), None

    def _breaks(self, at: _Place, table: _Table, *, needed: bool) -> tuple[str, str] | None:
        if not needed:
            if "breaks" in table:
                cause = "`breaks` needs a claim that is expected to hold"
                raise self.fail(at, cause, "remove `breaks`", "breaks")
            return None
        pairs = self._pairs(at, table, "breaks")
        if len(pairs) != 1:
            cause = (
                "it needs `breaks`, one change with which it no longer holds"
                if not pairs
                else "`breaks` has more than one key"
            )
            raise self.fail(at, cause, 'write `breaks = { "KEY" = "VALUE" }` with one key', "breaks")
        try:
            split(pairs[0][0])
        except ValueError as error:
            raise self.fail(at, str(error), "write a dotted key, as for `--set`", "breaks") from None
        return pairs[0]

    def _measure(self, at: _Place, table: _Table, stated: str, flow: str) -> Measure:
        check = self._check(at, self._text(at, table, "check"), _table(table.get("with")))
        if "link" in table and "node" in table:
            cause = "it has both `link` and `node`, but a check reads one of them"
            raise self.fail(at, cause, "remove one of them", "node")
        return Measure(
            check=check,
            accept=self._accept(at, check, stated, table),
            campaign=_text_or(table, "campaign", MAIN),
            engine=_text_or(table, "engine", "simulate"),
            flow=_text_or(table, "flow", flow),
            link=_text_at(table, "link"),
            node=_text_at(table, "node"),
            where=self._pairs(at, table, "where"),
        )

    def _check(self, at: _Place, name: str, arguments: _Table) -> Check:
        if name not in CHECKS:
            raise self.fail(at, f"unknown check `{name}`", nearest(name, CHECKS), "check")
        kind = CHECKS[name]
        make: Callable[..., Check] = kind
        hints = get_type_hints(kind)
        fields = {field.name.rstrip("_"): field for field in dataclasses.fields(kind)}
        given: dict[str, str | Quantity] = {}
        for key, value in arguments.items():
            if key not in fields:
                cause = f"the check `{name}` has no argument `{key}`"
                raise self.fail(at, cause, nearest(key, fields), "with")
            if not isinstance(value, str):
                raise self.fail(at, f"the value of `{key}` is not text", "write it in quotes", "with")
            field = fields[key]
            wants_text = hints[field.name] is str
            given[field.name] = value if wants_text else self._quantity(at, value, "with")
        for key, field in fields.items():
            if field.name not in given and field.default is dataclasses.MISSING:
                cause = f"the check `{name}` needs the argument `{key}`"
                raise self.fail(at, cause, "add it to `with`", "with")
        try:
            return make(**given)
        except ValueError as error:
            raise self.fail(at, str(error), "correct it there", "with") from None

    def _accept(self, at: _Place, check: Check, stated: str, table: _Table) -> Interval | None:
        limits = [key for key in ("tolerance", "least", "most") if key in table]
        if not check.numeric:
            if limits:
                cure = "remove `tolerance`, `least` and `most`"
                raise self.fail(at, "this check compares no numbers", cure, limits[0])
            return None
        if not limits or (len(limits) > 1 and "tolerance" in limits):
            cure = 'give `tolerance = "2 %"`, or `least` and `most`, or one of these two'
            raise self.fail(
                at, "it needs one description of the accepted values", cure, limits[0] if limits else None
            )
        if "tolerance" in limits:
            key = "published" if "published" in table else "value"
            return self._around(at, self._quantity(at, stated, key), _text_or(table, "tolerance", ""))
        low, high = (
            self._quantity(at, text, key) if (text := _text_at(table, key)) is not None else None
            for key in ("least", "most")
        )
        if low and high and (low.unit != high.unit or low.value > high.value):
            raise self.fail(
                at, f"`{low}` to `{high}` is not an interval", "`least` must be the lower value", "most"
            )
        text = f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
        known = [bound for bound in (low, high) if bound]
        return Interval(
            low.value if low else -math.inf,
            high.value if high else math.inf,
            known[0].unit,
            text,
            max(2, *(bound.decimals for bound in known)),
            known[0].name,
        )

    def _around(self, at: _Place, middle: Quantity, tolerance: str) -> Interval:
        """The interval from the stated value minus the tolerance to the stated value plus the tolerance."""
        spread = self._quantity(at, tolerance, "tolerance")
        if spread.unit == middle.unit:
            # If the value is a share, a tolerance in per cent means percentage points.
            half = spread.value
        elif spread.unit == "":
            half = abs(middle.value) * spread.value
        else:
            cause = f"`{tolerance}` is not a tolerance for `{middle}`: the units differ"
            raise self.fail(at, cause, "use the same unit", "tolerance")
        bounds = (middle.value - half, middle.value + half)
        return Interval(*bounds, middle.unit, f"±{tolerance}", max(2, middle.decimals), middle.name)

    def _quantity(self, at: _Place, text: str, key: str) -> Quantity:
        try:
            return Quantity.parse(text)
        except ValueError as error:
            raise self.fail(at, str(error), "correct it there", key) from None

    def _text(self, at: _Place, table: _Table, key: str) -> str:
        if key not in table:
            raise self.fail(at, f"`{key}` is missing", f'give `{key} = "…"`')
        text = _text_or(table, key, "")
        if not text.strip():
            raise self.fail(at, f"`{key}` is empty", "write a text", key)
        return text

    def _known(self, at: _Place, table: _Table, known: Mapping[str, type]) -> None:
        for key, value in table.items():
            if key not in known:
                raise self.fail(at, f"unknown key `{key}`", nearest(key, known), key)
            wanted = known[key]
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
                raise self.fail(at, f"`{key}` is not {_NAMES[wanted]}", "correct it there", key)


def _text_at(table: _Table, key: str) -> str | None:
    """The text at a key; `None` without one."""
    value = table.get(key)
    return value if isinstance(value, str) else None


def _text_or(table: _Table, key: str, default: str) -> str:
    """The text at a key, else `default`."""
    text = _text_at(table, key)
    return default if text is None else text


def _table(value: Toml | None) -> _Table:
    """The value if it is a table, else an empty table."""
    return value if isinstance(value, dict) else {}


def _list(value: Toml | None) -> list[Toml]:
    """The value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def _texts(values: Sequence[Toml]) -> tuple[str, ...]:
    """The texts among the values of a list."""
    return tuple(value for value in values if isinstance(value, str))


def _is_word(text: str) -> bool:
    without_blanks = any("\u3000" <= letter <= "\u9fff" for letter in text)
    return bool(_WORD.fullmatch(text)) and (not without_blanks or len(text) <= _MOST_WITHOUT_BLANKS)
