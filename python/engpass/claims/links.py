"""Quantities of a link: how full it is, its cells, the accounts of its ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from engpass.claims.missing import NoDataError

LINK_UNITS = {"utilisation": "", "cells": "cells"}
"""Quantities of a link that are no accounts, with their units."""


def on_link(outcome: Mapping[str, Any], link: str, quantity: str) -> float:
    """A quantity of the first direction of a link; accounts in bytes. Raises `NoDataError`."""
    use = outcome.get("links", {}).get(link)
    if use is None:
        raise NoDataError(f"the outcome has no link `{link}`")
    side = use["directions"][0]
    if quantity in LINK_UNITS:
        if quantity not in side:
            raise NoDataError(f"the engine counts no {quantity} on links")
        return float(side[quantity])
    if "ledger" not in side:
        raise NoDataError(f"the engine keeps no ledger of link `{link}`")
    # The ledger counts in a fraction of a bit, `1/13 bit`, and leaves empty accounts out.
    part = Fraction(use["unit"].removesuffix("bit").strip() or "1")
    accounts = [name.strip() for name in quantity.split("+")]
    return math.fsum(float(part * side["ledger"].get(name, 0)) for name in accounts) / 8
