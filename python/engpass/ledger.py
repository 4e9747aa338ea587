"""The books of a link: every bit-time of a direction in exactly one account.

The engines keep them as integers in parts of a bit; here they are checked, added up over repeats and turned
into shares and into the waterfall from line rate to goodput. `docs/explain.md` says what the accounts mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from engpass.error import EngpassError


@dataclass(frozen=True)
class Family:
    """Accounts that belong together: `key` for programs, `title` for people."""

    key: str
    title: str
    accounts: tuple[str, ...]
    prefix: str = ""
    """What else begins so belongs here, too."""


FAMILIES = (
    Family(
        "overhead",
        "framing and headers",
        (
            "physical framing",
            "cell headers",
            "frame headers",
            "padding",
            "AAL5 trailers",
            "encapsulation",
            "IP headers",
            "transport headers",
        ),
    ),
    Family("delivered", "delivered", ("delivered",)),
    Family("waste", "carried in vain", ("dead", "duplicate")),
    Family("transit", "in flight at the end", ("in flight",)),
    Family("other", "other traffic", ("control",), "other: "),
    Family(
        "idle",
        "idle",
        (
            "idle: application",
            "idle: host",
            "idle: CPU",
            "idle: NIC",
            "idle: send buffer",
            "idle: receive window",
            "idle: congestion window",
            "idle: retransmission timer",
            "idle: Nagle",
            "idle: silly window",
            "idle: handshake",
            "idle: pacing",
            "idle: shaper",
            "idle: upstream",
            "idle: nobody",
            "idle: unknown",
        ),
        "idle: ",
    ),
)
"""All families, in the order in which tables and figures show them."""

_WATERFALL = ("overhead", "other", "idle", "transit", "waste", "delivered")


def family(account: str) -> Family:
    """The family of an account; one that a later engine may have added stands with the other traffic."""
    for one in FAMILIES:
        if account in one.accounts or (one.prefix and account.startswith(one.prefix)):
            return one
    return next(one for one in FAMILIES if one.key == "other")


def ordered(accounts: Iterable[str]) -> list[str]:
    """Accounts once each, in the order of the families and of their lists; others by name at their end."""

    def place(account: str) -> tuple[int, int, str]:
        home = family(account)
        known = home.accounts
        return FAMILIES.index(home), known.index(account) if account in known else len(known), account

    return sorted(set(accounts), key=place)


def title(account: str) -> str:
    """An account in a table or key: a generator's cells go by its name."""
    return f"traffic `{account.removeprefix('other: ')}`" if account.startswith("other: ") else account


@dataclass(frozen=True)
class Books:
    """Accounts that sum to a capacity, in units of 1/`parts` bit."""

    capacity: int
    parts: int
    accounts: Mapping[str, int]

    def share(self, account: str) -> float:
        """An account as a share of the capacity."""
        return self.accounts.get(account, 0) / self.capacity if self.capacity else 0.0

    @property
    def nobody_sends(self) -> bool:
        """Whether no flow could send data this way: all is idle so, but for framing and what is control."""
        used = ("idle: nobody", "physical framing", "control", "cell headers")
        return set(self.accounts) <= set(used)

    def bits(self, account: str) -> float:
        """An account in bits."""
        return self.accounts.get(account, 0) / self.parts

    def of(self, *families: str) -> float:
        """All accounts of some families, by key, as a share of the capacity."""
        booked = sum(amount for account, amount in self.accounts.items() if family(account).key in families)
        return booked / self.capacity if self.capacity else 0.0

    @property
    def idle(self) -> float:
        """Share of the time in which nothing was sent."""
        return self.of("idle")

    @property
    def names(self) -> list[str]:
        """The accounts that hold something, in order."""
        return ordered(name for name, amount in self.accounts.items() if amount)


@dataclass(frozen=True)
class Direction:
    """One direction of a link and its books."""

    link: str
    start: str
    end: str
    books: Books

    @property
    def key(self) -> tuple[str, str, str]:
        """Link, transmitter and receiver: what tells directions apart."""
        return self.link, self.start, self.end

    @property
    def place(self) -> str:
        """As drops name it: `atomis5 -> ss20`."""
        return f"{self.start} -> {self.end}"


def directions(outcome: Mapping[str, Any]) -> list[Direction]:
    """The books of every direction of an outcome; none where the engine keeps none.

    Raises `EngpassError` where they do not balance: no engine writes such a thing.
    """
    found = []
    for link, use in (outcome.get("links") or {}).items():
        if "ledger" not in use:
            continue
        whole = _books(f"link `{link}`", use, str(use.get("unit", "bit")))
        sides = [
            Direction(link, side["from"], side["to"], _books(f"link `{link}`", side, use.get("unit", "bit")))
            for side in use["directions"]
        ]
        _check_sum(link, whole, sides)
        found += sides
    return found


