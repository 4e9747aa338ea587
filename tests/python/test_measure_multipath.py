"""MPTCP between real namespaces: every link has a ledger of its own subflow. Needs root and MPTCP."""

from __future__ import annotations

import shutil
import socket

import pytest

from conftest import Cli
from engpass.netlab import kernel
from engpass.results import outcomes
from engpass.types.outcome import Outcome
from keeps_up import when_it_keeps_up

TWO = """\
name = "two ways"
[host.a]
[host.b]
[link.one]
ends = ["a", "b"]
medium = "ethernet-100"
[link.two]
ends = ["a", "b"]
medium = "ethernet-100"
[run]
duration = "1500 ms"
warmup = "500 ms"
[traffic.bulk]
kind = "tcp-stream"
from = "a"
to = "b"
message = "64 kB"
live = { mptcp = true }
"""


def has_mptcp() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(
    not kernel.privileged() or shutil.which("ip") is None or shutil.which("tc") is None or not has_mptcp(),
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip`, `tc` and MPTCP",
)
def test_mptcp_subflows_are_posted_to_both_links(cli: Cli) -> None:
    (cli.directory / "two.toml").write_text(TWO)

    def measured() -> Outcome:
        said = cli("run", "two.toml", "--engine", "measure", "--repeats", "1", "--json", "--fresh")
        (line,) = said.stdout.splitlines()
        return outcomes.read(line)

    # Two threads read the counters and the program's window of a second, so these may differ.
    outcome = when_it_keeps_up(measured, lost_ms=150)
    goodput = outcome.flows["bulk"].goodput_bit_per_s
    delivered = 0
    for name in ("one", "two"):
        side = next(one for one in outcome.links[name].directions if one.from_ == "a")
        assert side.ledger is not None
        account = side.ledger.accounts
        assert account["delivered"] > 0, (name, account)
        # Segments of a subflow that were not posted would be undeclared traffic.
        assert account.get("undeclared traffic", 0) < 0.2 * account["delivered"], (name, account)
        delivered += account["delivered"]
    # Both subflows together carry the goodput, except for data that MPTCP sent twice and data in flight.
    assert delivered == pytest.approx(goodput, rel=0.25)
