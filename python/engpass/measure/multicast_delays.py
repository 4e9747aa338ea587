"""Join and leave delays of multicast receivers (RFC 3918 section 5).

They are measured in a separate trial, in which receivers join and leave while the sender sends. The losses of
the measured run therefore do not include datagrams sent before the network knew of a receiver.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence

from msgspec import structs

from engpass.measure.agent import Crew, MeasureError
from engpass.measure.agent_access import Addresses, socket_address
from engpass.measure.answers import DOOR, Membership, end_of
from engpass.measure.core import GroupTrial
from engpass.measure.requests import About
from engpass.types.agent import FlowRequests, Limits

_BEFORE_SECONDS = 0.15
_MEMBER_SECONDS = 0.8
_LEFT_SECONDS = 3.4
"""Seconds: two queries for the last member, 1 s apart (RFC 3376 section 8), and 1 s without a datagram."""
_LENGTH_NS = 8_000_000_000


def trial(crew: Crew, addresses: Addresses, flow: FlowRequests, stopped: Callable[[], bool]) -> GroupTrial:
    """Let all receivers join and leave.

    The agents drop the trial afterwards. If it fails the delays are unknown, but the point is still valid.
    """
    token = secrets.token_hex(16)
    found: dict[str, list[Membership]] = {host: [] for host in flow.receivers}
    failed = None
    try:
        found = _trial(crew, addresses, flow, token, stopped)
    except MeasureError as error:
        failed = error.message
    finally:
        _forget(crew, flow, token)
    return GroupTrial(member_s=_MEMBER_SECONDS, left_s=_LEFT_SECONDS, receivers=found, error=failed)


def _trial(
    crew: Crew, addresses: Addresses, flow: FlowRequests, token: str, stopped: Callable[[], bool]
) -> dict[str, list[Membership]]:
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
        result = crew.done(agent, agent.ask("collect", About(run=token)))
        found[host] = end_of(result, flow.name, "receive").membership
    return found


def _prepare(crew: Crew, addresses: Addresses, flow: FlowRequests, token: str) -> None:
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


def _forget(crew: Crew, flow: FlowRequests, token: str) -> None:
    for host in (flow.sender, *flow.receivers):
        agent = crew.agents.get(host)
        if agent is not None and not agent.gone:
            with contextlib.suppress(MeasureError):
                crew.done(agent, agent.ask("drop", About(run=token)), 3.0)
