"""Bottlenecks of measured flows, from invented figures and counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
from msgspec import structs

from engpass.jsondata import Json
from engpass.measure import outcome
from engpass.measure.answers import (
    Changes,
    Core,
    Cpu,
    Distribution,
    End,
    Hello,
    HostResult,
    HostSeen,
    Pacing,
    Softnet,
    Stream,
)
from engpass.measure.bottleneck import explained
from engpass.measure.counters import changes, thinned
from engpass.measure.flows import Flow
from engpass.measure.line_usage import Line
from engpass.measure.requests import Prepare, Schedule
from engpass.types.outcome import Bottleneck, BottleneckKind, FlowOutcome
from engpass.types.plan import FlowPlan, PointPlan, RunPlan, SocketPlan


def flow(kind: str = "tcp-stream", schedule: Schedule | None = None) -> Flow:
    end = Prepare(kind=kind, message_bytes=1000, streams=1)
    return Flow("bulk", kind, "a", ("b",), 0, 0, 10**9, structs.replace(end, schedule=schedule), end)


def figures(changed: Mapping[str, Json]) -> FlowOutcome:
    base = {"kind": "tcp-stream", "goodput_bit_per_s": 80e6, "offered_bit_per_s": 80e6}
    return msgspec.convert({**base, **changed}, FlowOutcome)


def why(
    changed: Mapping[str, Json],
    *,
    of: Flow | None = None,
    ends: dict[str, End] | None = None,
    counters: Changes | None = None,
    limit: FlowOutcome | None = None,
) -> tuple[Bottleneck, str]:
    hosts = {"b": HostSeen(changes=counters)}
    found = explained(of or flow(), figures(changed), ends or {}, hosts, limit)
    return found.bottleneck, found.summary


def the(kind: BottleneckKind, title: str, name: str | None = None) -> Bottleneck:
    return Bottleneck(kind=kind, name=name, title=title)


def limited_by(bottleneck: Bottleneck) -> FlowOutcome:
    return FlowOutcome(
        kind="tcp-stream", goodput_bit_per_s=100e6, offered_bit_per_s=100e6, bottleneck=bottleneck
    )


def lost(number: int, *, sent: int = 1000) -> dict[str, Json]:
    return {"datagrams": {"sent": sent, "received": sent - number, "lost": number}}


UNKNOWN = the("unknown", "unknown")
LINK = limited_by(the("link", "link `wan`", "wan"))
ON_THE_WAY = the("loss-on-the-way", "loss on the path")
RECEIVE_WINDOW = the("receive-window", "the receive window")
CBR = Schedule(kind="cbr", rate_bit_per_s=80_000_000)


def test_bottleneck_is_unknown_if_nothing_is_near_its_bound() -> None:
    found, said = why({}, limit=LINK)
    assert found == UNKNOWN
    assert said == "the bottleneck of `bulk` is unknown: no measured resource was near its limit"


def test_link_near_its_limit_is_the_bottleneck() -> None:
    found, said = why({"goodput_bit_per_s": 97e6}, limit=LINK)
    assert found == the("link", "link `wan`", "wan")
    assert said == "link `wan` limits `bulk`: the flow gets 97 % of its fair share"


def test_the_cpu_of_a_host_called_uplink_is_no_link() -> None:
    host = the("sending-host", "host `uplink`", "uplink")
    found, _ = why({"goodput_bit_per_s": 99e6}, limit=limited_by(host))
    assert found == UNKNOWN


def test_full_line_behind_the_losses_is_the_bottleneck() -> None:
    lines = [Line("near", 1.0, 0.4, 100e6), Line("far", 0.95, 0.95, 100e6)]
    base: dict[str, Json] = {"goodput_bit_per_s": 40e6, "offered_bit_per_s": 100e6}
    found = explained(flow("udp-stream"), figures(base | lost(600)), {}, {"b": HostSeen()}, None, lines)
    assert found.bottleneck == the("link", "link `far`", "far")
    assert found.summary.startswith(
        "link `far` limits `bulk`: it is busy 95 % of the time, and other flows get 55 % of it; next is"
    )
    # The line is the reason for losses in the queue before it.
    assert found.next == ON_THE_WAY
    assert found.findings[1].weight == pytest.approx(0.95 * 0.99)
    near = explained(flow(), figures(base), {}, {"b": HostSeen()}, None, lines)
    assert near.bottleneck == the("link", "link `near`", "near")
    idle = [Line("near", 0.5, 0.4, 1e8)]
    assert explained(flow(), figures(base), {}, {"b": HostSeen()}, None, idle).bottleneck == UNKNOWN


def test_other_load_on_the_core_is_the_bottleneck() -> None:
    kept = End(cpu=Cpu(waited_ns=6 * 10**8), elapsed_ns=10**9)
    found, said = why({}, ends={"a": kept})
    assert found == the("other-load", "other load of host `a`", "a")
    assert "other threads used the core for 60 % of the time" in said
    taken = End(streams=[Stream(core=1)], cores=[Core(core=1, steal_ppm=700_000)], elapsed_ns=10**9)
    assert why({}, ends={"a": taken})[0] == the("hypervisor", "the hypervisor of host `a`", "a")
    timer = the("retransmission-timer", "the retransmission timer")
    assert why({"tcp": {"timeout_share": 0.6, "timeouts": 3}})[0] == timer


def test_own_socket_drops_take_precedence_over_host_counters() -> None:
    less = {"goodput_bit_per_s": 60e6, **lost(250)}
    overflow = Changes(snmp={"Udp": {"RcvbufErrors": 250}})
    own = {"a": End(), "b": End(streams=[Stream(dropped=0)])}
    # The host's counter belongs to another flow.
    assert why(less, of=flow("udp-stream", CBR), ends=own, counters=overflow)[0] == ON_THE_WAY


def test_kernel_limited_times_name_the_window() -> None:
    found, said = why({"tcp": {"receive_window_limited_share": 0.8, "send_buffer_limited_share": 0.1}})
    assert found == RECEIVE_WINDOW
    assert said.endswith("next is the send buffer: it was too small 10 % of the time")


def test_retransmissions_name_the_congestion_window() -> None:
    again: dict[str, Json] = {"retransmitted_segments": 12}
    assert why({"tcp": again})[0] == the("congestion-window", "the congestion window")
    assert why({"tcp": again | {"receive_window_limited_share": 0.9}})[0] == RECEIVE_WINDOW


def test_application_at_its_offered_rate_is_the_bottleneck() -> None:
    application = the("application", "the application", "bulk")
    assert why({"real": {"schedule_kept": 1.0}}, of=flow("udp-stream", CBR))[0] == application
    slow: dict[str, Json] = {
        "goodput_bit_per_s": 60e6,
        "offered_bit_per_s": 60e6,
        "real": {"schedule_kept": 0.75},
    }
    found, said = why(slow, of=flow("udp-stream", CBR))
    assert found == the("sender", "the sender of host `a`", "a")
    assert "it sent at 75 % of the requested rate" in said


def test_on_off_schedule_is_kept_below_its_mean_in_a_window() -> None:
    bursts = flow("udp-on-off", Schedule(kind="on-off", rate_bit_per_s=80_000_000, on_ns=10, off_ns=10))
    end = End(bytes=4_600_000, late=Distribution(max_ns=5_000_000))
    assert bursts.kept(end) == 1.0, "7 bursts of 7.5 fall into the window"
    assert bursts.kept(structs.replace(end, late=Distribution(max_ns=200_000_000))) == pytest.approx(0.92)
    assert flow().kept(end) is None
    said: dict[str, Json] = {
        "real": {"schedule_kept": 1.0},
        "offered_bit_per_s": 36.8e6,
        "goodput_bit_per_s": 36.8e6,
    }
    assert why(said, of=bursts)[0] == the("application", "the application", "bulk")


def test_send_buffer_data_after_a_stop_counts_in_its_own_time() -> None:
    sender = End(ended="stopped", elapsed_ns=8 * 10**8, bytes=4_900_000)
    receiver = End(elapsed_ns=9 * 10**8, bytes=5_400_000)
    short = replace(flow(), duration_ns=8 * 10**8)
    found = outcome._rates(short, sender, receiver)
    assert found.goodput_bit_per_s == pytest.approx(48e6), "54 Mbit/s would be more than the line has"
    assert found.offered_bit_per_s == pytest.approx(49e6)
    whole = outcome._rates(short, structs.replace(sender, ended="duration"), receiver)
    assert whole.goodput_bit_per_s == pytest.approx(54e6)


def test_queued_datagrams_count_in_the_time_they_arrive() -> None:
    stream = replace(flow("udp-stream"), duration_ns=10**9)
    sender, receiver = End(ended="duration", bytes=1_876_000), End(bytes=1_876_000)
    stood = outcome._rates(stream, sender, structs.replace(receiver, elapsed_ns=15 * 10**8))
    assert stood.goodput_bit_per_s == pytest.approx(10.005e6, rel=1e-3), "the line has 10 Mbit/s"
    assert stood.offered_bit_per_s == pytest.approx(15.008e6, rel=1e-3)
    stumbled = outcome._rates(stream, sender, structs.replace(receiver, elapsed_ns=1_010_000_000))
    assert stumbled.goodput_bit_per_s == stood.offered_bit_per_s
    # Datagrams that a scheduled sender sent late arrive late, but did not wait in a queue.
    late = outcome._rates(
        stream,
        structs.replace(sender, late=Distribution(max_ns=9 * 10**7)),
        structs.replace(receiver, elapsed_ns=1_090_000_000),
    )
    assert late.goodput_bit_per_s == stood.offered_bit_per_s
    held = outcome._rates(
        stream,
        structs.replace(sender, late=Distribution(max_ns=5 * 10**8)),
        structs.replace(receiver, elapsed_ns=15 * 10**8),
    )
    assert held.goodput_bit_per_s == stood.goodput_bit_per_s


def test_unanswered_requests_count_as_loss_on_the_way() -> None:
    asks = flow("request-response", CBR)
    half: dict[str, Json] = {"goodput_bit_per_s": 40e6, "offered_bit_per_s": 80e6}
    requests: dict[str, Json] = {"per_s": 500.0, "unanswered": 500}
    found, said = why({**half, "real": {"schedule_kept": 1.0, "requests": requests}}, of=asks)
    assert found == ON_THE_WAY
    assert "500 requests (50 %) had no response within 1 s" in said


@pytest.mark.parametrize("kind", ["tcp-stream", "udp-stream", "request-response"])
def test_path_that_drops_large_packets_is_named(kind: str) -> None:
    none: dict[str, Json] = {"goodput_bit_per_s": 0.0, "tcp": {"timeout_share": 0.99}}
    silent = none | lost(9, sent=9) | {"real": {"requests": {"per_s": 0.0, "unanswered": 9}}}
    found, said = why(silent, of=flow(kind), ends={"b": End(total_bytes=0)})
    assert found == the("large-packets", "loss of large packets")
    assert "`engpass path` finds the MTU" in said
    # Data arrived, although not within the window: this is another case.
    sent: dict[str, Json] = {"datagrams": {"sent": 9, "received": 9, "lost": 0}}
    others = why(none | sent, of=flow(kind), ends={"b": End(total_bytes=1000)})
    assert others[0].kind != "large-packets"


def test_receiver_counters_locate_lost_datagrams() -> None:
    less = {"goodput_bit_per_s": 60e6, **lost(250)}
    stream = flow("udp-stream", CBR)
    overflow = Changes(snmp={"Udp": {"RcvbufErrors": 250}})
    socket = the("receiver-socket-buffer", "the receiver's socket buffer")
    assert why(less, of=stream, counters=overflow)[0] == socket
    backlog = the("receiver-backlog", "the receiver's packet backlog")
    assert why(less, of=stream, counters=Changes(softnet=[Softnet(dropped=250)]))[0] == backlog
    fragments = Changes(snmp={"Ip": {"ReasmFails": 500, "ReasmReqds": 3000}})
    assert why(less, of=stream, counters=fragments)[0] == the("loss-of-fragments", "loss of fragments")
    # Fragments of an earlier run time out during this run, in which no fragments arrive.
    earlier = Changes(snmp={"Ip": {"ReasmFails": 500}})
    assert why(less, of=stream, counters=earlier)[0] == ON_THE_WAY
    assert why(less, of=stream, counters=Changes())[0] == ON_THE_WAY


def test_busy_thread_names_the_cpu_as_bottleneck() -> None:
    busy = End(cpu=Cpu(user_ns=10**8, system_ns=9 * 10**8), elapsed_ns=10**9)
    found, said = why({}, ends={"a": End(), "b": busy})
    assert found == the("receiving-host", "the CPU of host `b`", "b")
    assert "its receiving threads were busy 100 % of the time" in said
    assert why({}, ends={"a": busy, "b": End()})[0] == the("sending-host", "the CPU of host `a`", "a")
    # A thread that polls the clock is not busy with sending.
    assert why({}, ends={"a": structs.replace(busy, pacing=Pacing(method="busy"))})[0] == UNKNOWN


def test_counters_are_stored_as_differences() -> None:
    before: Json = {
        "snmp": {"Udp": {"InErrors": 4, "NoPorts": 1}},
        "softnet": [{"core": 0, "dropped": 1}, {"core": 1, "dropped": 0}],
    }
    after: Json = {
        "snmp": {"Udp": {"InErrors": 9, "NoPorts": 1}},
        "softnet": [{"core": 0, "dropped": 1}, {"core": 1, "dropped": 2}],
    }
    assert changes(before, after) == {
        "snmp": {"Udp": {"InErrors": 5}},
        "softnet": [{"core": 1, "dropped": 2}],
    }
    assert changes(after, after) is None
    # The growth of a counter without an earlier value is unknown.
    assert changes({}, {"new": 3}) is None


class Binned(msgspec.Struct):
    count: int
    histogram: list[tuple[int, int]]


def test_thinned_histogram_keeps_its_count() -> None:
    bins = [[value, value % 3] for value in range(1000)]
    found = thinned({"late": {"count": 999, "histogram": bins}, "bytes": 5})
    short = msgspec.convert(found["late"], Binned)
    assert len(short.histogram) <= 48
    assert sum(count for _, count in short.histogram) == sum(count for _, count in bins)
    assert short.histogram[-1][0] == 999
    assert (short.count, found["bytes"]) == (999, 5)


def test_default_congestion_control_unlike_the_model_is_noted() -> None:
    side = SocketPlan(model_congestion="cubic", untold=[])
    stream = flow()
    streams: Json = [{"granted": {"congestion": "bbr"}}]
    end: Json = {"flow": stream.name, "role": "send", "ended": "duration", "streams": streams}

    def told(side: SocketPlan) -> list[str]:
        one = FlowPlan(
            name=stream.name,
            kind=stream.kind,
            from_="a",
            to=["b"],
            paths=[],
            start_ns=0,
            priority=0,
            tcp=[side],
        )
        run = RunPlan(duration_ns=1, warmup_ns=0, most_ns=1, seed=1)
        asked = PointPlan(run=run, hosts={}, between={}, links=[], ways=[], gateways=[], flows=[one])
        return outcome.own_congestion(asked, [stream], {stream.sender: HostResult.of({"flows": [end]})})

    (said,) = told(side)
    assert "`bbr`, but the model uses `cubic`" in said
    assert told(msgspec.structs.replace(side, congestion="bbr")) == []
    assert told(msgspec.structs.replace(side, model_congestion="bbr")) == []


def test_a_null_of_an_agent_is_a_missing_field() -> None:
    end = {"flow": "bulk", "role": "send", "gaps": None, "late": {"max_ns": None}, "elapsed_ns": None}
    told: dict[str, Json] = {"flows": [end], "before": None, "after": {"at_ns": 5, "interfaces": None}}
    found = HostResult.of(told)
    assert (
        found.ends["bulk", "send"]
        == HostResult.of({"flows": [{"flow": "bulk", "role": "send"}]}).ends["bulk", "send"]
    )
    assert found.kept("bulk", "send") == end
    assert Hello.of({"protocol": 1, "host": None}).addresses == []
