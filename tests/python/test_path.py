"""The steps of RFC 6349: each alone, and the whole sequence if namespaces can be created."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from conftest import Cli
from engpass.netlab import kernel
from engpass.path import Asked, ideal_bit_per_s, largest, metrics
from engpass.path.metrics import expected_bit_per_s, product_bytes
from engpass.path.mtu import patient
from engpass.path.sequence import faster_than_ideal


@pytest.mark.parametrize("size", [68, 576, 1200, 1280, 1400, 1437, 1476, 1492, 1500, 4000, 8999, 9000])
@pytest.mark.parametrize("hint", [None, 1500, 9000])
def test_path_mtu_search_is_correct_for_any_kernel_hint(size: int, hint: int | None) -> None:
    probes: list[int] = []

    def passes(probe: int) -> bool:
        probes.append(probe)
        return probe <= size

    assert largest(passes, 9000, hint) == size
    assert len(probes) == len(set(probes)) <= 18
    assert all(probe <= 9000 for probe in probes)


def test_correct_kernel_mtu_is_confirmed_by_few_probes() -> None:
    probes: list[int] = []

    def passes(probe: int) -> bool:
        probes.append(probe)
        return probe <= 1492

    assert largest(passes, 1500, 1492) == 1492
    assert probes == [1200, 1492, 1493]
    assert largest(lambda probe: probe <= 68, 1500) == 68
    assert largest(lambda _: False, 1500) is None


@pytest.mark.parametrize("lucky", [0, 1, 2, 5])
def test_path_mtu_is_found_although_a_busy_receiver_listened_longer_at_first(lucky: int) -> None:
    probes: list[tuple[int, int]] = []

    def arrives(size: int, gap: int) -> bool:
        probes.append((size, gap))
        return size <= 1400 and (gap >= 100 or len(probes) <= lucky)

    assert largest(patient(arrives, (10, 100, 600)), 9000, 1400) == 1400
    # Only the probe that is too large may take the longest gap in vain.
    assert {size for size, gap in probes if gap == 600} <= {1401}


def test_path_mtu_below_the_base_is_found_over_a_long_delay() -> None:
    assert largest(patient(lambda size, gap: size <= 600 and gap == 600, (10, 100, 600)), 1500) == 600


def test_metrics_match_the_examples_of_rfc_6349() -> None:
    # Section 4.1.2: 9 s instead of 7.5 s is a ratio of 1.2.
    found = metrics(
        seconds=9.0,
        payload=100_000_000,
        ideal=8 * 100e6 / 7.5,
        sent=100_000,
        retransmitted=2_000,
        rtt=0.032,
        baseline=0.025,
    )
    assert found.transfer_time_ratio == pytest.approx(1.2)
    # Section 4.2.1: 2,000 of 100,000 retransmitted is 98 %. Section 4.3.1: 32 ms instead of 25 ms is 28 %.
    assert found.efficiency == pytest.approx(0.98)
    assert found.buffer_delay == pytest.approx(0.28)


def test_window_below_bandwidth_delay_product_limits_the_rate() -> None:
    # Section 3.3.1: a T3 (44.21 Mbit/s) with 25 ms has a product of 138,156 bytes.
    assert product_bytes(44.21e6, 0.025) == pytest.approx(138_156, abs=1)
    ideal = ideal_bit_per_s(44.21e6, 1500, options=0)
    assert ideal == pytest.approx(44.21e6 * 1460 / 1500)
    # 64 KB in 25 ms are 20.97 Mbit/s.
    assert expected_bit_per_s(65_536, 0.025, ideal) == pytest.approx(20.97e6, rel=1e-3)
    assert expected_bit_per_s(10**9, 0.025, ideal) == ideal


def test_transfer_time_ratio_below_one_has_a_note() -> None:
    one = [0.97, 1.2]
    (note,) = faster_than_ideal(one, known=False)
    assert note.startswith("a transfer time ratio of 0.97: TCP got 3.1% more than its ideal throughput")
    assert "token bucket" in note
    (note,) = faster_than_ideal(one, known=True)
    assert note.endswith("so the path carries more than the given `--bandwidth`")
    assert faster_than_ideal([0.996], known=False) == []


def test_short_transfers_are_not_conforming() -> None:
    (told,) = Asked(seconds=30.0).departures()
    assert "instead of more than 30 s" in told
    assert "section 5)" in told
    assert Asked(seconds=31.0).departures() == []


def test_path_rejects_zero_connections(cli: Cli) -> None:
    (cli.directory / "path.toml").write_text("")
    assert "`--connections` is 0" in cli("path", "path.toml", "--connections", "0", code=2).stderr


NAMESPACES = pytest.mark.skipif(
    not kernel.privileged() or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip` and `tc`",
)


@NAMESPACES
def test_path_measures_a_route_between_namespaces(cli: Cli) -> None:
    (cli.directory / "path.toml").write_text(
        """\
