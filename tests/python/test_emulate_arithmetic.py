"""The arithmetic of emulation: time dilation, pacing of senders, paths, texts about lateness."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import engpass.measure.emulated
from engpass.cli.replay import Difference, Output, Replayed, difference, said
from engpass.cli.watch import Status, WatchedLink, rates
from engpass.error import EngpassError
from engpass.jsondata import Json
from engpass.measure.agent import MeasureError
from engpass.measure.emulated import alone_on, as_the_model, carried, carried_of, renamed, too_late
from engpass.measure.flows import flows
from engpass.measure.requests import Schedule
from engpass.measure.time_dilation import scaled_back, slowed
from engpass.measure.window import Closed, Lateness
from engpass.netlab.egress_shaping import held
from engpass.netlab.emulated import Options, cannot, check_tap
from engpass.netlab.kernel import LabError
from engpass.netlab.layout import routers, stations
from engpass.plan import point_plan
from engpass.results.run_notes import Remarks
from engpass.testbed import loads
from engpass.types.outcome import (
    VERSION,
    Datagrams,
    Drop,
    Engine,
    FlowOutcome,
    Gaps,
    MeasuredPoint,
    Outcome,
    Place,
    RealFlow,
    Requests,
    Tcp,
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


def test_time_dilation_scales_agent_schedules_and_results() -> None:
    (flow,) = flows(slowed(carried(numbers()), 10), seed=1)
    assert flow.send.schedule == Schedule(kind="cbr", rate_bit_per_s=100_000)
    assert (flow.start_ns, flow.warmup_ns, flow.duration_ns) == (300_000_000, 700_000_000, 1_000_000_000)
    counts = Datagrams(sent=9, received=7, lost=2)
    real = RealFlow(
        sender_cpu_s_per_gb=3.0,
        gap_s=Gaps(mean=0.08),
        requests=Requests(per_s=7.0),
        ends={"a": {"elapsed_ns": 5}},
    )
    told = FlowOutcome(
        kind="udp-stream",
        goodput_bit_per_s=100_000.0,
        offered_bit_per_s=200_000.0,
        datagrams=counts,
        tcp=Tcp(receive_window_limited_share=0.5),
        real=real,
    )
    assert scaled_back(told, 10) == replace(
        told,
        goodput_bit_per_s=1_000_000.0,
        offered_bit_per_s=2_000_000.0,
        real=replace(real, gap_s=Gaps(mean=0.008), requests=Requests(per_s=70.0)),
    )
    assert scaled_back(told, 1) == told
    assert slowed(numbers(), 1) == numbers()


def filled(kind: msgspec.inspect.Type) -> Any:
    """A value of a type with all fields set and every number 1."""
    match kind:
        case msgspec.inspect.StructType(fields=fields):
            return {field.encode_name: filled(field.type) for field in fields}
        case msgspec.inspect.UnionType(types=types):
            return filled(next(one for one in types if not isinstance(one, msgspec.inspect.NoneType)))
        case msgspec.inspect.ListType(item_type=item):
            return [filled(item)]
        case msgspec.inspect.DictType(value_type=value):
            return {"one": filled(value)}
        case msgspec.inspect.LiteralType(values=values):
            return values[0]
        case msgspec.inspect.BoolType():
            return True
        case msgspec.inspect.StrType():
            return "text"
        case msgspec.inspect.AnyType():
            return {"elapsed_ns": 1.0}
    return 1


def by_factor(before: Any, after: Any, path: tuple[str, ...] = ()) -> dict[str, float]:
    """The factor by which each number of a value has changed, by its path."""
    if isinstance(before, dict):
        parts = [by_factor(before[key], after[key], (*path, key)) for key in before]
    elif isinstance(before, list):
        parts = [by_factor(*pair, path) for pair in zip(before, after, strict=True)]
    elif isinstance(before, float):
        return {".".join(path): after / before}
    else:
        assert after == before
        return {}
    return {name: factor for part in parts for name, factor in part.items()}


def test_all_times_and_rates_of_a_flow_are_scaled_back() -> None:
    """Names show which fields are times and rates, so fields of later versions are checked, too."""
    whole = msgspec.convert(filled(msgspec.inspect.type_info(FlowOutcome)), FlowOutcome)
    # Figures of `limit` do not come from real hosts and are therefore not scaled.
    receivers = {host: replace(one, limit=None) for host, one in whole.receivers.items()}
    whole = replace(whole, limit=None, receivers=receivers)
    factors = by_factor(msgspec.to_builtins(whole), msgspec.to_builtins(scaled_back(whole, 10)))
    expected = {}
    for name in factors:
        words = name.split(".")
        if "ends" in words or "stalls" in words or words[-1].endswith("_per_gb"):
            expected[name] = 1.0
        elif words[-1] == "per_s" or words[-1].endswith("_per_s"):
            expected[name] = 10.0
        else:
            expected[name] = 0.1 if any(word.endswith("_s") for word in words) else 1.0
    assert factors == pytest.approx(expected)
    assert set(expected.values()) == {0.1, 1.0, 10.0}
    assert expected["real.precision.interval_s"] == expected["tcp.rtt_s.p99_9"] == 0.1


def test_cell_flows_are_carried_by_the_model_only() -> None:
    assert [flow.name for flow in carried(numbers()).flows] == ["paced"]
    only = replace(numbers(), flows=[flow for flow in numbers().flows if flow.cells])
    with pytest.raises(MeasureError, match="no host sends anything"):
        carried(only)


def test_sockets_get_the_congestion_control_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    change = {"traffic.paced.kind": "tcp-stream", "host.b.tcp.congestion": "bbr"}
    text = ATM.replace('rate = "1 Mbit/s"\nstart', "start")
    point = point_plan(loads(text, change).campaign, "base", [])
    monkeypatch.setattr(engpass.measure.emulated, "_congestion", lambda _which: ["cubic", "reno"])
    alike, others = as_the_model(carried(point))
    assert [side.congestion for side in known(alike.flows[0].tcp)] == ["cubic", "bbr"]
    assert others == []
    monkeypatch.setattr(engpass.measure.emulated, "_congestion", lambda _which: ["reno"])
    alike, others = as_the_model(carried(point))
    assert [side.congestion for side in known(alike.flows[0].tcp)] == [None, "bbr"]
    told = (
        "TCP of `paced` uses this host's default congestion control, `reno`, but the model uses `cubic`:"
        " root can add it to `net.ipv4.tcp_allowed_congestion_control`"
    )
    assert others == [told]


def test_path_mtu_discovery_clears_dont_fragment_of_datagrams() -> None:
    """By default the DF flag is off, as in the model and unlike in Linux; a setting of the file is kept."""

    def flags(change: list[tuple[str, str]]) -> list[bool | None]:
        point = point_plan(loads(TWO_MTUS, change).campaign, "base", [])
        return [known(flow.live).dont_fragment for flow in as_the_model(carried(point))[0].flows]

    assert flags([]) == [None, None]
    assert flags([("host.a.tcp.path_mtu", "discovered")]) == [False, None]
    whole = ("traffic.there.live.dont_fragment", "true")
    assert flags([("host.a.tcp.path_mtu", "discovered"), whole]) == [True, None]


def test_losses_name_the_only_traffic_of_a_path() -> None:
    planned = flows(carried(numbers()), seed=1)
    drops = [
        Drop(
            place=Place(node="s", link="lb", to="b"), cause="buffer full", flow=flow, cells=cells, datagrams=1
        )
        for flow, cells in (("a to b", 3), ("b to a", 1), ("cells", 9))
    ]
    named = renamed(drops, alone_on(planned))
    assert [drop.flow for drop in named] == ["paced", "b to a", "cells"]
    assert [replace(drop, flow="") for drop in named] == [replace(drop, flow="") for drop in drops]
    way = FlowOutcome(kind="outside", goodput_bit_per_s=0.0, offered_bit_per_s=0.0)
    counts = Datagrams(sent=9, received=6, lost=2)
    ways = {"a to b": replace(way, datagrams=replace(counts, in_flight=1)), "b to a": way}
    assert carried_of("paced", ways, alone_on(planned)) == counts
    both = alone_on([*planned, *planned])
    assert renamed(drops, both)[0].flow == "a to b"
    assert carried_of("paced", ways, both) is None


def test_driver_of_another_version_is_rejected() -> None:
    old: Json = {"flows": {"a to b": {"kind": "outside", "sent_datagrams": 9}}, "links": {}}
    with pytest.raises(LabError, match=r"the driver sent an unknown answer: .*sent_datagrams"):
        Closed.of({"outcome": old, "lateness": {"valid": True}})


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


def test_lateness_message_names_quantile_and_limit() -> None:
    told = too_late(Lateness(valid=False, p999_ns=2_500_000, limit_ns=1_000_000))
    assert told.startswith("0.1 % of the packets were 2.5 ms late or more, but the limit is 1 ms")


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
