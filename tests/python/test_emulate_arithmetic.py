"""The arithmetic of emulation: time dilation, pacing of senders, paths, texts about lateness."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from engpass.cli.replay import Difference, Output, Replayed, difference, said
from engpass.cli.watch import Status, WatchedLink, rates
from engpass.emulation import Options
from engpass.error import EngpassError
from engpass.measure.window import Closed
from engpass.netlab.egress_shaping import held
from engpass.netlab.emulated import cannot, check_tap
from engpass.netlab.kernel import LabError
from engpass.netlab.layout import routers, stations
from engpass.plan import point_plan
from engpass.results.run_notes import Remarks
from engpass.testbed import loads
from engpass.types.outcome import (
    VERSION,
    Engine,
    MeasuredPoint,
    Outcome,
)
from engpass.types.plan import PointPlan
from required import known

ATM = """\
[host.a]
[host.b]
[host.c]
[switch.s]
kind = "atm"
[link.la]
ends = ["a", "s"]
medium = "oc-3c"
[link.lb]
ends = ["b", "s"]
medium = "oc-3c"
[link.lc]
ends = ["c", "s"]
medium = "oc-3c"
[circuit.fast]
from = "a"
to = "b"
[circuit.slow]
from = "a"
to = "c"
shaping = "16 %"
[traffic.paced]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "1 Mbit/s"
start = "30 ms"
[traffic.cells]
kind = "cbr"
from = "c"
to = "b"
rate = "10 Mbit/s line"
[run]
duration = "200 ms"
warmup = "100 ms"
"""


TWO_MTUS = """
[host.a]
[host.b]
[router.r]
[link.in]
ends = ["a", "r"]
medium = "ethernet-100"
[link.out]
ends = ["r", "b"]
medium = "ethernet-100"
mtu = "1400 B"
[traffic.there]
kind = "udp-stream"
from = "a"
to = "b"
message = "1472 B"
rate = "1 Mbit/s"
[traffic.back]
kind = "udp-stream"
from = "b"
to = "a"
message = "1472 B"
rate = "1 Mbit/s"
"""


def numbers(change: Mapping[str, str] | None = None) -> PointPlan:
    return point_plan(loads(ATM, change).campaign, "base", [])


def test_paths_follow_the_circuits_in_both_directions() -> None:
    ways = {(way.from_, way.to): way for way in numbers().ways}
    assert set(ways) == {("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")}
    assert {way.mtu_bytes for way in ways.values()} == {9180}
    # 149.76 Mbit/s of cells on an OC-3c. The shaper allows 16 % of its cells, in one direction only.
    rates = {ends: known(way.circuit).rate_bit_per_s for ends, way in ways.items()}
    assert rates["a", "b"] == rates["b", "a"] == rates["c", "a"] == 149_760_000
    assert rates["a", "c"] == pytest.approx(0.16 * 149_760_000, abs=1)
    # LLC/SNAP header and AAL5 trailer.
    assert known(ways["a", "b"].circuit).overhead_bytes == 16


def test_circuits_of_different_rates_get_separate_htb_classes() -> None:
    found = numbers()
    plan = stations(found)
    lines = held(found, plan["a"], plan, 9180, 1, whole=True)
    assert lines[0].endswith("overhead 16 linklayer atm htb default 1")
    assert "classid 1:1 htb rate 149760000bit" in lines[1]
    assert "classid 1:2 htb rate 23961600bit" in lines[3]
    assert any("match ip dst 10.64.0.3/32 flowid 1:2" in line for line in lines)
    (one,) = held(found, plan["b"], plan, 9180, 10, whole=True)
    assert "linklayer atm tbf rate 14976000bit" in one, "ten times slower"


def test_host_rate_is_that_of_its_fastest_nic() -> None:
    text = """
    [host.a]
    [host.b]
    [link.slow]
    ends = ["a", "b"]
    medium = "ethernet-10"
    [link.fast]
    ends = ["a", "b"]
    medium = "ethernet-1g"
    [traffic.t]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1 kB"
    """
    found = point_plan(loads(text).campaign, "base", [])
    plan = stations(found)
    (line,) = held(found, plan["a"], plan, 1500, 1, whole=False)
    # 14 B of header, 24 B of preamble, FCS and gap; the burst holds two GSO packets.
    assert "mpu 84 overhead 38 linklayer ethernet tbf rate 1000000000bit burst 132000" in line


def test_bond_rate_combines_its_members_by_mode() -> None:
    text = """
    [host.a]
    [host.b]
    [link.slow]
    ends = ["a", "b"]
    medium = "ethernet-10"
    [link.fast]
    ends = ["a", "b"]
    medium = "ethernet-1g"
    [bond.a]
    node = "a"
    links = ["slow", "fast"]
    mode = "{mode}"
    [bond.b]
    node = "b"
    links = ["slow", "fast"]
    mode = "{mode}"
    [traffic.t]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1 kB"
    """
    for mode, rate in (("hash", 1_010_000_000), ("round-robin", 20_000_000), ("active-backup", 10**9)):
        found = point_plan(loads(text.replace("{mode}", mode)).campaign, "base", [])
        plan = stations(found)
        (line,) = held(found, plan["a"], plan, 1500, 1, whole=False)
        assert f"tbf rate {rate}bit " in line


LAN = """
[host.a]
[host.b]
[router.r]
[link.near]
ends = ["a", "r"]
medium = "ethernet-1g"
[link.far]
ends = ["r", "b"]
medium = "point-to-point"
rate = "10 Mbit/s"
[traffic.t]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
"""


def test_tap_devices_count_their_header_and_need_ethernet() -> None:
    found = point_plan(loads(LAN).campaign, "base", [])
    plan = stations(found)
    (line,) = held(found, plan["a"], plan, 1500, 1, whole=False, tap=True)
    # As on a TUN device, minus the 14 B that the kernel counts.
    assert "dev tap0" in line
    assert "mpu 84 overhead 24 linklayer ethernet tbf rate 1000000000bit" in line
    with pytest.raises(LabError, match="host `b` has no Ethernet device: its link `far`"):
        check_tap(found)
    whole = LAN.replace("point-to-point", "ethernet-1g").replace('rate = "10 Mbit/s"', "")
    check_tap(point_plan(loads(whole).campaign, "base", []))
    assert routers(found) == {"r": ("10.64.0.3", "fd65:6e67:7061:7373::3")}
    assert Options(tap=True).to_json() != Options().to_json()


def noted(engine: Engine, *notes: str) -> Outcome:
    """A point that has only notes."""
    measured = MeasuredPoint(at="", took_s=1.0, carrier="model", notes=list(notes))
    return Outcome(
        version=VERSION,
        variant="base",
        engine=engine,
        repeat=0,
        seed=1,
        sweep={},
        flows={},
        links={},
        measured=measured,
    )


def test_notes_of_points_are_printed_once() -> None:
    remarks = Remarks()
    for outcome in (
        noted("emulate", "it is slow", "it is odd"),
        noted("emulate", "it is slow"),
        replace(noted("limit"), measured=None),
    ):
        remarks.add(outcome)
    assert remarks.lines() == ["emulate: it is slow", "emulate at 1 of 2 points: it is odd"]
    for number in range(20):
        remarks.add(noted("measure", f"note {number}"))
    assert len(remarks.lines()) == 9
    assert remarks.lines()[-1].startswith("14 more notes")


def test_machine_without_tun_names_the_missing_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    from engpass.netlab import emulated

    monkeypatch.setattr(emulated, "_TUN", Path("/nowhere/tun"))
    assert cannot(numbers()) == ["this machine has no `/nowhere/tun`: load or build the kernel's `tun`"]


def test_invalid_driver_options_are_rejected() -> None:
    for wrong in (Options(clock="quartz"), Options(slow=0)):
        with pytest.raises(EngpassError):
            wrong.check()


def test_watched_rates_are_in_virtual_time() -> None:
    def status(at: int, bits: int, lost: int) -> Status:
        link = WatchedLink(link="l", from_="a", to="b", rate_bit_per_s=1000, bits=bits, lost=lost)
        return Status(at_ps=at, links=[link])

    (link,) = rates(status(10**12, 100, 1), status(3 * 10**12, 1100, 4))
    assert (link.bit_per_s, link.utilisation, link.lost_now) == (500.0, 0.5, 3)
    (link,) = rates(status(10**12, 100, 1), status(10**12, 100, 1))
    assert link.bit_per_s == 0.0


def test_replay_reports_the_first_difference() -> None:
    output = Output(at_ps=1_500_000, way="a to b", token=7, fate="delivered")
    found = Replayed(
        identical=False,
        whole=False,
        inputs=10,
        outputs=3,
        changed_payloads=0,
        difference=Difference(output=3, logged=output, replayed=None),
    )
    assert said(found) == "10 inputs, 3 outputs: not identical"
    assert said(replace(found, identical=True, difference=None)) == (
        "10 inputs, 3 outputs: identical; the log is incomplete: it has no end record"
    )
    assert difference(found).splitlines() == [
        "first difference at output 3:",
        "  logged:   packet 7 of `a to b`, delivered, at 1.500000 us",
        "  replayed: none",
    ]
    assert "2 packets left the network with a changed payload" in difference(
        replace(found, difference=None, changed_payloads=2)
    )


def test_capture_options_reach_the_driver() -> None:
    from engpass.capture import Captures

    captures = Captures((("link.wire.a", "a.pcapng"),), "cells", "20 MB")
    config = captures.to_config()
    assert config["files"] == [["link.wire.a", str(Path("a.pcapng").absolute())]]
    assert (config["form"], config["limit"]) == ("cells", "20 MB")
    assert Options(capture=captures).to_json() == Options().to_json(), "a capture changes no outcome"


def test_driver_without_a_lateness_is_rejected() -> None:
    with pytest.raises(LabError, match=r"the driver sent an unknown answer: .*lateness"):
        Closed.of({"outcome": {"flows": {}, "links": {}}})
