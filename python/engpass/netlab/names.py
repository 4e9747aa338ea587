"""Variables that tell a program in a host where the others are."""

from __future__ import annotations

from collections.abc import Iterable

_BEGIN = "ENGPASS_ADDRESS_"


def variable(host: str) -> str:
    """The variable with the address of a host: upper case, `_` for all that is no letter and no digit."""
    return _BEGIN + "".join(c if c.isascii() and c.isalnum() else "_" for c in host).upper()


def clashes(hosts: Iterable[str]) -> dict[str, list[str]]:
    """Variables that several hosts would have, and those hosts: none of them has one."""
    found: dict[str, list[str]] = {}
    for host in hosts:
        found.setdefault(variable(host), []).append(host)
    return {name: those for name, those in found.items() if len(those) > 1}
