"""Join and leave delays of multicast receivers (RFC 3918 section 5).

They are measured in a separate trial, in which receivers join and leave while the sender sends. The losses of
the measured run therefore do not include datagrams sent before the network knew of a receiver.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from engpass.measure.agent import Crew, MeasureError
from engpass.measure.agent_access import Addresses, socket_address
from engpass.measure.answers import DOOR, HostResult, Membership
from engpass.measure.flows import Flow
from engpass.measure.requests import About, Limits

_S = 1_000_000_000
_BEFORE_SECONDS = 0.15
_MEMBER_SECONDS = 0.8
_LEFT_SECONDS = 3.4
"""Seconds: two queries for the last member, 1 s apart (RFC 3376 section 8), and 1 s without a datagram."""
_LENGTH_NS = 8 * _S


@dataclass(frozen=True)
class Waited:
    """The join and leave delay of one receiver, or the reasons why they are unknown."""

    join_delay_s: float | None = None
    leave_delay_s: float | None = None
    join_unknown: str | None = None
    leave_unknown: str | None = None


def delays(crew: Crew, addresses: Addresses, flow: Flow, stopped: Callable[[], bool]) -> dict[str, Waited]:
    """Measure the join and leave delay of each receiver.

    The agents drop the trial afterwards. If it fails the delays are unknown, but the point is still valid.
    """
    token = secrets.token_hex(16)
    try:
        return _trial(crew, addresses, flow, token, stopped)
    except MeasureError as error:
        failed = Waited(join_unknown=error.message, leave_unknown=error.message)
        return dict.fromkeys(flow.receivers, failed)
    finally:
        _forget(crew, flow, token)


def _trial(
    crew: Crew, addresses: Addresses, flow: Flow, token: str, stopped: Callable[[], bool]
) -> dict[str, Waited]:
    about = About(run=token, flow=flow.name)

    def tell(hosts: Sequence[str], do: str) -> None:
        for host in hosts:
            agent = crew.agents[host]
            crew.done(agent, agent.ask(do, about if do in ("join", "leave") else About(run=token)))

    def pause(seconds: float) -> None:
        for _ in crew.wait(seconds):
            if stopped():
                raise KeyboardInterrupt

    _prepare(crew, addresses, flow, token)
    tell((*flow.receivers, flow.sender), "start")
    pause(_BEFORE_SECONDS)
    tell(flow.receivers, "join")
    pause(_MEMBER_SECONDS)
    tell(flow.receivers, "leave")
    pause(_LEFT_SECONDS)
    found = {}
    for host in flow.receivers:
        agent = crew.agents[host]
        result = crew.answer(agent, agent.ask("collect", About(run=token)), HostResult.read)
        found[host] = _told(result.ends[flow.name, "receive"].membership)
    return found


def _prepare(crew: Crew, addresses: Addresses, flow: Flow, token: str) -> None:
    assert flow.group is not None  # noqa: S101 (the flows of a group alone come here)
    send, receive = (
        structs.replace(
            end,
            run=token,
            flow=flow.name,
            warmup_ns=0,
            duration_ns=_LENGTH_NS,
            limits=Limits(duration_ns=2 * _LENGTH_NS),
        )
        for end in (flow.send, flow.receive)
    )
    group, doors = socket_address(flow.group, 0), []
    for host in flow.receivers:
        agent = crew.agents[host]
        end = structs.replace(
            receive,
            side="listen",
            peers=addresses.all_of(flow.sender),
            group=group,
            interface=addresses.interface(host, seen_from=flow.sender),
            joined=False,
        )
        door = crew.answer(agent, agent.ask("prepare", end), DOOR)
        group = door.group or group
        doors.append(socket_address(addresses.of(host, seen_from=flow.sender), door.port))
    agent = crew.agents[flow.sender]
    end = structs.replace(send, side="connect", to=doors, group=group)
    crew.done(agent, agent.ask("prepare", end))


def unknown(delays: Mapping[str, Mapping[str, Waited]]) -> list[str]:
    """A sentence for each reason why join delays are unknown; `delays` is by flow and receiver."""
    why: dict[tuple[str, str], list[str]] = {}
    for flow, receivers in delays.items():
        for host, told in receivers.items():
            if told.join_unknown is not None:
                why.setdefault((flow, told.join_unknown), []).append(f"`{host}`")
    return [
        f"the join delay of the group of `{flow}` is unknown at {' and '.join(hosts)}: {reason};"
        " check whether the routers and switches on the path forward multicast"
        for (flow, reason), hosts in why.items()
    ]


def _told(membership: Sequence[Membership]) -> Waited:
    found = Waited()
    for change in membership:
        if change.join_ns is not None:
            if change.first_ns is None:
                # Without a first datagram, the leave delay is unknown as well.
                nothing = f"nothing arrived within {_MEMBER_SECONDS:g} s"
                return Waited(join_unknown=nothing, leave_unknown="nothing had arrived")
            found = replace(found, join_delay_s=(change.first_ns - change.join_ns) / _S)
        elif change.seen_by is None:
            found = replace(found, leave_unknown="not seen: that needs CAP_NET_RAW")
        elif not change.quiet:
            found = replace(found, leave_unknown=f"still forwarded {_LEFT_SECONDS:g} s later")
        else:
            last = change.last_ns or change.leave_ns
            found = replace(found, leave_delay_s=(last - change.leave_ns) / _S)
    return found


def _forget(crew: Crew, flow: Flow, token: str) -> None:
    for host in (flow.sender, *flow.receivers):
        agent = crew.agents.get(host)
        if agent is not None and not agent.gone:
            with contextlib.suppress(MeasureError):
                crew.done(agent, agent.ask("drop", About(run=token)), 3.0)
