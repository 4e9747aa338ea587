"""Emulated testbeds with the real driver: real programs across the model. Needs root and `/dev/net/tun`.

The machine of a test may be slow: what is asserted is what the model decides, not how late it came.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Program
from engpass import _engpass, netlab
from engpass.netlab import emulated
from test_capture import packets
from test_emulated import nothing_is_left  # noqa: F401 (used by pytest)
from test_emulated import pytestmark as needs_tun

pytestmark = [
    needs_tun,
    pytest.mark.skipif(not hasattr(_engpass, "emulate"), reason="the native module has no driver"),
]

ATM = """\
name = "atm"
[host.near]
[host.far]
[host.generator]
[switch.s]
kind = "atm"
output_buffer = "400 cells"
schedule = "priority"
[link.in]
ends = ["near", "s"]
medium = "oc-3c"
[link.out]
ends = ["s", "far"]
medium = "oc-3c"
delay = "5 ms"
[link.noise]
ends = ["generator", "s"]
medium = "oc-3c"
[circuit.data]
from = "near"
to = "far"
[traffic.stream]
kind = "udp-stream"
from = "near"
to = "far"
message = "9 kB"
[traffic.interference]
kind = "cbr"
from = "generator"
to = "far"
rate = "130 Mbit/s line"
[run]
duration = "1200 ms"
warmup = "200 ms"
repeats = 1
[variant.shaped]
"circuit.data.shaping" = "16 %"
[variant.overrun]
"""


@pytest.fixture(autouse=True)
def real(nothing_is_left: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811 (the fixture)
    monkeypatch.delenv(emulated.DRIVER, raising=False)


@pytest.fixture
def atm(tmp_path: Path) -> Path:
    path = tmp_path / "atm.toml"
    path.write_text(ATM)
    return path


# A datagram there, its echo back; prints the milliseconds.
PING = """
import socket, sys, time
here, there = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as a:
    a.bind((here, 0)); a.settimeout(10); a.connect((there, 7)); begin = time.monotonic()
    a.send(b"x" * 100)
    try:
        a.recv(200)
    except ConnectionRefusedError:
        print((time.monotonic() - begin) * 1e3)
