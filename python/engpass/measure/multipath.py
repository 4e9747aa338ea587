"""MPTCP between namespaces: hosts announce all their addresses (RFC 8684), for one subflow each.

On hosts with `reach`, the path manager stays as its owner has set it: `ip mptcp endpoint show`.
"""

from __future__ import annotations

from collections.abc import Sequence

from engpass.netlab import Lab
from engpass.types.agent import FlowRequests

_MOST = 8


def prepare(lab: Lab, flows: Sequence[FlowRequests]) -> None:
    """Set up the path managers of hosts whose traffic requires MPTCP. Raises `LabError`."""
    wanted = {
        host
        for flow in flows
        if flow.send.mptcp
        for host in (flow.sender, *flow.receivers)
        if len(lab.members[host].addresses) > 1
    }
    for host in sorted(wanted):
        member = lab.members[host]
        lines = [f"mptcp limits set subflows {_MOST} add_addr_accepted {_MOST}", "mptcp endpoint flush"]
        # The connection uses the first address; the host announces the others to its peer.
        lines += [f"mptcp endpoint add {address} signal" for address in member.addresses[1 : _MOST + 1]]
        lab.kernel.batch("ip", member.namespace, lines)
