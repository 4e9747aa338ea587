"""The controller's side of an agent: a process, and lines of JSON in both directions (docs/agent.md)."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import IO, TypeVar

import msgspec

from engpass import child
from engpass.error import EngpassError
from engpass.measure.answers import Hello, Line
from engpass.measure.requests import About
from engpass.types.agent import Prepare

T = TypeVar("T")

PROTOCOL = 1
"""The version of the protocol that this controller speaks."""

HELLO_SECONDS = 8.0
"""Seconds in which an agent must greet; with the time to end the agent, an error comes within 10 s."""

ANSWER_SECONDS = 9.0
"""Seconds in which an agent must answer a request; a working one answers sooner."""

QUIET_SECONDS = 6.0
"""An agent that is silent for this number of seconds is stuck: a working one answers pings even if busy."""

_PING_SECONDS = 15.0
_ASK_SECONDS = 2.0
_END_SECONDS = 3.0
_BLIND_SECONDS = 1.0
_MOST_SAID = 3
_MOST_LINE_BYTES = 8 << 20
_LINE = msgspec.json.Decoder(Line)


class MeasureError(EngpassError):
    """A point could not be measured, or a host could not be reached."""


class GoneError(MeasureError):
    """The channel to an agent has ended, or the agent does not answer."""


class Reply(msgspec.Struct, frozen=True):
    """One line from an agent; a line `None` means the end of its channel."""

    agent: Agent
    line: Line | None
    text: bytes = b""


class Agent:
    """A running agent on a host. The lines of all agents arrive in one queue."""

    def __init__(self, host: str, how: str, argv: Sequence[str], inbox: SimpleQueue[Reply]) -> None:
        self.host, self.how = host, how
        self.hello: Hello | None = None
        self.answers: dict[int, Line] = {}
        self.gone = False
        self._number = 0
        self._spoke = self._heard = time.monotonic()
        self._said: deque[str] = deque(maxlen=20)
        self._inbox = inbox
        try:
            self._process = subprocess.Popen(  # noqa: S603 (our own words, no shell)
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C is for the controller; agents end when their channel closes.
                start_new_session=True,
                env=child.environment(),
            )
        except OSError as error:
            raise MeasureError(
                f"host `{host}` ({how}): `{argv[0]}` cannot be run: {error.strerror}", "install it"
            ) from None
        assert self._process.stdout is not None  # noqa: S101 (asked for above)
        assert self._process.stderr is not None  # noqa: S101
        self._threads = [
            threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline(_MOST_LINE_BYTES):
                try:
                    self._inbox.put(Reply(self, _LINE.decode(line), line))
                except ValueError:
                    # The line is no JSON, such as a greeting of the remote shell.
                    self._note(line[:200])
        self._inbox.put(Reply(self, None))

    def _listen(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline(_MOST_LINE_BYTES):
                self._note(line[:500])

    def _note(self, line: bytes) -> None:
        """Keep a line outside the protocol for error messages; control characters become spaces."""
        text = line.decode("utf-8", "replace")
        if text := "".join(c if c.isprintable() else " " for c in text).strip():
            self._said.append(text)

    def ask(self, do: str, fields: Prepare | About | None = None) -> int:
        """Send a request; returns its number. Raises `GoneError`."""
        self._number += 1
        told = {} if fields is None else msgspec.to_builtins(fields)
        text = json.dumps({"id": self._number, "do": do, **told}, ensure_ascii=False) + "\n"
        assert self._process.stdin is not None  # noqa: S101 (asked for above)
        try:
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
        except (OSError, ValueError):
            raise self.lost() from None
        self._spoke = time.monotonic()
        return self._number

    def keep_awake(self) -> None:
        """Ping the agent if it got no request for a while, since an agent ends if its channel is silent."""
        if not self.gone and time.monotonic() - self._spoke > _PING_SECONDS:
            self.ask("ping")

    def heard(self) -> None:
        """Take a line of the agent as a sign of life."""
        self._heard = time.monotonic()

    def watch(self) -> None:
        """Raise `GoneError` if the agent sent nothing for `QUIET_SECONDS`; ping it before that."""
        quiet = time.monotonic() - self._heard
        if quiet > QUIET_SECONDS:
            raise self.stuck(QUIET_SECONDS)
        if quiet > _ASK_SECONDS and time.monotonic() - self._spoke > _ASK_SECONDS:
            self.ask("ping")

    def stuck(self, seconds: float) -> GoneError:
        """Mark the agent as gone and return the error for one that does not answer."""
        self.gone = True
        return GoneError(
            f"the agent of host `{self.host}` ({self.how}) does not answer within {seconds:.0f} s",
            "the next point starts a new agent; check whether that host is overloaded or unreachable",
        )

    def lost(self) -> GoneError:
        """Mark the agent as gone and return the error for a closed channel, with its standard error."""
        self.gone = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._threads[1].join(0.5)
        code = self._process.poll()
        return GoneError(*why_gone(self.host, self.how, code, list(self._said)))

    def unheard(self) -> MeasureError:
        """The error for an agent that has not greeted within `HELLO_SECONDS`."""
        said = "; ".join(list(self._said)[-_MOST_SAID:])
        return MeasureError(
            f"host `{self.host}` ({self.how}) does not answer within {HELLO_SECONDS:g} s"
            + (f": {said}" if said else ""),
            _cure_for(self.how, said),
        )

    def hang_up(self) -> None:
        """Close the channel to the agent, upon which it ends."""
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def end(self) -> None:
        """Close the channel and kill the process if it does not end in time.

        A process that never greeted, or no longer answers, is killed at once.
        """
        self.hang_up()
        try:
            self._process.wait(_END_SECONDS if self.hello and not self.gone else 0.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join(1.0)
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self.gone = True


def why_gone(host: str, how: str, code: int | None, said: Sequence[str]) -> tuple[str, str]:
    """The cause and the cure for an agent that has ended."""
    told = "; ".join(said[-_MOST_SAID:])
    if how.startswith("ssh ") and code == 255:
        return f"host `{host}`: {how} failed: {told or 'no reason given'}", _cure_for(how, told)
    if code == 127 or "not found" in told or child.NOT_FOUND in told:
        isolated = child.NOT_FOUND in told and not how.startswith("ssh ")
        cure = child.NOT_FOUND_CURE if isolated else "install engpass there"
        return (
            f"host `{host}` ({how}) has no agent: {told or 'the command was not found'}",
            f"{cure}, or set ENGPASS_AGENT to the command that starts its agent",
        )
    if "Cannot open network namespace" in told:
        return f"host `{host}` ({how}): {told}", "`ip netns list` shows the namespaces of this machine"
    what = (
        f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    )
    if code is None:
        what = "closed its channel"
    return (
        f"the agent of host `{host}` ({how}) {what}" + (f": {told}" if told else ""),
        "the next point starts it again; check that host if this happens again",
    )


def _cure_for(how: str, said: str) -> str:
    if not how.startswith("ssh "):
        return "check whether that host is overloaded"
    destination = how.removeprefix("ssh ")
    if "Permission denied" in said or "publickey" in said:
        return f"let `ssh {destination} true` work without a prompt, with a key or an ssh agent"
    if "Host key verification failed" in said:
        return f"verify the host's key, and accept it once: `ssh {destination}`"
    if "Could not resolve" in said:
        return "check the name in `reach`"
    return f"try `ssh {destination} true`; keys, ports and jump hosts come from your ssh configuration"


class Crew:
    """The agents of a session, whose lines arrive in one queue."""

    def __init__(self) -> None:
        self.inbox: SimpleQueue[Reply] = SimpleQueue()
        self.agents: dict[str, Agent] = {}
        self.events: list[tuple[Agent, Line]] = []
        self._looked = 0.0

    def add(self, host: str, how: str, argv: Sequence[str]) -> Agent:
        """Start an agent without waiting for its greeting."""
        agent = self.agents[host] = Agent(host, how, argv, self.inbox)
        return agent

    def drop(self, host: str) -> None:
        """End the agent of a host, if it has one."""
        agent = self.agents.pop(host, None)
        if agent is not None:
            agent.end()

    def end(self) -> None:
        """End all agents."""
        for agent in self.agents.values():
            agent.hang_up()
        for host in list(self.agents):
            self.drop(host)

    def step(self, seconds: float) -> None:
        """Process the next line, or ping idle agents if none comes in time. Raises `GoneError`."""
        try:
            reply = self.inbox.get(timeout=max(0.0, seconds))
        except Empty:
            for agent in self.agents.values():
                agent.keep_awake()
            return
        if reply.agent.gone or self.agents.get(reply.agent.host) is not reply.agent:
            return
        if reply.line is None:
            raise reply.agent.lost()
        reply.agent.heard()
        line = reply.line
        if line.event == "hello":
            reply.agent.hello = Hello.read(reply.text)
        elif line.event is not None:
            self.events.append((reply.agent, line))
        elif line.id is not None:
            reply.agent.answers[line.id] = line

    def wait(self, seconds: float) -> Iterator[None]:
        """Yield now and after each processed line, until `seconds` are over."""
        last = time.monotonic() + seconds
        yield
        while (left := last - time.monotonic()) > 0:
            self.step(min(left, 0.2))
            yield

    def look(self) -> None:
        """Raise `GoneError` if an agent sends nothing any more. Call this often while waiting."""
        now = time.monotonic()
        # After a long gap between calls, or a stop of this process, lines may be unread: restart the clocks.
        blind, self._looked = now - self._looked > _BLIND_SECONDS, now
        for agent in self.agents.values():
            if blind:
                agent.heard()
            if not agent.gone:
                agent.watch()

    def greeted(self, agents: Sequence[Agent]) -> None:
        """Wait for the agents' greetings.

        Raises `MeasureError` if one is missing or speaks another version of the protocol.
        """
        for _ in self.wait(HELLO_SECONDS):
            if all(agent.hello for agent in agents):
                break
        for agent in agents:
            if agent.hello is None:
                raise agent.unheard()
            if agent.hello.protocol != PROTOCOL:
                raise MeasureError(
                    f"the agent of host `{agent.host}` speaks protocol {agent.hello.protocol},"
                    f" but this engpass speaks protocol {PROTOCOL}",
                    f"install one version: engpass {agent.hello.version} here, or this version there",
                )

    def answer(
        self, agent: Agent, number: int, read: Callable[[bytes], T], seconds: float = ANSWER_SECONDS
    ) -> T:
        """Wait for the answer to a request and parse it.

        Raises `MeasureError` if the agent reports an error, `GoneError` if it does not answer.
        """
        answer = self.done(agent, number, seconds)
        try:
            return read(answer)
        except msgspec.DecodeError as error:
            raise MeasureError(
                f"the agent of host `{agent.host}` sent an unknown answer: {error}",
                "install the same version of engpass on both hosts",
            ) from None

    def done(self, agent: Agent, number: int, seconds: float = ANSWER_SECONDS) -> bytes:
        """Wait for the answer to a request and return it unparsed. Raises as `answer` does."""
        for _ in self.wait(seconds):
            if number in agent.answers:
                break
            self.look()
        line = agent.answers.pop(number, None)
        if line is None:
            raise agent.stuck(seconds)
        if line.error is not None:
            raise MeasureError(f"host `{agent.host}`: {line.error.cause or 'failed'}", line.error.help)
        return bytes(line.ok)
