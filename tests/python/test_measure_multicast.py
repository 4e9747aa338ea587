"""Multicast through a router that runs smcroute, to two receivers. Needs root; skipped without."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Cli
from engpass.netlab import kernel
from engpass.results import outcomes
from required import known

SMCROUTED = shutil.which("smcrouted", path=os.environ.get("PATH", "") + ":/usr/sbin")

pytestmark = pytest.mark.skipif(
    SMCROUTED is None or shutil.which("ip") is None or not kernel.privileged(),
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip` and `smcrouted` (Debian: `smcroute`)",
)

FILE = Path(__file__).parents[2] / "gallery/multicast/testbed.toml"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[str]:
    """A sender, a router with smcroute and an IGMP snooping bridge, two receivers; yields the name prefix."""
    prefix = f"mc{os.getpid()}"
    source, router, *members = names = [f"{prefix}-{name}" for name in ("s", "r", "h1", "h2")]
    (tmp_path / "smcroute.conf").write_text(
        "phyint sr enable\nphyint br0 enable\nmgroup from sr group 239.255.0.1\n"
        "mroute from sr group 239.255.0.1 to br0\n"
    )
    daemon = None
    try:
        for name in names:
            ip("netns", "add", name)
        ip(
            "link",
            "add",
            "name",
            "sr",
            "netns",
            source,
            "type",
            "veth",
            "peer",
            "name",
            "sr",
            "netns",
            router,
        )
        # The bridge sends two queries for the last member, 0.2 s apart.
        bridge = "mcast_snooping 1 mcast_last_member_interval 20 mcast_query_response_interval 20"
        ip("-n", router, "link", "add", "name", "br0", "type", "bridge", *bridge.split())
        for number, name in enumerate(members, 1):
            peer = ("peer", "name", f"p{number}", "netns", router)
            ip("link", "add", "name", "lan", "netns", name, "type", "veth", *peer)
            ip("-n", router, "link", "set", "dev", f"p{number}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"10.78.1.1{number}/24", "dev", "lan")
            ip("-n", name, "link", "set", "dev", "lan", "up")
            ip("-n", name, "route", "add", "default", "via", "10.78.1.1")
        for name, device, address in (
            (source, "sr", "10.78.0.2/24"),
            (router, "sr", "10.78.0.1/24"),
            (router, "br0", "10.78.1.1/24"),
        ):
            ip("-n", name, "addr", "add", address, "dev", device)
            ip("-n", name, "link", "set", "dev", device, "up")
        ip("-n", source, "route", "add", "default", "via", "10.78.0.1")
        ip("netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        assert SMCROUTED is not None
        files = ["-f", "smcroute.conf", "-P", str(tmp_path / "pid"), "-u", str(tmp_path / "socket")]
        daemon = subprocess.Popen(
            ["ip", "netns", "exec", router, SMCROUTED, "-n", *files],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        last = time.monotonic() + 20
        while not (tmp_path / "socket").exists() and time.monotonic() < last:
            time.sleep(0.05)
        # A bridge floods groups until its querier has waited for responses.
        ip("-n", router, "link", "set", "dev", "br0", "type", "bridge", "mcast_querier", "1")
        time.sleep(1.0)
        yield prefix
    finally:
        if daemon is not None:
            daemon.terminate()
            daemon.wait(timeout=20)
        for name in names:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)


def test_multicast_receivers_have_loss_join_and_leave_delays(cli: Cli, network: str) -> None:
    text = FILE.read_text().replace("netns mc-", f"netns {network}-")
    (cli.directory / "multicast.toml").write_text(text)
    said = cli("run", "multicast.toml", "--engine", "measure", "--json", "--set", "run.duration=500 ms")
    outcome = outcomes.read(said.stdout)
    receivers = outcome.flows["group"].receivers
    assert set(receivers) == {"h1", "h2"}
    for one in receivers.values():
        counts = known(one.datagrams)
        assert counts.received + counts.lost == counts.sent
        assert counts.received > 0.5 * counts.sent
        # The bridge forwards after it has received the report, and until two queries after the leave.
        assert one.join_delay_s is not None
        assert 0 <= one.join_delay_s < 1
        assert one.leave_delay_s is not None
        assert 0.2 < one.leave_delay_s < 2.4, one
    (side,) = [side for side in outcome.links["sr"].directions if side.from_ == "s"]
    assert side.ledger is not None
    assert side.ledger.accounts["delivered"] > 0