name = "path"
[host.a]
[host.b]
[router.r]
[link.wide]
ends = ["a", "r"]
medium = "ethernet-100"
[link.narrow]
ends = ["r", "b"]
medium = "point-to-point"
rate = "20 Mbit/s"
mtu = "1400 B"
delay = "50 us"
[traffic.t]
kind = "tcp-stream"
from = "a"
to = "b"
message = "8 kB"
tcp = { congestion = "cubic" }
"""
    )
    said = cli("path", "path.toml", "--transfer", "500 ms", "--connections", "2", "--json")
    *steps, last = [json.loads(line) for line in said.stdout.splitlines()]
    assert [step["section"] for step in steps[:3]] == ["3.1", "3.2.1", "3.2.2"]
    result = last["result"]
    assert result["mtu_bytes"] == 1400
    assert result["rtt_s"] > 0
    # A busy machine may reach less; the shaper's bucket allows some more frames.
    assert 5e6 < result["bandwidth_bit_per_s"] < 24e6
    for transfer in result["transfers"]:
        assert transfer["finished"]
        assert transfer["transfer_time_ratio"] > 0.8
        assert 0.0 < transfer["efficiency"] <= 1.0
        assert len(transfer["efficiencies"]) == 2
        least, most = min(transfer["efficiencies"]), max(transfer["efficiencies"])
        assert least - 1e-9 <= transfer["efficiency"] <= most + 1e-9
        assert transfer["granted_bytes"] is not None
    assert [one["granted_bytes"] for one in result["transfers"]] == sorted(
        one["granted_bytes"] for one in result["transfers"]
    )
    assert result["connections"] == 2
    assert len(result["departures"]) == 1
    assert result["notes"][0].startswith("the delay of link `narrow`, 50 us, is left out")
    shown = cli("show", last["id"])
    assert "Transfer time ratio" in shown.stdout
    assert "2 connections" in shown.stdout
    assert "not conforming: transfers take 0.5 s" in shown.stdout
    cli("report", last["id"], "-o", "path.html")
    assert ", 2 connections" in (cli.directory / "path.html").read_text(encoding="utf-8")


@NAMESPACES
@pytest.mark.skipif(not os.access("/dev/net/tun", os.R_OK | os.W_OK), reason="needs /dev/net/tun")
def test_path_mtu_probes_wait_for_a_long_round_trip(cli: Cli) -> None:
    (cli.directory / "long.toml").write_text(
        """\
name = "long"
[host.a]
[host.b]
[link.sky]
ends = ["a", "b"]
medium = "point-to-point"
rate = "20 Mbit/s"
delay = "100 ms"
mtu = "1400 B"
[traffic.t]
kind = "tcp-stream"
from = "a"
to = "b"
message = "8 kB"
"""
    )
    asked = ["--engine", "emulate", "--bandwidth", "20 Mbit/s", "--transfer", "100 ms", "--json"]
    # On a busy machine the runs may be invalid because of lateness; the results are still checked.
    said = cli("path", "long.toml", *asked, code=None)
    *_, last = [json.loads(line) for line in said.stdout.splitlines()]
    assert last["result"]["mtu_bytes"] == 1400
    assert last["result"]["rtt_s"] > 0.2


@NAMESPACES
@pytest.mark.skipif(not os.access("/dev/net/tun", os.R_OK | os.W_OK), reason="needs /dev/net/tun")
def test_path_in_slow_motion_gives_results_in_the_time_of_the_network(cli: Cli) -> None:
    (cli.directory / "fast.toml").write_text(
        """\
name = "fast"
[host.a]
[host.b]
[link.l]
ends = ["a", "b"]
medium = "point-to-point"
rate = "100 Mbit/s"
delay = "5 ms"
mtu = "1400 B"
[traffic.t]
kind = "tcp-stream"
from = "a"
to = "b"
message = "8 kB"
"""
    )
    asked = ["--engine", "emulate", "--slow", "2", "--transfer", "500 ms", "--json"]
    said = cli("path", "fast.toml", *asked, code=None)
    *_, last = [json.loads(line) for line in said.stdout.splitlines()]
    result = last["result"]
    # Two propagation delays, and the transmission of a packet of 1400 B and of a short response.
    assert 0.01 < result["rtt_s"] < 0.012
    assert result["bandwidth_bit_per_s"] == pytest.approx(100e6, rel=0.05)
    # The last window is the whole product of bandwidth and delay.
    assert 0.5 * 100e6 < result["transfers"][-1]["achieved_bit_per_s"] < 100e6
    assert "slow" in cli("show", last["id"], "--json").stdout


def test_slow_motion_is_refused_without_an_emulated_network(cli: Cli, testbed_file: Path) -> None:
    for command, engine in (("path", "measure"), ("search", "measure"), ("search", "simulate")):
        said = cli(command, testbed_file.name, "--engine", engine, "--slow", "2", code=2).stderr
        assert f"`--slow` has no effect on `{engine}`" in said
        assert "add `--engine emulate`" in said
        assert "`--slow` is `2.5`" in cli(command, testbed_file.name, "--slow", "2.5", code=2).stderr
