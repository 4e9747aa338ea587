"""The rule for `breaks` of a claim: change a quantity by at most a factor of two, or remove a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from engpass.claims.file import CampaignSpec, Measure
from engpass.settings import Amount, Settings, split
from engpass.source import Toml

MOST = 2
"""Greatest factor by which `breaks` may raise or lower a quantity."""

REMOVES = {
    "discard": ("tail", "packet discard"),
    "schedule": ("fifo", "priorities"),
    "queue": ("drop-tail", "queue management"),
    "encapsulation": ("vc-mux", "the LLC/SNAP header"),
    "send_path": ("zero-copy", "copies"),
    "receive_path": ("zero-copy", "copies"),
    "recovery": ("plain", "fast recovery"),
    "ecmp": ("first", "the choice among paths"),
    "icmp": ("false", "ICMP messages of routers"),
    "path_mtu": ("known", "path MTU discovery"),
    "up": ("false", "a tunnel or a bond"),
}
"""Mechanisms by the last part of their key in a testbed: the value that removes each, and its name."""


def check_break(text: str, spec: CampaignSpec, measure: Measure, key: str, value: str) -> str | None:
    """The reason why a break is not allowed; `None` if it is.

    `text` is the testbed. The present value is that for the claim's campaign, variant and swept values.
    """
    path = split(key)
    variant = measure.check.variant
    if len(path) == 3 and path[0] == "variant":
        variant, path = path[1], split(path[2])
    at = getattr(measure.check, "at", None)
    swept = [path for path in _axes(text, spec) if path not in dict(measure.where)]
    places = [*measure.where, *((name, str(at)) for name in swept if at is not None and len(swept) == 1)]
    before = Settings.at(text, variant, places, _plain(spec.set, variant)).get(*path)
    own = Settings.at(text, "", (), _plain(spec.set, "")).get(*path)
    if before is not None and _same(before, value):
        return f"`{key}` is already {before}"
    if _is_removal(path[-1], value) or (before != own and _same(own, value)):
        return None
    if before is None:
        return f"the testbed gives `{key}` no value to compare with `{value}`"
    now, then = _number(value), _number(before)
    if now is None or then is None or now[1] != then[1]:
        return f"`{key}` from `{before}` to `{value}` neither changes a quantity nor removes a mechanism"
    if not then[0] or not Decimal(1) / MOST <= now[0] / then[0] <= MOST:
        return f"`{key}` changes from {before} to {value}, by more than a factor of {MOST}"
    return None


def _is_removal(key: str, value: str) -> bool:
    amount = Amount.read(value)
    return REMOVES.get(key, ("", ""))[0] == value or (amount is not None and not amount.number)


def _same(before: Toml | None, value: str) -> bool:
    if isinstance(before, bool):
        return str(before).lower() == value
    number = _number(before)
    return str(before) == value or (number is not None and number == _number(value))


def _number(value: Toml | None) -> tuple[Decimal, str] | None:
    """The number and base unit of a quantity or of a number without a unit; `None` for other values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Decimal(str(value)), ""
    if str(value).replace(".", "", 1).isdecimal():
        return Decimal(str(value)), ""
    amount = Amount.read(value)
    return amount.in_base() if amount else None


def _axes(text: str, spec: CampaignSpec) -> list[str]:
    """The paths that the file or the campaign sweeps, except those for which the campaign sets one value."""
    import tomllib

    given = dict(spec.set)
    added = [split(key)[1] for key in given if split(key)[0] == "sweep"]
    return [
        name for name in {**tomllib.loads(text).get("sweep", {}), **dict.fromkeys(added)} if name not in given
    ]


def _plain(pairs: Sequence[tuple[str, str]], variant: str) -> list[tuple[str, str]]:
    """The overrides that set values for this variant, by path in the testbed; not those that set sweeps."""
    plain = []
    for key, value in pairs:
        path = split(key)
        if path[0] == "variant" and path[1] == variant:
            plain.append((path[2], value))
        elif path[0] not in ("variant", "sweep"):
            plain.append((key, value))
    return plain
