"""Runs one point: the testbed's traffic between its agents, from `prepare` to `collect` (docs/agent.md)."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from engpass.measure.agent import Crew, MeasureError
from engpass.measure.agent_access import Addresses, socket_address
from engpass.measure.answers import DOOR, READING, Reading
from engpass.measure.core import check_end
from engpass.measure.precision import Rule
from engpass.measure.requests import About
from engpass.types.agent import FlowRequests

_LEAD_NS = 5_000_000  # delay before the start, so that senders on several hosts begin together
_LATE_SECONDS = 5.0  # how much longer than planned a sender may take
_RESIDUE_SECONDS = 0.02  # for packets in flight when the senders have ended
_SILENCE_SECONDS = 0.1  # longer once packets have arrived: a busy machine may stall
_MOST_RESIDUE_SECONDS = 2.0
SETTLING_SECONDS = 20.0
"""Longest wait for a network that has packets in flight after the senders have ended."""


class Collected(msgspec.Struct):
    """The agents' answers by host as received, and how long the run took."""

    results: dict[str, bytes]
    seconds: float
    valid: bool = True
    """False if an emulated network delivered packets too late for a valid result."""

    @property
    def answers(self) -> dict[str, msgspec.Raw]:
        """The answers as parts of a JSON text."""
        return {host: msgspec.Raw(result) for host, result in self.results.items()}


