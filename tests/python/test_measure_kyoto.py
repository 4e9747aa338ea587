"""The Kyoto experiment with real kernels, shortened: in namespaces, and over ssh. Needs root."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Cli
from engpass import child, netlab
from engpass.netlab import Lab, kernel
from engpass.results import ledger, outcomes
from engpass.types.outcome import Outcome
from keeps_up import late_ms, taken_ms

pytestmark = pytest.mark.skipif(
    not kernel.privileged() or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip` and `tc`",
)

FILE = Path(__file__).parents[2] / "gallery/kyoto-live/testbed.toml"
HOSTS = ("ss2", "ss20", "generator")


def short(text: str) -> str:
    """The testbed with two message sizes, one packet and seven fragments, and one second per point."""
    sizes = text.index('"traffic.stream.message" = [')
    end = text.index("\n", sizes)
    text = f'{text[:sizes]}"traffic.stream.message" = ["4 kB", "64 kB"]{text[end:]}'
    return text.replace('duration = "1200 ms"', 'duration = "1 s"')


Sizes = dict[tuple[str, str, float], Outcome]
"""Outcomes by engine, variant and size of message."""


def measured(cli: Cli, *args: str) -> Sizes:
    said = cli("run", "kyoto.toml", "--json", *args)
    found: Sizes = {}
    for line in said.stdout.splitlines():
        outcome = outcomes.read(line)
        (size,) = outcome.sweep.values()
        assert size.number is not None
        found[outcome.engine, outcome.variant, size.number] = outcome
    return found


def idle(outcome: Outcome, link: str, start: str) -> float:
    sides = [side for side in ledger.directions(outcome) if (side.link, side.start) == (link, start)]
    return sides[0].books.idle


def see(found: Sizes, lost_ms: float) -> None:
    def goodput(variant: str, size: float, engine: str = "measure") -> float:
        return found[engine, variant, size].flows["stream"].goodput_bit_per_s

    for variant in ("udp-free", "tcp-free"):
        for size in (4000.0, 64_000.0):
            # The bucket holds some packets beyond the rate. A busy machine may reach less. It may also reach
            # more: a receiver that opens its window late counts the datagrams that have arrived meanwhile.
            assert 0.3 * goodput(variant, size, "limit") < goodput(variant, size)
            assert goodput(variant, size) < (1.05 + lost_ms / 1e3) * goodput(variant, size, "limit")
    # While the generator stands still, the stream has the whole link.
    lost_ms = max(lost_ms, late_ms(list(found.values())))
    if lost_ms > 100:
        pytest.skip(f"the machine stood still for {lost_ms:.0f} ms: there was no congestion meanwhile")
    # The loss of any of the seven fragments loses the datagram.
    assert goodput("udp", 64_000.0) < 0.5 * goodput("udp", 4000.0)
    whole = found["measure", "udp", 64_000.0]
    books = {(side.link, side.start): side.books for side in ledger.directions(whole)}
    assert books["congested", "atomis"].share("lost datagrams") > 0.05
    assert books["sender", "ss2"].share("lost datagrams") > 0.5
    assert idle(found["measure", "udp", 4000.0], "congested", "atomis") < 0.5
    assert whole.flows["stream"].summary


def test_kyoto_is_measured_in_namespaces_beside_the_model(cli: Cli) -> None:
    (cli.directory / "kyoto.toml").write_text(short(FILE.read_text()))
    with taken_ms() as lost_ms:
        found = measured(cli, "--engine", "limit,simulate,measure")
    assert {engine for engine, *_ in found} == {"limit", "simulate", "measure"}
    cli("report", "last", "-o", "kyoto.html")
    page = (cli.directory / "kyoto.html").read_text()
    assert "From line rate to delivered payload" in page
    assert "by the ledgers of simulate and measure" in page
    see(found, *lost_ms)


@pytest.fixture
def over_ssh(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """The testbed as namespaces with an ssh server each; no server listens: `ssh ss2` starts it itself."""
    sshd = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    ssh, keygen = shutil.which("ssh"), shutil.which("ssh-keygen")
    if sshd is None or ssh is None or keygen is None:
        pytest.skip("needs `sshd`, `ssh` and `ssh-keygen`")
    home = tmp_path / "ssh"
    home.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)], check=True)
    (home / "known").write_text(f"lab {(home / 'host.pub').read_text()}")
    (home / "sshd_config").write_text(
        f"HostKey {home}/host\nAuthorizedKeysFile {home}/user.pub\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n"
    )
    cli("up", str(FILE))
    lab = netlab.find(str(FILE))
    server = f"{sshd} -i -f {home}/sshd_config"
    (home / "config").write_text(
        "".join(
            f"Host {host}\n  ProxyCommand ip netns exec {lab.members[host].namespace} {server}\n"
            for host in HOSTS
        )
        + f"Host *\n  User root\n  HostKeyAlias lab\n  IdentityFile {home}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {home}/known\n"
    )
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "ssh").write_text(f'#!/bin/sh\nexec {ssh} -F {home}/config "$@"\n')
    (tools / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    agent = os.environ.get("ENGPASS_AGENT", shlex.join(child.interpreter("engpass", "agent")))
    monkeypatch.setenv("ENGPASS_AGENT", agent)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    try:
        yield lab
    finally:
        cli("down", str(FILE))


def test_kyoto_is_measured_over_ssh(cli: Cli, over_ssh: Lab) -> None:
    text = short(FILE.read_text())
    for host in HOSTS:
        reach = f'reach = "ssh {host}"\naddress = "{over_ssh.members[host].addresses[0]}"\n'
        text = text.replace(f"[host.{host}]\n", f"[host.{host}]\n{reach}")
    (cli.directory / "kyoto.toml").write_text(text)
    with taken_ms() as lost_ms:
        found = measured(cli, "--engine", "limit,measure")
    assert {outcome.measured.carrier for outcome in found.values() if outcome.measured} == {"hosts"}
    see(found, *lost_ms)
