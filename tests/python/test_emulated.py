"""Life cycle of emulated testbeds, with a driver without a model: create, use, watch, remove, no leftovers.

Needs root and `/dev/net/tun`; skipped without.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Cli, Program
from engpass import child, netlab
from engpass.emulation import Options
from engpass.netlab import emulated, kernel, registry
from isolation import own_processes
from test_netlab import more, seen, settle

pytestmark = pytest.mark.skipif(
    not kernel.privileged() or shutil.which("tc") is None or not os.access("/dev/net/tun", os.W_OK),
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip`, `tc` and `/dev/net/tun`",
)

FAKE = f"{sys.executable} {Path(__file__).parent / 'fake_driver.py'}"

FAR = """\
name = "far"
[host.a]
[host.b]
[link.line]
ends = ["a", "b"]
medium = "point-to-point"
rate = "10 Mbit/s"
delay = "20 ms"
[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "1 Mbit/s"
[run]
duration = "400 ms"
warmup = "100 ms"
"""


def drivers() -> set[int]:
    """Process ids of the drivers that these tests have started."""
    found = set()
    for process in own_processes():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.endswith(b"fake_driver.py") or word == b"engpass.netlab.driver" for word in words):
            found.add(int(process.name))
    return found


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that a test leaves no namespaces, devices, processes or files behind."""
    monkeypatch.setenv(emulated.DRIVER, FAKE)
    monkeypatch.delenv("FAKE_DRIVER", raising=False)
    before = (*seen(), drivers())
    kept = {path.name for path in registry.directory().iterdir()} | {"lock"}
    yield
    last = time.monotonic() + 20
    while (left := more((*seen(), drivers()), before)) and time.monotonic() < last:
        time.sleep(0.05)
    assert not left
    assert {path.name for path in registry.directory().iterdir()} <= kept


@pytest.fixture
def far(tmp_path: Path) -> Path:
    path = tmp_path / "far.toml"
    path.write_text(FAR)
    return path


def test_up_emulates_what_the_kernel_cannot_carry(cli: Cli, program: Program, far: Path) -> None:
    up = cli("up", "far.toml")
    try:
        assert up.stdout == ("a: 10.64.0.1, fd65:6e67:7061:7373::1\nb: 10.64.0.2, fd65:6e67:7061:7373::2\n")
        there = json.loads(cli("ps", "--json").stdout.splitlines()[-1])
        assert (there["engine"], there["state"], there["slow"]) == ("emulate", "up", 1)
        assert there["driver"] in drivers()
        route = program("exec", "far.toml", "a", "--", "ip", "route").stdout
        assert " ".join(route.split()) == "10.64.0.2 dev tun0 scope link mtu lock 1500"
        assert (
            program("exec", "far.toml", "a", "--", "sh", "-c", "echo $ENGPASS_ADDRESS_B").stdout
            == "10.64.0.2\n"
        )
        (far.parent / "text").write_text("no program")
        for missing, code in (("./nothing", 127), ("no-such-program", 127), ("./text", 126)):
            assert missing in program("exec", "far.toml", "a", "--", missing, code=code).stderr
        ping = program("exec", "far.toml", "a", "--", sys.executable, "-c", ECHO)
        assert ping.stdout == "10.64.0.2 fd65:6e67:7061:7373::2\n"
    finally:
        cli("down", "far.toml")


# Echoes a datagram by IPv4 and by IPv6.
ECHO = """
import socket
def there_and_back(family, here, there):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.bind((here, 0)); s.settimeout(5); s.connect((there, 9)); s.send(b"x")
        try:
            s.recv(9)
        except ConnectionRefusedError:
            return there  # the port is closed: its host says so
there = [there_and_back(socket.AF_INET, "10.64.0.1", "10.64.0.2"),
    there_and_back(socket.AF_INET6, "fd65:6e67:7061:7373::1", "fd65:6e67:7061:7373::2")]
print(*there)
"""


def test_sender_waits_at_its_own_host_without_loss(cli: Cli, program: Program, far: Path) -> None:
    """A full TUN device drops packets; the queueing discipline before it makes the socket wait instead."""
    cli("up", "far.toml", "--engine", "emulate")
    try:
        program("exec", "far.toml", "a", "--", sys.executable, "-c", BLAST)
        said = program("exec", "far.toml", "a", "--", "ip", "-j", "-s", "link", "show", "tun0").stdout
        device = json.loads(said)[0]
        assert device["stats64"]["tx"]["dropped"] == 0
        assert device["stats64"]["tx"]["packets"] > 100
    finally:
        cli("down", "far.toml")


BLAST = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.setblocking(False)
    sent, end = 0, time.monotonic() + 0.5
    while time.monotonic() < end:
        try:
            s.sendto(bytes(1000), ("10.64.0.2", 9))
            sent += 1
        except (BlockingIOError, ConnectionRefusedError):
            time.sleep(0.001)
# 10 Mbit/s for half a second, the tokens of the bucket, and the packets that wait in the socket.
assert sent < 1200, sent
"""


def test_watch_shows_links_and_lateness(cli: Cli, far: Path) -> None:
    cli("up", "far.toml", "--slow", "4")
    try:
        said = json.loads(cli("watch", "far.toml", "--once", "--json", "--interval", "0.05").stdout)
        (link,) = said["links"]
        assert (said["slow"], link["link"], link["from"], link["to"]) == (4, "line", "a", "b")
        assert (link["bit_per_s"], link["queue"], link["lost"], link["lost_now"]) == (0, 3, 2, 0)
        shown = cli("watch", "far.toml", "--once", "--interval", "0.05").stdout
        assert "a -> b" in shown
        assert "4 times slower" in shown
        assert "99.9 % within 30 us" in shown
        below = shown.rstrip().rpartition("┘")[2].strip().splitlines()
        assert below[1:] == [
            "lost on the path b to a: 1,234 packets",
            "lost on the path a to b: 1 packets",
            "packets of host `a` not carried: 2 (unknown), 5 (device queue full)",
            (
                "7 reads and writes of the device of host `a` failed, last error: Input/output error (os"
                " error 5)"
            ),
        ]
    finally:
        cli("down", "far.toml")


def test_watch_into_a_pipe_prints_successive_snapshots(cli: Cli, program: Program, far: Path) -> None:
    cli("up", "far.toml")
    try:
        with program.start("watch", "far.toml", "--interval", "0.05") as looks:
            assert looks.stdout is not None
            shown = 0
            for line in looks.stdout:
                look = b"a -> b" in line
                shown += look
                # Send one signal: a second one would arrive while the first is handled.
                if look and shown == 2:
                    looks.send_signal(signal.SIGINT)
            assert looks.wait(30) == 130
        assert shown >= 2
    finally:
        cli("down", "far.toml")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("refuse", "the network cannot be emulated: the model has no such thing\nhelp: ask for less"),
        ("mute", "the driver is not ready after 1 s"),
    ],
)
def test_driver_that_is_not_ready_is_an_error(
    cli: Cli, far: Path, monkeypatch: pytest.MonkeyPatch, how: str, said: str
) -> None:
    monkeypatch.setenv("FAKE_DRIVER", how)
    monkeypatch.setattr(emulated, "READY_SECONDS", 1.0)
    assert said in cli("up", "far.toml", code=2).stderr


def test_driver_that_cannot_be_run_is_an_error(cli: Cli, far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(emulated.DRIVER, "/nowhere/driver")
    assert "`/nowhere/driver` cannot be run" in cli("up", "far.toml", code=2).stderr


def test_testbeds_with_equal_host_names_are_isolated(
    cli: Cli, program: Program, far: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.toml").write_text(FAR)
    try:
        others = drivers()
        cli("up", "far.toml")
        cli("up", "other.toml")
        assert len(drivers() - others) == 2
        cli("down", "far.toml")
        assert program("exec", "other.toml", "a", "--", sys.executable, "-c", ECHO).stdout
    finally:
        cli("down", "other.toml")


def end_driver(lab: netlab.Lab, number: signal.Signals = signal.SIGKILL) -> None:
    assert lab.driver is not None
    os.kill(lab.driver, number)
    last = time.monotonic() + 20
    while lab.has_driver() and time.monotonic() < last:
        time.sleep(0.01)


def test_clean_removes_the_remains_of_a_killed_driver(cli: Cli, far: Path) -> None:
    cli("up", "far.toml", "--capture", "link.line=c.pcapng")
    lab = netlab.find(str(far))
    end_driver(lab)
    assert "left behind" in cli("ps").stdout
    said = cli("exec", "far.toml", "a", "--", "true", code=2).stderr
    assert "so has its network\nhelp: `engpass down far.toml` removes its remains" in said
    said = cli("clean").stderr
    assert (
        f"error: the capture `{far.parent / 'c.pcapng'}` ended early:"
        " its driver ended without an error message" in said
    )
    assert f"removed testbed {lab.id}" in said
    assert "there is nothing to remove" in cli("clean").stderr


@pytest.mark.parametrize("how", ["killed", "told", "failed"])
def test_down_removes_the_remains_of_an_ended_driver(cli: Cli, far: Path, how: str) -> None:
    cli("up", "far.toml", "--capture", "link.line=c.pcapng", "--log", "a.log")
    lab = netlab.find(str(far))
    end_driver(lab)
    path, code = str(far.parent / "c.pcapng"), 1
    if how == "told":
        captured = [{"path": path, "packets": 12, "bytes": 900, "bad_pdus": 0, "limited": False}]
        lab.ended.write_text(json.dumps({"captured": captured, "log": {"path": "a.log"}}))
        code = 0
    elif how == "failed":
        lab.said.write_text("Traceback\n  in main\nMemoryError: no more\n")
    said = cli("down", lab.id if how == "failed" else "far.toml", code=code).stderr
    name = lab.id if how == "failed" else "far.toml"
    why = {
        "killed": "it was probably killed: there is no error message",
        "told": "a signal stopped it",
        "failed": "its message: MemoryError: no more",
    }[how]
    assert f"the driver of `{name}` had ended: {why}\n" in said
    assert (f"captured 12 to `{path}`\n" in said) == (how == "told")
    assert (f"the capture `{path}` ended early" in said) == (how != "told")
    assert (f"the log `{far.parent / 'a.log'}` ended early" in said) == (how != "told")
    assert f"{lab.id} is down: 2 namespaces removed" in said
    assert "is not up" in cli("down", "far.toml", code=2).stderr


def test_clean_reports_the_captured_packets(cli: Cli, far: Path) -> None:
    cli("up", "far.toml", "--capture", "link.line=c.pcapng")
    lab = netlab.find(str(far))
    end_driver(lab)
    told = {"path": str(far.parent / "c.pcapng"), "packets": 3, "bytes": 9, "bad_pdus": 0, "limited": False}
    lab.ended.write_text(json.dumps({"captured": [told], "log": None}))
    said = json.loads(cli("clean", "--json").stdout)
    assert said["removed"] == [f"testbed {lab.id} of `{lab.file}`"]
    assert (said["captured"], said["broken_logs"]) == ([told], [])


def test_up_interrupted_by_a_signal_can_be_cleaned(cli: Cli, program: Program, far: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        before = drivers()
        making = program.start("up", "far.toml", FAKE_DRIVER="mute")
        last = time.monotonic() + 20
        # Wait for the driver process of this round; one of the round before may still be ending.
        while not drivers() - before and making.poll() is None and time.monotonic() < last:
            time.sleep(0.005)
        making.send_signal(number)
        if number == signal.SIGHUP:
            # A closed terminal causes two SIGHUPs: from its shell and from the kernel.
            time.sleep(0.02)
            making.send_signal(number)
        making.communicate(timeout=20)
        if number == signal.SIGKILL:
            settle()
            assert "removed testbed" in cli("clean").stderr
        else:
            assert making.returncode == 130


COLLIDING = """\
[host."srv-1"]
[host.srv_1]
[host."SRV 1"]
[host."-x"]
[switch.s]
kind = "ethernet"
""" + "".join(
    f'[link.l{number}]\nends = ["{name}", "s"]\nmedium = "ethernet-100"\n'
    for number, name in enumerate(("srv-1", "srv_1", "SRV 1", "-x"))
)


@pytest.mark.parametrize("engine", ["measure", "emulate"])
def test_hosts_that_would_share_an_address_variable_get_none(cli: Cli, program: Program, engine: str) -> None:
    (cli.directory / "my lab.toml").write_text(COLLIDING)
    said = cli("up", "my lab.toml", "--engine", engine).stderr
    try:
        assert (
            "warning: `srv-1`, `srv_1`, `SRV 1` would share the variable `ENGPASS_ADDRESS_SRV_1`: it is"
            " not set\nhelp: rename all but one of them; `engpass ps` has the addresses"
        ) in said
        assert "`engpass exec 'my lab.toml' srv-1 -- COMMAND` runs" in said
        shown = program("exec", "my lab.toml", "srv-1", "--", "env").stdout
        assert "ENGPASS_ADDRESS_SRV_1" not in shown
        assert "ENGPASS_ADDRESS__X=10.64.0.4\n" in shown
        for words in (("true",), ("--", "true")):
            program("exec", "my lab.toml", "--", "-x", *words)
    finally:
        cli("down", "my lab.toml")


def test_host_name_like_an_option_follows_a_double_dash(cli: Cli) -> None:
    (cli.directory / "x.toml").write_text(FAR.replace("host.a", 'host."-a"').replace('"a"', '"-a"'))
    assert "`engpass exec x.toml -- -a COMMAND` runs" in cli("up", "x.toml").stderr
    cli("down", "x.toml")


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--limit", "5"), "`--limit` is `5`\nhelp: write how late packets may be, as a time with its unit"),
        (
            ("--limit", "-1 ms"),
            "`--limit` is `-1 ms`\nhelp: write how late packets may be, as a time with its unit",
        ),
        (
            ("--limit", "5 kB"),
            "`--limit` is `5 kB`\nhelp: write how late packets may be, as a time with its unit",
        ),
        (("--limit", "0 ms"), "`--limit` is `0 ms`\nhelp: give 1 ns to 10000 min"),
        (("--limit", "10001 min"), "`--limit` is `10001 min`\nhelp: give 1 ns to 10000 min"),
        (("--slow", "0.5"), "`--slow` is `0.5`\nhelp: give a whole number from 1 to 1000000000"),
        (("--slow", "0"), "`--slow` is `0`\nhelp: give a whole number from 1 to 1000000000"),
        (("--slow", "1000000000000"), "`--slow` is `1000000000000`\nhelp: give a whole number from 1"),
    ],
)
def test_out_of_range_options_are_rejected_before_the_start(
    cli: Cli, arguments: tuple[str, str], told: str
) -> None:
    for command in (("up", "far.toml"), ("run", "far.toml", "--engine", "emulate")):
        assert told in cli(*command, *arguments, code=2).stderr
    assert not (cli.directory / "engpass.db").exists()


@pytest.mark.usefixtures("far")
def test_max_lateness_accepts_all_time_units(cli: Cli) -> None:
    for limit in ("1 ns", "5 µs", "5 \u03bcs", "1_000 us", "1.5 ms", "2 s", "10000 min"):
        Options(limit=limit).check()


def test_missing_namespace_of_a_host_is_an_error(cli: Cli, far: Path) -> None:
    cli("up", "far.toml")
    lab = netlab.find(str(far))
    try:
        lab.kernel.batch("ip", None, [f"netns delete {lab.members['a'].namespace}"])
        for command in (("exec", "far.toml", "a", "--", "true"), ("shell", "far.toml", "a")):
            said = cli(*command, code=2).stderr
            assert said == (
                "error: the namespace of `a` is gone:"
                f" another program removed `{lab.members['a'].namespace}`\n"
                f"help: `engpass down {lab.id}` removes the rest, `engpass up {far}` creates it again\n"
            )
    finally:
        cli("down", "far.toml")


def test_up_rejects_a_testbed_without_links(cli: Cli) -> None:
    (cli.directory / "one.toml").write_text("[host.a]\n")
    said = cli("up", "one.toml", "--engine", "emulate", code=2).stderr
    assert "there is nothing to emulate: this testbed has no links\nhelp: connect its hosts by a link" in said


def test_exec_rejects_standard_input_as_testbed(cli: Cli) -> None:
    said = cli("exec", "-", "a", "--", "true", code=2).stderr
    assert (
        "standard input cannot name a testbed that is up\n"
        "help: give the file of the testbed, or the id that `engpass ps` shows" in said
    )


def test_up_without_a_shell_in_path_is_an_error(cli: Cli, far: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = child.find
    monkeypatch.setattr("engpass.child.find", lambda tool: None if tool == "sh" else find(tool))
    said = cli("up", "far.toml", code=2).stderr
    assert "`sh` is not in PATH\nhelp: add its directory to PATH" in said


def test_hosts_have_no_ipv6_if_an_mtu_is_below_1280(cli: Cli, program: Program, far: Path) -> None:
    far.write_text(FAR.replace("[traffic", 'mtu = "1279 B"\n[traffic'))
    assert cli("up", "far.toml").stdout == "a: 10.64.0.1\nb: 10.64.0.2\n"
    try:
        assert "fd65" not in cli("ps").stdout
        addresses = program("exec", "far.toml", "a", "--", "ip", "address").stdout
        assert "10.64.0.1" in addresses
        assert "fd65" not in addresses
    finally:
        cli("down", "far.toml")


@pytest.mark.usefixtures("far")
def test_kernel_testbed_accepts_a_link_below_the_ipv6_mtu(cli: Cli) -> None:
    (cli.directory / "small.toml").write_text(COLLIDING.replace('100"', '100"\nmtu = "600 B"'))
    cli("up", "small.toml", "--engine", "measure")
    cli("down", "small.toml")


def test_model_options_need_the_emulate_engine(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "near.toml").write_text(FAR.replace('delay = "20 ms"\n', ""))
    said = cli("up", "near.toml", "--engine", "measure", "--slow", "2", code=2).stderr
    assert "has no emulated network" in said
    assert "unknown clock `quartz`" in cli("up", "near.toml", "--clock", "quartz", code=2).stderr
    # The kernel could carry the testbed, but only the model has time dilation.
    cli("up", "near.toml", "--slow", "2")
    try:
        assert json.loads(cli("ps", "--json").stdout.splitlines()[-1])["engine"] == "emulate"
    finally:
        cli("down", "near.toml")
