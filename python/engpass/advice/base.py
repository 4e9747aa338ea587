"""Types of advice: a kind of advice looks at the situation of a flow and proposes changes to simulate."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from engpass.explain.point_facts import Situation
from engpass.explain.service import LEAST
from engpass.settings import Amount, join

PATIENCE = 2
"""Steps without gain after which a search ends. One is too few: a burst fits a queue whole or not."""

DOUBLINGS = 8
"""Maximum number of steps of a search that doubles a value: the last is 256 times the first value."""


class Cost(enum.IntEnum):
    """The effort of a change; among changes of about equal gain, one of less effort comes first."""

    SETTING = 0
    APPLICATION = 1
    HARDWARE = 2


class Candidate(msgspec.Struct, frozen=True):
    """A change: its description, and pairs of path and value, as for the option `--set`."""

    say: str
    set: tuple[tuple[str, str], ...]


class Proposal(msgspec.Struct, frozen=True):
    """Steps of one change, such as a value doubled again and again; tried in order as long as they help."""

    kind: str
    """Name of this kind of change in the output of `--json`."""
    cost: Cost
    steps: tuple[Candidate, ...]
    patience: int = PATIENCE
    """Steps in a row without gain after which the search ends."""
    shortlist: int | None = None
    """Number of steps to simulate: those with the highest limit of all flows together above the present one.

    Without it all steps are simulated.
    """

    @staticmethod
    def one(kind: str, cost: Cost, words: str, *sets: tuple[Sequence[str], str]) -> Proposal:
        """A change of a single step: paths with their values."""
        return Proposal(kind, cost, (Candidate(words, tuple((join(path), value) for path, value in sets)),))


def patient(at: Situation, proposals: Iterable[Proposal]) -> Iterator[Proposal]:
    """Try all sizes of buffers if next to nothing arrives: the first steps cannot gain anything.

    A datagram of many packets or cells arrives whole or not at all. If none fits, the goodput is zero up to
    the step that has room for one.
    """
    for one in proposals:
        yield replace(one, patience=len(one.steps)) if at.goodput <= LEAST * at.limit else one


Kind = Callable[[Situation], Iterator[Proposal]]
"""Type of the function `propose` of each file of this package; it may make proposals of several kinds."""


def doubling(
    at: Situation,
    kind: str,
    cost: Cost,
    path: Sequence[str],
    words: str,
    *,
    start: Amount | None = None,
    factor: Decimal | int = 2,
    steps: int = DOUBLINGS,
) -> Iterator[Proposal]:
    """Propose to multiply a value repeatedly; `{}` in `words` is the new value.

    If the file has no value, it is `start`; without both there is no proposal.
    """
    given = at.settings.amount(*path) or start
    if given is not None:
        yield from scaled(kind, cost, [(path, given)], words, factor=factor, steps=steps, named=given)


def scaled(
    kind: str,
    cost: Cost,
    amounts: Iterable[tuple[Sequence[str], Amount | None]],
    words: str,
    *,
    factor: Decimal | int = 2,
    steps: int = 4,
    named: Amount | None = None,
) -> Iterator[Proposal]:
    """Propose to multiply values by powers of a factor; nothing without a value.

    `{}` in `words` is the value that `named` becomes, or else the number by which all are multiplied or
    divided.
    """
    given = [(path, one) for path, one in amounts if one is not None and one.number]
    if not given:
        return
    made, total = [], Decimal(1)
    for _ in range(steps):
        total *= factor
        what = max(total, 1 / total) if named is None else named.times(total)
        sets = tuple((join(path), str(amount.times(total))) for path, amount in given)
        made.append(Candidate(words.format(what), sets))
    yield Proposal(kind, cost, tuple(made))


def others(
    kind: str, cost: Cost, path: Sequence[str], known: Sequence[str], now: str, words: str
) -> Iterator[Proposal]:
    """Propose each value of `known` except the present one, as a separate change."""
    for value in known:
        if value != now:
            yield Proposal.one(kind, cost, words.format(value), (path, value))
