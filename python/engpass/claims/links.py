"""Reads the ledger of the first direction of a link."""

from __future__ import annotations

import math
from fractions import Fraction

from engpass.claims.missing import NoDataError
from engpass.results.ledger import is_account
from engpass.types.outcome import DirectionOutcome, Outcome


def first_direction(outcome: Outcome, link: str) -> DirectionOutcome:
    """The entry for the direction that starts at the link's first end; raises `NoDataError` without one."""
    found = outcome.links.get(link)
    if found is None:
        raise NoDataError(f"the outcome has no link `{link}`")
    return found.directions[0]


def account_bytes(side: DirectionOutcome, link: str, accounts: str) -> float:
    """The bytes of a ledger account, or the sum of several (`a + b`); raises `NoDataError`."""
    if side.ledger is None:
        raise NoDataError(f"the engine has no ledger of link `{link}`")
    # The ledger counts in fractions of a bit, and leaves out accounts that are 0.
    part, booked = Fraction(1, side.ledger.units_per_bit), side.ledger.accounts
    names = [name.strip() for name in accounts.split("+")]
    if strange := [name for name in names if not is_account(name)]:
        raise NoDataError(f"`{strange[0]}` is neither a signal of lines nor an account of the ledger")
    return math.fsum(float(part * booked.get(name, 0)) for name in names) / 8