"""


@pytest.mark.usefixtures("atm")
def test_a_round_trip_takes_what_the_model_says_and_more(cli: Cli, program: Program) -> None:
    cli("up", "atm.toml", "--log", "atm.log")
    try:
        said = program("exec", "atm.toml", "near", "--", sys.executable, "-c", PING, "10.64.0.1", "10.64.0.2")
        assert 10.0 < float(said.stdout) < 500.0
        status = json.loads(cli("watch", "atm.toml", "--once", "--json", "--interval", "0.2").stdout)
        hosts = {host["name"]: host for host in status["hosts"]}
        # The datagram, and the answer that nobody listens.
        assert hosts["near"]["sent_packets"] == hosts["far"]["received_packets"] == 1
        assert hosts["far"]["sent_packets"] == hosts["near"]["received_packets"] == 1
        assert status["lateness"]["packets"] == 2
    finally:
        cli("down", "atm.toml")
    replayed = cli("replay", "atm.log").stdout
    assert re.fullmatch(r"2 inputs, 2 outputs: identical\n", replayed)


def points(cli: Cli, *args: str) -> dict[str, dict[str, Any]]:
    said = cli("run", "atm.toml", "--json", "--fresh", "--limit", "1 s", *args)
    found = [json.loads(line) for line in said.stdout.splitlines()]
    return {f"{one['engine']} {one['variant']}": one for one in found}


@pytest.mark.usefixtures("atm")
def test_a_shaper_just_below_what_is_left_saves_all_and_without_it_nothing_comes(cli: Cli) -> None:
    found = points(cli, "--engine", "simulate,emulate")
    # A sender that has no CPU for some milliseconds leaves room in the full queue. That only lets more in:
    # the least of three is what the network does.
    overruns = [found["emulate overrun"]]
    while overruns[-1]["flows"]["stream"]["received_datagrams"] > 2 and len(overruns) < 3:
        overruns += points(cli, "--engine", "emulate", "--variant", "overrun").values()
    found["emulate overrun"] = min(overruns, key=lambda one: one["flows"]["stream"]["received_datagrams"])
    for variant in ("shaped", "overrun"):
        simulated, real = (
            found[f"{engine} {variant}"]["flows"]["stream"] for engine in ("simulate", "emulate")
        )
        wanted = simulated["goodput_bit_per_s"]
        # A datagram more or less at the edges of a second, and a busy machine.
        assert real["goodput_bit_per_s"] == pytest.approx(wanted, rel=0.1, abs=200_000)
    shaped, overrun = (found[f"emulate {variant}"] for variant in ("shaped", "overrun"))
    assert shaped["flows"]["stream"]["lost_datagrams"] == 0
    assert overrun["flows"]["stream"]["received_datagrams"] <= 2
    assert any(drop["flow"] == "stream" and drop["cells"] > 1000 for drop in overrun["drops"])
    # The books of the model, of the measured second.
    assert shaped["links"]["out"]["ledger"]["other: interference"] > 0
    assert shaped["flows"]["interference"]["kind"] == "cbr"
    assert shaped["valid"]


@pytest.mark.usefixtures("atm")
def test_slow_motion_gives_the_same(cli: Cli) -> None:
    found = points(cli, "--engine", "simulate,emulate", "--variant", "shaped", "--slow", "3")
    rates = [one["flows"]["stream"]["goodput_bit_per_s"] for one in found.values()]
    assert rates[1] == pytest.approx(rates[0], rel=0.1)


SHAPED = ("run", "atm.toml", "--engine", "emulate", "--variant", "shaped", "--fresh", "--limit", "1 s")


@pytest.mark.usefixtures("atm")
@pytest.mark.parametrize(
    "how", [(), ("--wire-true",), ("--slow", "2", "--clock", "hybrid")], ids=["super", "wire-true", "slow"]
)
def test_a_capture_of_real_packets_is_told_as_it_is(cli: Cli, how: tuple[str, ...]) -> None:
    said = cli(*SHAPED, *how, "--json", "--capture", "link.out.s=out.pcapng", "--capture-as", "ip").stderr
    (told,) = re.findall(r"captured ([\d,]+) to `out.pcapng`\n", said)
    written = packets(cli.directory / "out.pcapng")
    # A second at 16 % of 149.76 Mbit/s in datagrams of 9 kB; and what the agents tell each other.
    assert written == int(told.replace(",", "")) > 200


@pytest.mark.usefixtures("atm")
def test_a_capture_that_reached_its_limit_says_so(cli: Cli) -> None:
    said = cli(*SHAPED, "--capture", "link.in=in.pcapng", "--capture-limit", "7 packets").stderr
    assert "captured 7 to `in.pcapng`, and no more: the limit was reached\n" in said
    assert packets(cli.directory / "in.pcapng") == 7


@pytest.mark.usefixtures("atm")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_ends_the_capture_and_not_the_network(cli: Cli) -> None:
    ended = cli(*SHAPED, "--json", "--capture", "link.out=/dev/full", code=1)
    assert "error: the capture `/dev/full` broke off: " in ended.stderr
    assert "No space left on device" in ended.stderr
    assert "`--capture-limit` bounds a capture" in ended.stderr
    point = json.loads(ended.stdout)
    assert point["flows"]["stream"]["received_datagrams"] > 100


@pytest.mark.usefixtures("atm")
def test_what_a_testbed_captured_is_told_when_it_goes_down(cli: Cli, program: Program) -> None:
    cli("up", "atm.toml", "--capture", "link.in.near=near.pcapng", "--capture-as", "ip")
    program("exec", "atm.toml", "near", "--", sys.executable, "-c", PING, "10.64.0.1", "10.64.0.2")
    said = cli("down", "atm.toml").stderr
    assert f"captured 1 to `{cli.directory / 'near.pcapng'}`\n" in said
    assert packets(cli.directory / "near.pcapng") == 1


@pytest.mark.usefixtures("atm")
def test_nobody_knows_what_a_driver_captured_that_was_killed(cli: Cli) -> None:
    cli("up", "atm.toml", "--capture", "link.in=in.pcapng")
    (lab,) = [lab for lab in netlab.labs() if lab.file.startswith(str(cli.directory))]
    assert lab.driver is not None
    os.kill(lab.driver, signal.SIGKILL)
    (told,) = netlab.down(lab)
    assert told == {"path": str(cli.directory / "in.pcapng"), "error": "its driver ended without a word"}
