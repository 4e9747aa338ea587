"""Ledgers of measured points and the regularity of paced flows, from invented results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from engpass.measure.answers import (
    Address,
    Cause,
    Changes,
    Core,
    Cpu,
    Distribution,
    End,
    Granted,
    HostResult,
    HostSeen,
    Interface,
    Numbers,
    Own,
    Pacing,
    Reading,
    Stalls,
    Stream,
    Subflow,
    TcpEdges,
    TcpInfo,
)
from engpass.measure.flows import Flow
from engpass.measure.idle_reasons import Waits, divided, waits
from engpass.measure.line_usage import Kept
from engpass.measure.measured_ledger import books
from engpass.measure.pacing import pacing
from engpass.measure.requests import Prepare, Schedule
from engpass.measure.wire_bits import Wire
from engpass.results import ledger
from engpass.types.outcome import (
    VERSION,
    Bottleneck,
    BottleneckKind,
    FlowOutcome,
    Ledger,
    Outcome,
    Path,
    Step,
)
from engpass.types.plan import HostPlan, LinkPlan, NodePlan, PointPlan, RunPlan
from required import known

S = 10**9


def link(name: str, ends: list[str], framing: str = "packets", **more: Any) -> LinkPlan:
    base: dict[str, Any] = {
        "medium": "point-to-point" if framing == "packets" else "ethernet-10",
        "rates_bit_per_s": [10_000_000, 10_000_000],
        "mtu_bytes": 1500,
        "overhead_bytes": 0,
        "vlan": False,
        "delay_ns": 0,
        "jitter_ns": 0,
        "loses": False,
        "reorders": False,
        "queues": [None, None],
    }
    return LinkPlan(name=name, ends=ends, framing=framing, **{**base, **more})


def numbers(*links: LinkPlan) -> PointPlan:
    nodes = dict.fromkeys(end for one in links for end in one.ends)
    return PointPlan(
        run=RunPlan(duration_ns=S, warmup_ns=0, most_ns=S, seed=1),
        hosts={name: HostPlan(receive_buffer_bytes=65_536) for name in nodes if name != "r"},
        between={"r": NodePlan(kind="router", delay_ns=0)} if "r" in nodes else {},
        links=list(links),
        ways=[],
        gateways=[],
        flows=[],
    )


def flow(kind: str = "udp-stream", size: int = 972, schedule: Schedule | None = None) -> Flow:
    end = Prepare(kind=kind, message_bytes=size, streams=1)
    return Flow("bulk", kind, "a", ("b",), 0, 0, S, structs.replace(end, schedule=schedule), end)


def results(sent: End, got: End) -> dict[str, HostResult]:
    def of(role: str, end: End) -> HostResult:
        lasted = end.elapsed_ns or S
        told = structs.replace(end, flow="bulk", role=role, ended="duration", elapsed_ns=lasted)
        return HostResult({("bulk", role): told}, Reading(at_ns=0), Reading(at_ns=S), {})

    return {"a": of("send", sent), "b": of("receive", got)}


def hosts(**changes: Changes) -> dict[str, HostSeen]:
    return {name: HostSeen(changes=changes.get(name)) for name in ("a", "b")}


def came(number: int, elapsed_ns: int = S) -> End:
    """An end that received `number` datagrams of 972 B."""
    received = Numbers(received=number)
    return End(messages=number, bytes=number * 972, sequence=received, elapsed_ns=elapsed_ns)


def tcp_end(edges: TcpEdges, subflows: Sequence[Subflow] = (), local: str = "") -> End:
    stream = Stream(tcp=edges, subflows=list(subflows), granted=Granted(local=local))
    return End(streams=[stream])


def path(made: PointPlan, receiver: str) -> Path:
    """The path from `a` over the first link to the receiver, or over `r`."""
    names = {(one.ends[0], one.ends[1]): one.name for one in reversed(made.links)}
    hops = [("a", receiver)] if ("a", receiver) in names else [("a", "r"), ("r", receiver)]
    return Path(share=1.0, steps=[Step(link=names[hop], from_=hop[0], to=hop[1]) for hop in hops])


def kept(
    made: PointPlan,
    of: Flow,
    ends: dict[str, HostResult],
    told: dict[str, HostSeen] | None = None,
    **limits: FlowOutcome,
) -> Kept:
    of = replace(of, paths=tuple(path(made, receiver) for receiver in of.receivers))
    found = books(made, [of], ends, told or hosts(), limits)
    outcome = Outcome(
        version=VERSION,
        variant="base",
        engine="measure",
        repeat=0,
        seed=1,
        sweep={},
        flows={},
        links=dict(found.links),
    )
    # Reading the ledgers checks that they balance.
    assert ledger.directions(outcome) or not found.links
    return found


def kept_of(found: Kept, name: str, start: str) -> Ledger:
    return known(next(side.ledger for side in found.links[name].directions if side.from_ == start))


def accounts(found: Kept, name: str, start: str) -> dict[str, int]:
    booked = kept_of(found, name, start)
    assert booked.units_per_bit == 1
    return booked.accounts


DIRECT = numbers(link("wire", ["a", "b"]))
ROUTED = numbers(link("near", ["a", "r"]), link("far", ["r", "b"]))


def test_packet_and_frame_sizes_match_hand_calculation() -> None:
    wire = Wire(link("wire", ["a", "b"], "ethernet"), 1500)
    assert wire.packets(4008) == [1500, 1500, 1068]
    parts = wire.of(4008, 8)
    assert parts == {
        "IP headers": 3 * 20 * 8,
        "transport headers": 64,
        "physical framing": 3 * 20 * 8,
        "frame headers": 3 * 18 * 8,
    }
    # An acknowledgment of 52 B fits a frame of 64 + 6 B; one of 40 B is padded.
    assert "padding" not in wire.segment(0, 12)
    assert wire.segment(0, 0)["padding"] == (64 - 18 - 40) * 8
    assert wire.counted(4008) == 4068 + 3 * 14
    # A tag counts among the 64 bytes of the shortest frame.
    tagged = Wire(link("wire", ["a", "b"], "ethernet", vlan=True), 1500)
    assert tagged.segment(0, 0)["padding"] == (64 - 22 - 40) * 8
    six = Wire(link("wire", ["a", "b"], overhead_bytes=9), 1500, v6=True)
    assert six.packets(4008) == [1496, 1496, 1160]
    assert six.of(100, 8) == {"IP headers": 320, "transport headers": 64, "frame headers": 72}


def test_losses_behind_the_first_link_are_posted_to_it() -> None:
    sent = End(messages=1000, bytes=972_000)
    got = came(900)
    found = kept(ROUTED, flow(), results(sent, got))
    near, far = accounts(found, "near", "a"), accounts(found, "far", "r")
    assert near["delivered"] == far["delivered"] == 900 * 972 * 8
    assert near["lost datagrams"] == 100 * 1000 * 8
    assert "lost datagrams" not in far
    assert near["IP headers"] == 900 * 160
    assert accounts(found, "far", "b") == {"idle: no sender": 10_000_000}
    assert found.notes == []


def test_queued_datagrams_are_in_flight_on_the_first_link() -> None:
    sent = End(messages=900, bytes=874_800)
    got = came(900, elapsed_ns=3 * S // 2)
    found = kept(ROUTED, flow(), results(sent, got))
    near, far = accounts(found, "near", "a"), accounts(found, "far", "r")
    assert near["delivered"] == far["delivered"] == 600 * 972 * 8
    assert near["in flight"] == 300 * 972 * 8
    assert (near["IP headers"], far["IP headers"]) == (900 * 160, 600 * 160)
    assert "in flight" not in far


def test_receive_buffer_drops_have_crossed_the_last_link() -> None:
    sent = End(messages=1000, bytes=972_000)
    got = came(900)
    told = hosts(b=Changes(snmp={"Udp": {"RcvbufErrors": 60}}))
    found = kept(ROUTED, flow(), results(sent, got), told)
    assert accounts(found, "far", "r")["lost datagrams"] == 60 * 1000 * 8


def test_unreassembled_fragments_are_lost_datagrams() -> None:
    sent = End(messages=100, total_messages=200)
    got = End(messages=80, sequence=Numbers(received=80))
    # In total 160 complete datagrams of 3 fragments, and 60 fragments of others; half of the run is measured.
    told = hosts(b=Changes(snmp={"Ip": {"ReasmReqds": 160 * 3 + 60, "ReasmOKs": 160}}))
    found = kept(ROUTED, flow(size=4000), results(sent, got), told)
    each = (4008 + 60) * 8 // 3
    assert accounts(found, "far", "r")["lost datagrams"] == 30 * each


def test_multicast_is_posted_once_per_link() -> None:
    made = numbers(link("near", ["a", "r"]), link("far", ["r", "b"]), link("other", ["r", "c"]))
    sent, got = End(messages=100, bytes=97_200), came(100)
    ends = results(sent, got)
    ends["c"] = ends["b"]
    end = Prepare(kind="udp-stream", message_bytes=972)
    group = Flow("bulk", "multicast", "a", ("b", "c"), 0, 0, S, end, end, "239.0.0.1")
    found = kept(made, group, ends)
    for name, start in (("near", "a"), ("far", "r"), ("other", "r")):
        assert accounts(found, name, start)["delivered"] == 100 * 972 * 8


def tcp(**grown: int) -> TcpEdges:
    close = TcpInfo(options=1, snd_mss=1448, **grown)
    return TcpEdges(open=TcpInfo(options=1, snd_mss=1448), close=close, end=close)


def test_tcp_ledger_matches_hand_calculation() -> None:
    sent = tcp_end(
        tcp(
            data_segs_out=110,
            segs_out=110,
            bytes_sent=110 * 1448,
            bytes_retrans=10 * 1448,
            dsack_dups=2,
            data_segs_in=0,
            segs_in=55,
            busy_us=900_000,
            rwnd_limited_us=300_000,
        )
    )
    received = tcp(data_segs_in=102, segs_in=102, bytes_received=100 * 1448, segs_out=55)
    got = structs.replace(tcp_end(received), bytes=100 * 1448)
    found = kept(ROUTED, flow("tcp-stream"), results(sent, got))
    near, far = accounts(found, "near", "a"), accounts(found, "far", "r")
    assert near["delivered"] == far["delivered"] == 100 * 1448 * 8
    # Ten segments were retransmitted: two of them arrived twice, eight had been lost, headers included.
    assert near["duplicate"] == 2 * 1448 * 8
    assert near["lost datagrams"] == 8 * (1448 + 52) * 8
    assert near["transport headers"] == 102 * 32 * 8
    assert "lost datagrams" not in far
    assert accounts(found, "near", "r")["ACK and control"] == 55 * 52 * 8
    idle = {name: bits for name, bits in near.items() if name.startswith("idle")}
    assert set(idle) == {"idle: receive window", "idle: congestion window", "idle: unknown"}
    # Of the idle time, 30 % are due to the receive window, 60 % to the congestion window, 10 % are unknown.
    whole = sum(idle.values())
    assert idle["idle: receive window"] == pytest.approx(0.3 * whole, abs=1)
    assert idle["idle: congestion window"] == pytest.approx(0.6 * whole, abs=1)


def test_idle_time_behind_the_bottleneck_is_upstream() -> None:
    sent, got = End(messages=100, bytes=97_200), End(messages=100, bytes=97_200)

    def idle(kind: BottleneckKind, name: str) -> list[set[str]]:
        """The idle reasons of both links if this bottleneck limits the flow."""
        bottleneck = Bottleneck(kind=kind, name=name, title=f"link `{name}`")
        limit = FlowOutcome(
            kind="udp-stream", goodput_bit_per_s=1e6, offered_bit_per_s=1e6, bottleneck=bottleneck
        )
        found = kept(ROUTED, flow(), results(sent, got), bulk=limit)
        sides = [accounts(found, "near", "a"), accounts(found, "far", "r")]
        return [{account for account in side if account.startswith("idle:")} for side in sides]

    assert idle("link", "near") == [{"idle: unknown"}, {"idle: upstream"}]
    assert idle("link", "far") == [{"idle: unknown"}, {"idle: unknown"}]
    assert idle("acknowledgements", "near") == [{"idle: unknown"}, {"idle: unknown"}]


def test_data_in_the_sender_queue_has_not_crossed_the_link() -> None:
    much = 2000 * 1448
    sent = tcp_end(tcp(data_segs_out=2000, bytes_sent=much))
    got = tcp_end(tcp(data_segs_in=700, bytes_received=700 * 1448))
    found = kept(DIRECT, flow("tcp-stream"), results(sent, got))
    assert kept_of(found, "wire", "a").capacity == 10_000_000
    assert found.notes == []


def test_line_above_its_rate_has_a_note() -> None:
    sent = End(messages=2000)
    got = End(messages=2000, sequence=Numbers(received=2000))
    found = kept(DIRECT, flow(), results(sent, got))
    assert kept_of(found, "wire", "a").capacity == 2000 * 1000 * 8
    assert "carried 60.0 % more than its rate" in found.notes[0]


def test_undeclared_traffic_is_counted_at_the_interface() -> None:
    streams = [Stream(granted=Granted(local="192.0.2.1:9"))]
    sent = End(messages=100, total_messages=100, streams=streams)
    got = End(messages=100, sequence=Numbers(received=100))
    told = hosts(a=Changes(interfaces={"eth0": Interface(tx_bytes=100 * 1014 + 50_000)}))
    own = Own(addresses=[Address(interface="eth0", address="192.0.2.1")])
    told["a"] = structs.replace(told["a"], host=own)
    assert (
        accounts(kept(DIRECT, flow(), results(sent, got), told), "wire", "a")["undeclared traffic"] == 400_000
    )


def test_links_without_an_agent_are_left_out() -> None:
    made = numbers(link("near", ["a", "r"]), link("far", ["r", "b"]))
    made.links.insert(1, link("middle", ["x", "y"]))
    found = kept(made, flow(), results(End(messages=1), End(messages=1)))
    assert set(found.links) == {"near", "far"}
    assert found.notes == ["no agent runs at the ends of link `middle`: packets on it were not counted"]


def test_idle_reason_shares_follow_the_sender_state() -> None:
    cbr = Schedule(kind="cbr", rate_bit_per_s=1_000_000)
    assert waits(flow(schedule=cbr), End(bytes=125_000), behind=False).shares["CPU"] == 0
    late = waits(flow(schedule=cbr), End(bytes=100_000), behind=False).shares
    assert late == {"application": pytest.approx(0.8), "CPU": pytest.approx(0.2)}
    full = End(cpu=Cpu(user_ns=S // 2, system_ns=S // 4, waited_ns=S // 4), elapsed_ns=S)
    assert waits(flow(), full, behind=False).shares == {"CPU": 1.0}
    assert waits(flow(), End(), behind=True).shares == {"upstream": 1.0}
    assert waits(flow(), End(), behind=False).shares == {"unknown": 1.0}
    others = End(cores=[Core(busy_ppm=990_000), Core(busy_ppm=900_000, steal_ppm=90_000)])
    assert waits(flow(), others, behind=False).shares == {"CPU": 1.0}
    assert waits(flow(), others, behind=True).shares == {"upstream": 1.0}


def test_idle_bits_are_apportioned_to_elastic_senders() -> None:
    paced, bulk = (
        Waits({"application": 1.0}, elastic=False),
        Waits({"CPU": 0.5, "unknown": 0.5}, elastic=True),
    )
    assert divided(101, [paced, bulk]) == {"idle: CPU": 51, "idle: unknown": 50}
    assert divided(100, [paced]) == {"idle: application": 100}
    assert divided(100, []) == {"idle: no sender": 100}
    assert divided(0, []) == {}


STALLS = Stalls(
    count=3,
    longest_ns=4_000_000,
    total_ns=5_000_000,
    squares_ns2=9 * 10**13,
    waited=Cause(squares_ppm=0),
    stolen=Cause(squares_ppm=900_000),
    kernel=Cause(squares_ppm=100_000),
)


def test_pacing_summary_names_the_cause_of_deviations() -> None:
    gaps = Distribution(count=10_000, sd_ns=100_000, mad_ns=500, p99_ns=1, p999_ns=2, worst_ms=18)
    sender = End(pacing=Pacing(method="hybrid", stalls=STALLS))
    found = pacing(sender, End(gaps=gaps))
    assert found is not None
    assert (found.method, found.stalls) == ("hybrid", STALLS)
    assert found.explained_share == pytest.approx(0.9)
    assert found.summary == (
        "gaps deviate by 100.0 us, and half of them by at most 0.5 us: the sender stalled 3 times, for"
        " at most 4,000.0 us, which explains 90 % of the deviation; 90 %: the hypervisor of the sending host"
        " used its core, or woke it late, 10 %: the sending host's kernel used its core, for interrupts and"
        " for sending"
    )
    wide = pacing(sender, End(gaps=structs.replace(gaps, sd_ns=1_000_000)))
    assert wide is not None
    assert known(wide.summary).endswith("; the rest arose on the path")
    assert pacing(End(), End()) is None


def test_every_subflow_is_posted_to_its_own_link() -> None:
    two = numbers(link("one", ["a", "b"]), link("two", ["a", "b"]))
    addresses = {
        host: HostSeen(host=Own(addresses=[
            Address(interface=name, address=f"10.64.{i}.{last}") for i, name in enumerate(("one", "two"))
        ]))
        for host, last in (("a", 1), ("b", 2))
    }  # fmt: skip

    def counted(key: str, segments: str, size: int) -> TcpInfo:
        return TcpInfo(bytes_retrans=0, snd_mss=1000, **{key: size, segments: size // 1000})

    def subflow(local: str, remote: str, before: TcpInfo | None, after: TcpInfo) -> Subflow:
        edges = TcpEdges(open=before, close=after, end=after)
        return Subflow(local=local, remote=remote, tcp=edges)

    def ends(host: int, peer: int, key: str, segments: str) -> list[Subflow]:
        told = [counted(key, segments, size) for size in (100_000, 400_000, 200_000)]
        # The second subflow began within the window.
        return [
            subflow(f"10.64.0.{host}:1", f"10.64.0.{peer}:1", told[0], told[1]),
            subflow(f"10.64.1.{host}:2", f"10.64.1.{peer}:2", None, told[2]),
        ]

    sent, got = ends(1, 2, "bytes_sent", "data_segs_out"), ends(2, 1, "bytes_received", "data_segs_in")
    found = kept(
        two,
        flow("tcp-stream", 8000),
        results(
            structs.replace(tcp_end(sent[0].tcp, sent, "10.64.0.1:1"), bytes=500_000, messages=60),
            structs.replace(tcp_end(got[0].tcp, got), bytes=500_000, messages=60),
        ),
        addresses,
    )
    assert accounts(found, "one", "a")["delivered"] == 300_000 * 8
    assert accounts(found, "two", "a")["delivered"] == 200_000 * 8
    # 200 segments of 1000 B with their headers: no line has segments of the other one.
    assert accounts(found, "two", "a")["IP headers"] == 200 * 160
