"""Environment variables that give a program in a host the addresses of the other hosts."""

from __future__ import annotations

from collections.abc import Iterable

_BEGIN = "ENGPASS_ADDRESS_"


def variable(host: str) -> str:
    """Name of the variable with a host's address: upper case, `_` for all but letters and digits."""
    return _BEGIN + "".join(c if c.isascii() and c.isalnum() else "_" for c in host).upper()


def clashes(hosts: Iterable[str]) -> dict[str, list[str]]:
    """Names of variables that several hosts would share, with these hosts; such a variable is not set."""
    found: dict[str, list[str]] = {}
    for host in hosts:
        found.setdefault(variable(host), []).append(host)
    return {name: those for name, those in found.items() if len(those) > 1}
