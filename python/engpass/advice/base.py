"""What a kind of advice is: it looks at a situation and proposes changes; simulation judges them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from engpass.explain.situation import Situation
from engpass.settings import Amount, join

PATIENCE = 2
"""Steps of a search that may bring nothing before it ends: a burst fits whole or not at all."""

DOUBLINGS = 8
"""Steps of a doubling search at most: a factor of 256."""


class Cost(enum.IntEnum):
    """What a change takes; among equal gains the cheaper one comes first."""

    SETTING = 0
    APPLICATION = 1
    HARDWARE = 2


@dataclass(frozen=True)
class Candidate:
    """A change: in words, and as values for paths as `--set` takes them."""

    say: str
    set: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Proposal:
    """One or more steps of one change, tried in their order as long as they help."""

    kind: str
    cost: Cost
    steps: tuple[Candidate, ...]
    patience: int = PATIENCE
    """Steps that may bring nothing before no more are tried."""


Kind = Callable[[Situation], Iterator[Proposal]]
"""A kind of advice: one file of this package with a function `propose`."""


def doubling(
    kind: str,
    cost: Cost,
    path: Sequence[str],
    amount: Amount | None,
    words: str,
    *,
    factor: Decimal | int = 2,
    steps: int = DOUBLINGS,
) -> Iterator[Proposal]:
    """A value multiplied again and again, `words` with `{}` for it; nothing where there is no value."""
    if amount is None or not amount.number:
        return
    made = []
    for _ in range(steps):
        amount = amount.times(factor)
        made.append(Candidate(words.format(amount), ((join(path), str(amount)),)))
    yield Proposal(kind, cost, tuple(made))


def others(
    kind: str, cost: Cost, path: Sequence[str], known: Sequence[str], now: object, words: str
) -> Iterator[Proposal]:
    """Every other value of a list, each a change of its own."""
    current = next(iter(now), None) if isinstance(now, dict) else now
    for value in known:
        if value != current:
            yield Proposal(kind, cost, (Candidate(words.format(value), ((join(path), value),)),))
