"""Commands that start the agents of a testbed's hosts, and addresses at which hosts reach each other."""

from __future__ import annotations

import ipaddress
import os
import shlex
import sys
from collections.abc import Mapping

from engpass import child
from engpass.measure.agent import MeasureError
from engpass.measure.answers import Hello
from engpass.netlab import Lab
from engpass.netlab.kernel import Kernel
from engpass.types.plan import HostPlan

AGENT = "ENGPASS_AGENT"
"""Environment variable with another command that starts agents, on this machine and over ssh."""


def way(host: str, reach: str | None, lab: Lab | None) -> tuple[str, list[str]]:
    """How a host is reached, in words, and the command that starts its agent."""
    if reach is None:
        if lab is None:
            raise MeasureError(
                f"host `{host}` has no `reach`, but other hosts have one",
                'give every host that sends or receives a `reach`: "local", "netns NAME" or "ssh USER@HOST"',
            )
        return f"namespace of {lab.id}", lab.kernel.inside(lab.members[host].namespace, _here())
    word, _, name = reach.partition(" ")
    if word == "local":
        return reach, _here()
    if word == "netns":
        return reach, Kernel().inside(name, _here())
    remote = os.environ.get(AGENT, "engpass agent")
    # Without a terminal, ssh must fail instead of asking the user.
    quiet = [] if sys.stdin is not None and sys.stdin.isatty() else ["-o", "BatchMode=yes"]
    # 5 s are enough for a TCP SYN and its retransmissions after 1 and 3 s (RFC 6298).
    alive = ["-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2"]
    return reach, ["ssh", "-T", *quiet, *alive, "--", name, shlex.join(shlex.split(remote))]


def _here() -> list[str]:
    given = os.environ.get(AGENT)
    return shlex.split(given) if given else child.interpreter("engpass", "agent")


class Addresses:
    """The addresses at which the hosts of a testbed reach each other."""

    def __init__(self, hosts: Mapping[str, HostPlan], lab: Lab | None, hellos: Mapping[str, Hello]) -> None:
        self._hosts, self._lab, self._hellos = hosts, lab, hellos

    def of(self, host: str, seen_from: str) -> str:
        """The address to which `seen_from` sends packets for `host`; raises `MeasureError`."""
        if self._lab is not None:
            found = self._lab.ways.get(seen_from, {}).get(host)
            if found is None:
                raise MeasureError(f"no path leads from `{seen_from}` to `{host}`", "connect them by links")
            return found
        own = self._hosts[host].address
        if own is not None:
            return str(own)
        both = {str(self._hosts[name].reach) for name in (host, seen_from)}
        if both == {"local"}:
            return "127.0.0.1"
        for address in self.all_of(host):
            parsed = ipaddress.ip_address(address)
            if not parsed.is_loopback and not parsed.is_link_local:
                return address
        raise MeasureError(
            f"host `{host}` has only loopback addresses", f'give `[host.{host}]` an `address = "..."`'
        )

    def interface(self, host: str, seen_from: str) -> str | None:
        """The interface at which packets of another host arrive, or `None` if the agent does not list it."""
        address = self.of(host, seen_from)
        for entry in self._hellos[host].addresses:
            if entry.bare == address:
                return entry.interface
        return None

    def all_of(self, host: str) -> list[str]:
        """All addresses that packets of a host may have as their source."""
        known = self._hosts[host].address
        found = [str(known)] if known is not None else []
        for entry in self._hellos[host].addresses:
            try:
                ipaddress.ip_address(entry.bare)
            except ValueError:
                continue
            if entry.bare not in found:
                found.append(entry.bare)
        return found or ["127.0.0.1"]


def socket_address(address: str, port: int) -> str:
    """Format an address and a port as agents expect them."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
