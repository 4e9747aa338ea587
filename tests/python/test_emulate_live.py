"""Emulated testbeds with the real driver: real programs across the model. Needs root and `/dev/net/tun`.

The machine of a test may be slow: what is asserted is what the model decides, not how late it came.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Program
from engpass import _engpass
from engpass.netlab import emulated
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
