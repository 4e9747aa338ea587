"""Quantities of a link: its utilisation, its cells, the accounts of its ledger."""

from __future__ import annotations

import math
from fractions import Fraction

from engpass.claims.missing import NoDataError
from engpass.types.outcome import Outcome

LINK_UNITS = {"utilisation": "", "cells": "cells"}
"""Quantities of a link other than accounts, with their units."""


def on_link(outcome: Outcome, link: str, quantity: str) -> float:
    """A quantity of the first direction of a link; accounts in bytes. Raises `NoDataError`."""
    use = outcome.links.get(link)
    if use is None:
        raise NoDataError(f"the outcome has no link `{link}`")
    side = use.directions[0]
    if quantity in LINK_UNITS:
        cells = None if side.cells is None else side.cells.sent
        value = side.utilisation if quantity == "utilisation" else cells
        if value is None:
            raise NoDataError(f"the engine does not count {quantity} on links")
        return value
    if side.ledger is None:
        raise NoDataError(f"the engine has no ledger of link `{link}`")
    # The ledger counts in fractions of a bit and omits empty accounts.
    part, booked = Fraction(1, side.ledger.units_per_bit), side.ledger.accounts
    accounts = [name.strip() for name in quantity.split("+")]
    return math.fsum(float(part * booked.get(name, 0)) for name in accounts) / 8
