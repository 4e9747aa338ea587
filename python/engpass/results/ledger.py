"""The ledger of a line: every bit-time belongs to exactly one account.

Engines keep ledgers as integers, in parts of a bit. This module checks them, sums them over repeats, and
turns them into shares and into the waterfall from line rate to goodput. `docs/ledger.md` defines the accounts
of `simulate`, and `docs/measure.md` those of measured points, such as `undeclared traffic`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from engpass.error import EngpassError
from engpass.types.accounts import FAMILIES as _FAMILIES
from engpass.types.outcome import Ledger, Outcome, Path


class Family(msgspec.Struct, frozen=True):
    """Accounts that belong together: `key` is the name for programs, `title` that for people."""

    key: str
    title: str
    prefix: str
    """Accounts that begin with this text belong to the family, too; empty if there are none."""
    accounts: tuple[str, ...]


FAMILIES = tuple(Family(key, title, prefix, tuple(names)) for key, title, prefix, names in _FAMILIES)
"""All families, in the order in which tables and figures show them."""


def is_account(name: str) -> bool:
    """True if a ledger may have an account of this name."""
    return any(
        name in family.accounts or (family.prefix and name.startswith(family.prefix)) for family in FAMILIES
    )


_WATERFALL = ("overhead", "other", "idle", "transit", "waste", "delivered")


@functools.cache
def family(account: str) -> Family:
    """The family of an account; unknown accounts, perhaps of a later engine, belong to the other traffic."""
    for one in FAMILIES:
        if account in one.accounts or (one.prefix and account.startswith(one.prefix)):
            return one
    return next(one for one in FAMILIES if one.key == "other")


def ordered(accounts: Iterable[str]) -> list[str]:
    """Each account once, in the order of families and of their lists; unlisted ones by name behind these."""

    def place(account: str) -> tuple[int, int, str]:
        home = family(account)
        known = home.accounts
        return FAMILIES.index(home), known.index(account) if account in known else len(known), account

    return sorted(set(accounts), key=place)


def title(account: str) -> str:
    """The name of an account in a table or legend; a generator's account has the generator's name."""
    return (
        f"traffic `{account.removeprefix('generator: ')}`" if account.startswith("generator: ") else account
    )


class Books(msgspec.Struct, frozen=True):
    """The accounts of a ledger, which sum to the capacity, in units of 1/`parts` bit."""

    capacity: int
    parts: int
    accounts: Mapping[str, int]

    def share(self, account: str) -> float:
        """An account as a share of the capacity."""
        return self.accounts.get(account, 0) / self.capacity if self.capacity else 0.0

    @property
    def nobody_sends(self) -> bool:
        """True if no flow could send data on this line: it only carries control traffic, is idle or down."""
        names = set(self.accounts) - {"physical framing"}
        # A line that is down for all of the time may have senders.
        return names <= {
            "idle: no sender",
            "idle: line down",
            "ACK and control",
            "cell headers",
        } and names != {"idle: line down"}

    def bits(self, account: str) -> float:
        """An account in bits."""
        return self.accounts.get(account, 0) / self.parts

    def of(self, *families: str) -> float:
        """Sum of the accounts of some families, given by key, as a share of the capacity."""
        booked = sum(amount for account, amount in self.accounts.items() if family(account).key in families)
        return booked / self.capacity if self.capacity else 0.0

    @property
    def idle(self) -> float:
        """Share of the time in which the line sent nothing."""
        return self.of("idle")

    @property
    def names(self) -> list[str]:
        """The accounts that are not empty, in order."""
        return ordered(name for name, amount in self.accounts.items() if amount)


class Direction(msgspec.Struct, frozen=True):
    """One direction of a link with its ledger."""

    link: str
    start: str
    end: str
    books: Books

    @property
    def key(self) -> tuple[str, str, str]:
        """Link, transmitter and receiver, which identify a direction."""
        return self.link, self.start, self.end


def directions(outcome: Outcome) -> list[Direction]:
    """The ledgers of all directions of an outcome; empty if the engine keeps none.

    Raises `EngpassError` if a ledger does not balance: no engine writes such an outcome.
    """
    return [
        Direction(link, side.from_, side.to, _books(f"link `{link}`", side.ledger))
        for link, use in outcome.links.items()
        for side in use.directions
        if side.ledger is not None
    ]


def _books(what: str, kept: Ledger) -> Books:
    booked = sum(kept.accounts.values())
    if booked != kept.capacity:
        raise _corrupt(f"the ledger of {what} does not balance: {booked:,} of {kept.capacity:,} are posted")
    if any(amount < 0 for amount in kept.accounts.values()):
        raise _corrupt(f"the ledger of {what} has a negative account")
    return Books(kept.capacity, kept.units_per_bit, kept.accounts)


def _corrupt(message: str) -> EngpassError:
    return EngpassError(
        message, "the stored outcome is damaged: `engpass run FILE --fresh` computes it again"
    )


def add(books: Iterable[Books]) -> Books | None:
    """The sum of the ledgers of several repeats or directions; `None` without any.

    It balances if each ledger does.
    """
    total: Books | None = None
    for one in books:
        if total is None:
            total = Books(one.capacity, one.parts, dict(one.accounts))
            continue
        scale, other = (1, 1) if one.parts == total.parts else (one.parts, total.parts)
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
    """Adds up the ledgers of each direction over several outcomes."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str, str], Direction] = {}
        self.outcomes = 0
        """Number of outcomes so far that had ledgers."""

    def add(self, outcome: Outcome) -> None:
        """Add the ledgers of an outcome; raises as `directions` does."""
        sides = directions(outcome)
        self.outcomes += bool(sides)
        for side in sides:
            before = self._made.get(side.key)
            total = add([before.books, side.books]) if before else side.books
            self._made[side.key] = Direction(side.link, side.start, side.end, total or side.books)

    @property
    def directions(self) -> list[Direction]:
        """The summed ledgers, in the order of the outcomes."""
        return list(self._made.values())