class Measurement:
    """The run of one point, with its agents and flows."""

    def __init__(
        self,
        crew: Crew,
        addresses: Addresses,
        flows: Sequence[FlowRequests],
        stopped: Callable[[], bool],
        rule: Rule | None = None,
        started: Callable[[float], None] | None = None,
        settled: Callable[[], bool] | None = None,
        settling: float = SETTLING_SECONDS,
    ) -> None:
        """`started` is called with the monotonic time at which senders begin.

        `settled`, for a network that knows, returns True once no packet is in flight any more. It is asked
        for at most `settling` seconds.
        """
        self._crew, self._addresses, self._flows, self._stopped = crew, addresses, flows, stopped
        self._rule, self._started, self._settled = rule, started, settled
        self._settling = settling
        self._token = secrets.token_hex(16)
        senders = dict.fromkeys(flow.sender for flow in flows)
        hosts = senders | dict.fromkeys(host for flow in flows for host in flow.receivers)
        self._senders = [crew.agents[host] for host in senders]
        # A host that sends and receives is started with the senders; its receivers wait for the first byte.
        self._receivers = [crew.agents[host] for host in hosts if host not in senders]

    def run(self) -> Collected:
        """Make the traffic and collect the counts.

        Raises `MeasureError`. Agents that still answer have dropped the run then.
        """
        begin = time.monotonic()
        self._crew.events.clear()
        try:
            self._prepare()
            self._start()
            self._watch()
            results = self._collect()
        except BaseException:
            self._drop()
            raise
        return Collected(results, time.monotonic() - begin)

    # Before

    def _prepare(self) -> None:
        doors: dict[str, list[str]] = {}
        groups: dict[str, str] = {}
        asked = []
        for flow in self._flows:
            for host in flow.receivers:
                if flow.group is not None:
                    # All receivers of a multicast group use one port, which the first receiver chooses.
                    self._listened(flow, host, self._listen(flow, host, groups.get(flow.name)), doors, groups)
                else:
                    asked.append((flow, host, self._listen(flow, host, None)))
        for flow, host, number in asked:
            self._listened(flow, host, number, doors, groups)
        numbers = [
            (flow, self._connect(flow, doors[flow.name], groups.get(flow.name))) for flow in self._flows
        ]
        for flow, number in numbers:
            try:
                self._crew.done(self._crew.agents[flow.sender], number)
            except MeasureError as error:
                raise _between(flow, error) from None

    def _listen(self, flow: FlowRequests, host: str, group: str | None) -> int:
        if flow.group is not None:
            group = group or socket_address(flow.group, 0)
        peers = self._addresses.all_of(flow.sender)
        end = replace(flow.receive, run=self._token, flow=flow.name, side="listen", peers=peers, group=group)
        return self._crew.agents[host].ask("prepare", end)

    def _listened(
        self, flow: FlowRequests, host: str, number: int, doors: dict[str, list[str]], groups: dict[str, str]
    ) -> None:
        door = self._crew.answer(self._crew.agents[host], number, DOOR)
        address = self._addresses.of(host, seen_from=flow.sender)
        doors.setdefault(flow.name, []).append(socket_address(address, door.port))
        if door.group:
            groups[flow.name] = door.group

    def _connect(self, flow: FlowRequests, doors: list[str], group: str | None) -> int:
        end = replace(flow.send, run=self._token, flow=flow.name, side="connect", to=doors, group=group)
        return self._crew.agents[flow.sender].ask("prepare", end)

    # Between

    def _start(self) -> None:
        asked = [(agent, agent.ask("start", About(run=self._token))) for agent in self._receivers]
        for agent, number in asked:
            self._crew.done(agent, number)
        begin = {flow.sender: flow.start_ns for flow in self._flows}
        at = time.monotonic() + _LEAD_NS / 1e9
        numbers = [
            (agent, agent.ask("start", About(run=self._token, after_ns=begin[agent.host] + _LEAD_NS)))
            for agent in self._senders
        ]
        if self._started is not None:
            self._started(at)
        for agent, number in numbers:
            self._crew.done(agent, number)

    def _watch(self) -> None:
        """Wait until every sender is done. Raises `MeasureError` if an end fails or takes too long."""
        left = {(flow.sender, flow.name) for flow in self._flows}
        stopping = False
        longest = max(_end_ns(flow) for flow in self._flows) / 1e9
        for _ in self._crew.wait(longest + _LATE_SECONDS):
            if self._stopped():
                raise KeyboardInterrupt
            self._crew.look()
            for agent, event in self._crew.events:
                if event.event == "done":
                    check_end(agent.host, event)
                    if event.role == "send":
                        left.discard((agent.host, event.flow))
                elif event.event == "interval" and self._rule is not None:
                    self._rule.take(event.flow, agent.host, event)
            self._crew.events.clear()
            if not left:
                return
            if not stopping and self._rule is not None and self._rule.reached():
                stopping = True
                self._end_all()
        hosts = ", ".join(f"`{name}` at host `{host}`" for host, name in sorted(left))
        raise MeasureError(
            f"{hosts} did not end within {longest + _LATE_SECONDS:.1f} s",
            "check whether that host is overloaded",
        )

    def _end_all(self) -> None:
        """Stop all senders, because the stop rule is satisfied."""
        numbers = []
        for flow in self._flows:
            agent = self._crew.agents[flow.sender]
            numbers.append((agent, agent.ask("stop", About(run=self._token, flow=flow.name))))
        for agent, number in numbers:
            self._crew.done(agent, number)

    # After

    def _collect(self) -> dict[str, bytes]:
        # TCP needs no wait: the receiver sees the end of the stream.
        if any(flow.send.kind == "udp-stream" for flow in self._flows):
            self._settle()
        # Receivers are asked first, so that they read what their sockets hold and stop.
        agents = [*self._receivers, *self._senders]
        numbers = [agent.ask("collect", About(run=self._token)) for agent in agents]
        return {
            agent.host: self._crew.done(agent, number) for agent, number in zip(agents, numbers, strict=True)
        }

    def _settle(self) -> None:
        """Wait until no packet is in flight: the network says so, or no more datagrams arrive."""
        if self._settled is None:
            self._wait_for_silence()
            return
        last = time.monotonic() + self._settling
        self._pause(_RESIDUE_SECONDS)
        while not self._settled() and time.monotonic() < last:
            self._pause(_RESIDUE_SECONDS)

    def _wait_for_silence(self) -> None:
        """Wait until no datagrams arrive at receiving hosts; the pauses grow once some have arrived."""
        flows = [flow for flow in self._flows if flow.send.kind == "udp-stream"]
        hosts = dict.fromkeys(host for flow in flows for host in flow.receivers)
        agents = [self._crew.agents[host] for host in hosts]

        def heard() -> int:
            numbers = [agent.ask("readings") for agent in agents]
            told = [self._crew.answer(agent, n, READING) for agent, n in zip(agents, numbers, strict=True)]
            return sum(map(_datagrams, told))

        last = time.monotonic() + _MOST_RESIDUE_SECONDS
        pause, before = _RESIDUE_SECONDS, heard()
        while True:
            self._pause(pause)
            now = heard()
            if now == before or time.monotonic() >= last:
                return
            pause, before = _SILENCE_SECONDS, now

    def _pause(self, seconds: float) -> None:
        for _ in self._crew.wait(seconds):
            pass
        if self._stopped():
            raise KeyboardInterrupt

    def _drop(self) -> None:
        """Make the agents that still answer drop the run."""
        numbers = []
        for agent in list(self._crew.agents.values()):
            if not agent.gone:
                with contextlib.suppress(MeasureError):
                    numbers.append((agent, agent.ask("drop", About(run=self._token))))
        for agent, number in numbers:
            # An agent without this run reports an error. One that does not answer is marked as gone.
            with contextlib.suppress(MeasureError):
                self._crew.done(agent, number, 3.0)


def _end_ns(flow: FlowRequests) -> int:
    """The end of a flow's traffic, in ns from the start of the run."""
    return flow.start_ns + flow.warmup_ns + flow.duration_ns


def _between(flow: FlowRequests, error: MeasureError) -> MeasureError:
    to = ", ".join(f"`{host}`" for host in flow.receivers)
    return MeasureError(f"traffic `{flow.name}` from `{flow.sender}` to {to}: {error.message}", error.help)


def _datagrams(reading: Reading) -> int:
    """Datagrams that a host received, including those for which its sockets had no room."""
    keys = ("InDatagrams", "InErrors")
    return sum(reading.snmp.get(group, {}).get(key, 0) for group in ("Udp", "Udp6") for key in keys)
