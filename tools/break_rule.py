"""The rule for `breaks` of a claim: change a quantity by at most a factor of two, or remove a mechanism."""

from __future__ import annotations

from decimal import Decimal

from engpass import _engpass
from engpass.campaign import axes_from_json
from engpass.claims.file import Measure
from engpass.settings import Amount, Settings, join, split
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


def check_break(campaign: _engpass.Campaign, measure: Measure, key: str, value: str) -> str | None:
    """The reason why a break is not allowed; `None` if it is.

    `campaign` is that of the claim; the present value is that at the claim's variant and swept values.
    """
    try:
        return _fault(campaign, measure, key, value)
    except _engpass.InvalidTestbed as error:
        return f"{error.diagnostics[0]['message']}"
    except ValueError as error:
        return f"`{key}` is no key of a testbed: {error}"


def _fault(campaign: _engpass.Campaign, measure: Measure, key: str, value: str) -> str | None:
    path = split(key)
    variant = measure.check.variant
    if len(path) == 3 and path[0] == "variant":
        variant, path = path[1], split(path[2])
    at = getattr(measure.check, "at", None)
    where = dict(measure.where)
    swept = [axis.path for axis in axes_from_json(campaign.axes()) if axis.path not in where]
    if at is not None and len(swept) == 1:
        where[swept.pop()] = str(at)
    # A claim about several values of an axis has no present value of it.
    if join(path) in swept:
        before = None
    else:
        before = Settings.at(campaign, variant, where.items(), path[:1]).get(*path)
    own = Settings.at(campaign, None, (), path[:1]).get(*path)
    if before is not None and _same(before, value):
        return f"`{key}` is already {before}"
    if _is_removal(path[-1], value) or (before != own and _same(own, value)):
        return None
    if join(path) in swept:
        return f"the claim is about several values of `{key}`: change another key"
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