def _books(what: str, kept: Mapping[str, Any], unit: str) -> Books:
    try:
        accounts = {str(name): int(amount) for name, amount in kept["ledger"].items()}
        books = Books(int(kept["capacity"]), parts(unit), accounts)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _corrupt(f"the ledger of {what} cannot be read") from None
    booked = sum(accounts.values())
    if booked != books.capacity:
        raise _corrupt(f"the ledger of {what} does not balance: {booked:,} of {books.capacity:,} are booked")
    if any(amount < 0 for amount in accounts.values()):
        raise _corrupt(f"the ledger of {what} has a negative account")
    return books


def _check_sum(link: str, whole: Books, sides: Sequence[Direction]) -> None:
    total = add(side.books for side in sides)
    same = total is not None and total.capacity == whole.capacity
    if total is None or not same or any(total.accounts.get(a, 0) != n for a, n in whole.accounts.items()):
        raise _corrupt(f"the ledger of link `{link}` is not the sum of its directions")


def _corrupt(message: str) -> EngpassError:
    return EngpassError(message, "the stored outcome was damaged: `engpass run FILE --fresh` makes it anew")


def parts(unit: str) -> int:
    """How many units make a bit: 13 for `1/13 bit`, 1 for `bit`; raises `ValueError`."""
    number = unit.removesuffix("bit").strip()
    if not unit.endswith("bit") or (number and not number.startswith("1/")):
        raise ValueError(unit)
    return int(number[2:]) if number else 1


def add(books: Iterable[Books]) -> Books | None:
    """Books of several repeats or directions as one: they balance as each of them does. Of none, `None`."""
    total: Books | None = None
    for one in books:
        if total is None:
            total = Books(one.capacity, one.parts, dict(one.accounts))
            continue
        scale, other = one.parts, total.parts
        if scale == other:
            scale = other = 1
        accounts = {name: amount * scale for name, amount in total.accounts.items()}
        for name, amount in one.accounts.items():
            accounts[name] = accounts.get(name, 0) + amount * other
        total = Books(
            total.capacity * scale + one.capacity * other,
            total.parts * scale,
            accounts,
        )
    return total


class Sums:
    """The books of every direction, added up over outcomes."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str, str], Direction] = {}
        self.outcomes = 0
        """Outcomes that had books."""

    def add(self, outcome: Mapping[str, Any]) -> None:
        """The books of an outcome; errors as for `directions`."""
        sides = directions(outcome)
        self.outcomes += bool(sides)
        for side in sides:
            before = self._made.get(side.key)
            total = add([before.books, side.books]) if before else side.books
            self._made[side.key] = Direction(side.link, side.start, side.end, total or side.books)

    @property
    def directions(self) -> list[Direction]:
        """The sums, in the order of the outcomes."""
        return list(self._made.values())


def together(outcomes: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], Direction]:
    """The books of every direction, added up over outcomes; errors as for `directions`."""
    sums = Sums()
    for outcome in outcomes:
        sums.add(outcome)
    return {side.key: side for side in sums.directions}


def slim(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome whose links have kept their ledgers, cells and utilisation; the rest is most of its size."""
    links = outcome.pop("links", None) or {}
    kept = {name: _slim_link(use) for name, use in links.items() if "ledger" in use}
    if kept:
        outcome["links"] = kept
    return outcome


def _slim_link(use: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("from", "to", "ledger", "capacity", "cells", "utilisation")
    sides = [{key: side[key] for key in keys if key in side} for side in use["directions"]]
    return {**{key: use[key] for key in ("ledger", "capacity", "unit") if key in use}, "directions": sides}


Hop: TypeAlias = tuple[str, str, str]
"""Link, transmitter, receiver."""


def hops(path: Mapping[str, Any]) -> list[Hop]:
    """The hops of a path, as `{"share", "steps"}` has it."""
    return [(str(step["link"]), str(step["from"]), str(step["to"])) for step in path["steps"]]


def route(outcome: Mapping[str, Any], flow: str) -> list[Hop]:
    """The hops of a flow on the path that most of its packets take; none where the outcome has no path.

    Outcomes of earlier versions have none where the topology leaves two links to choose from.
    """
    paths = outcome["flows"].get(flow, {}).get("paths", ())
    return hops(max(paths, key=lambda path: float(path["share"]))) if paths else []


@dataclass(frozen=True)
class Step:
    """A step of the waterfall: what an account takes of the line, and what is left after it."""

    name: str
    family: str
    taken: float
    left: float


def waterfall(books: Books, own: float | None = None) -> list[Step]:
    """From line rate to goodput, as shares of the line: overheads, others, idle by reason, in vain.

    Where several flows share the line, `own` is the share that one of them is delivered: it ends there.
    """
    steps = [Step("line rate", "", 0.0, 1.0)]
    booked = 0
    names = [name for key in _WATERFALL for name in books.names if family(name).key == key]
    for name in names:
        if name == "delivered":
            continue
        amount = books.accounts[name]
        booked += amount
        left = (books.capacity - booked) / books.capacity
        steps.append(Step(title(name), family(name).key, amount / books.capacity, left))
    delivered = books.share("delivered")
    if own is not None and own < delivered:
        steps.append(Step("other flows", "delivered", delivered - own, own))
        delivered = own
    steps.append(Step("delivered", "delivered", 0.0, delivered))
    return steps