def together(outcomes: Iterable[Outcome]) -> dict[tuple[str, str, str], Direction]:
    """The ledgers of all directions, summed over the outcomes; raises as `directions` does."""
    sums = Sums()
    for outcome in outcomes:
        sums.add(outcome)
    return {side.key: side for side in sums.directions}


def slim(outcome: Outcome) -> Outcome:
    """The outcome without links that have no ledger, and without the agents' results for hosts and flows."""
    links = {
        name: use
        for name, use in outcome.links.items()
        if any(side.ledger is not None for side in use.directions)
    }
    flows = {
        name: flow if flow.real is None else replace(flow, real=replace(flow.real, ends={}))
        for name, flow in outcome.flows.items()
    }
    return replace(outcome, links=links, flows=flows, hosts={})


Hop: TypeAlias = tuple[str, str, str]
"""A line: link, transmitter and receiver."""


def hops(path: Path) -> list[Hop]:
    """The lines of a path in order."""
    return [(step.link, step.from_, step.to) for step in path.steps]


def parallel(outcome: Outcome) -> frozenset[str]:
    """Links between two nodes that have another link between them: only the name tells which one is meant."""
    ends = {
        name: frozenset((side.from_, side.to))
        for name, use in outcome.links.items()
        for side in use.directions
    }
    count = Counter(ends.values())
    return frozenset(name for name, pair in ends.items() if count[pair] > 1)


def parts(outcome: Outcome, flow: str) -> dict[Hop, float]:
    """The lines that packets of a flow take, from the sender on, each with the share of packets that take it.

    If paths part and meet again, each hop comes before the hops behind it. Outcomes of earlier versions have
    no path if the topology has a choice of links.
    """
    found = outcome.flows.get(flow)
    order: list[Hop] = []
    shares: dict[Hop, float] = {}
    for path in found.paths if found is not None else ():
        # Lines that are not in the order yet come before the next line of the path that is.
        place = len(order)
        for hop in reversed(hops(path)):
            if hop in shares:
                place = order.index(hop)
            else:
                order.insert(place, hop)
            # Every receiver of a multicast group gets all packets.
            shares[hop] = min(1.0, shares.get(hop, 0.0) + path.share)
    return {hop: shares[hop] for hop in order}


def route(outcome: Outcome, flow: str) -> list[Hop]:
    """The lines of all paths of a flow; none if the outcome has no path."""
    return list(parts(outcome, flow))


class Step(msgspec.Struct, frozen=True):
    """A step of the waterfall: the share of the line that an account takes, and the share that remains."""

    name: str
    family: str
    taken: float
    left: float


def waterfall(books: Books, own: float | None = None) -> list[Step]:
    """From line rate to goodput, as shares of the line: overheads, others, idle by reason, wasted.

    If several flows share the line, `own` is the delivered share of one of them: the waterfall ends there.
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
