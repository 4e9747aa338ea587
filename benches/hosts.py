"""Two namespaces joined by a veth pair, and traffic between them: agents, iperf3, nuttcp."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from machine import HEAVY, BenchError

SECOND = 10**9
LEFT, RIGHT = "10.77.0.1", "10.77.0.2"


@dataclass(frozen=True)
class Sample:
    """Figures of one run of a stream."""

    bit_per_s: float
    """Received payload rate."""
    packets_per_s: float
    """Received packet rate; 0 for a byte stream."""
    lost: float
    """Share of lost datagrams."""
    cpu_s_per_gb: float
    """CPU time of both processes per GB; 0 if unknown."""


def why_not() -> str | None:
    """Return why network namespaces are not available here; `None` if they are."""
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    if not shutil.which("ip"):
        return "needs `ip` of iproute2"
    return None


def peers() -> list[str]:
    """Return the other tools that are installed."""
    return [tool for tool in ("iperf3", "nuttcp") if shutil.which(tool)]


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"`ip {' '.join(words)}`: {done.stderr.strip()}")


def _heavy(namespace: str, command: list[str]) -> list[str]:
    return [*HEAVY, "ip", "netns", "exec", namespace, *command]


class Agent:
    """An agent in a namespace, controlled through pipes."""

    def __init__(self, namespace: str, program: Path) -> None:
        """Start the agent and read its hello."""
        pipe = subprocess.PIPE
        command = _heavy(namespace, [str(program)])
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        if self.process.stdin is None or self.process.stdout is None:
            raise BenchError("an agent has no pipes")
        self.into, self.out = self.process.stdin, self.process.stdout
        self.hello = self._line()
        self.count = 0

    def _line(self) -> dict[str, Any]:
        text = self.out.readline()
        if not text:
            raise BenchError("an agent has ended")
        found: dict[str, Any] = json.loads(text)
        return found

    def ask(self, what: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 (JSON)
        """Send a request and return the answer; events are skipped."""
        self.count += 1
        self.into.write(json.dumps({"id": self.count, "do": what, **fields}) + "\n")
        self.into.flush()
        while "event" in (line := self._line()):
            pass
        if "error" in line:
            raise BenchError(f"the agent says: {line['error']['cause']}")
        answer: dict[str, Any] = line["ok"]
        return answer

    def close(self) -> None:
        """Stop the agent."""
        self.into.close()
        self.process.wait(10)


class Hosts:
    """Two hosts on one machine, an agent on each."""

    def __init__(self, left: str, right: str, program: Path) -> None:
        """Start the agents."""
        self.left, self.right = left, right
        self.sender, self.receiver = Agent(left, program), Agent(right, program)

    @classmethod
    @contextmanager
    def up(cls, program: Path) -> Iterator[Self]:
        """Create the hosts, and remove them in any case."""
        left, right = (f"engpass-bench-{side}-{os.getpid()}" for side in "lr")
        try:
            for name in (left, right):
                _ip("netns", "add", name)
            _ip("-n", left, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", right)
            for name, address in ((left, LEFT), (right, RIGHT)):
                _ip("-n", name, "addr", "add", f"{address}/24", "dev", "veth0")
                for device in ("veth0", "lo"):
                    _ip("-n", name, "link", "set", device, "up")
            hosts = cls(left, right, program)
            try:
                yield hosts
            finally:
                hosts.sender.close()
                hosts.receiver.close()
        finally:
            for name in (left, right):
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def run(self, seconds: float, **flow: Any) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ANN401 (JSON)
        """Run one flow and return the results of the sending and the receiving end."""
        base = {"run": secrets.token_hex(16), "flow": "bench", "interval_ns": 0, **flow}
        base |= {"warmup_ns": SECOND // 10, "duration_ns": int(seconds * SECOND)}
        run = base["run"]
        there = self.receiver.ask("prepare", side="listen", address=RIGHT, peers=[LEFT], **base)
        to = [f"{RIGHT}:{there['port']}"]
        self.sender.ask("prepare", side="connect", address=LEFT, to=to, **base)
        self.receiver.ask("start", run=run)
        self.sender.ask("start", run=run)
        # `collect` waits until the sender has ended.
        sent = self.sender.ask("collect", run=run)["flows"][0]
        time.sleep(0.05)
        got = self.receiver.ask("collect", run=run)["flows"][0]
        if "error" in sent:
            raise BenchError(sent["error"]["cause"])
        return sent, got

    def comparable(self, others: list[str]) -> list[str]:
        """Return the tools that use CUBIC: nuttcp always uses the default of the host."""
        default = self.sender.hello["settings"].get("tcp_congestion_control")
        return [name for name in others if name != "nuttcp" or default == "cubic"]

    def engpass(self, kind: str, message: int, seconds: float, **more: Any) -> Sample:  # noqa: ANN401 (JSON)
        """Run one stream with the agents."""
        sent, got = self.run(seconds, kind=kind, message_bytes=message, **more)
        took = got["elapsed_ns"] / SECOND
        cpu = sum(end["cpu"]["user_ns"] + end["cpu"]["system_ns"] for end in (sent, got))
        received = got.get("sequence", {}).get("received", 0)
        lost = 1 - received / sent["messages"] if "sequence" in got else 0.0
        return Sample(got["bytes"] * 8 / took, received / took, lost, cpu / max(got["bytes"], 1))

    def iperf3(self, kind: str, message: int, seconds: float) -> Sample:
        """Run one stream with iperf3, with a new server for each run."""
        more = ["-u", "-b", "0"] if kind == "udp-stream" else ["-C", "cubic"]
        server = ["iperf3", "-s", "-1", "-p", "5777"]
        client = ["iperf3", "-c", RIGHT, "-p", "5777", "-J", "-t", str(max(1, round(seconds)))]
        end = json.loads(self._tool(server, [*client, "-l", str(message), *more]))["end"]
        cpu = end["cpu_utilization_percent"]
        if kind == "udp-stream":
            whole = end["sum"]
            packets = (whole["packets"] - whole["lost_packets"]) / whole["seconds"]
            return Sample(packets * message * 8, packets, whole["lost_percent"] / 100, 0.0)
        whole = end["sum_received"]
        busy = (cpu["host_total"] + cpu["remote_total"]) / 100 * whole["seconds"]
        return Sample(whole["bits_per_second"], 0.0, 0.0, busy / (whole["bytes"] / 1e9))

    def nuttcp(self, kind: str, message: int, seconds: float) -> Sample:
        """Run one stream with nuttcp, with a new server for each run."""
        more = ["-u", "-R", "0"] if kind == "udp-stream" else []
        server = ["nuttcp", "-S", "-1", "-P", "5778", "--nofork"]
        client = ["nuttcp", "-P", "5778", "-p", "5779", "-fparse", "-T", str(max(1, round(seconds)))]
        text = self._tool(server, [*client, "-l", str(message), *more, RIGHT])
        found = dict(word.split("=") for word in text.split() if "=" in word)
        took, got = float(found["real_seconds"]), float(found["megabytes"]) * 2**20
        cpu = (float(found["tx_cpu"]) + float(found["rx_cpu"])) / 100 * took
        packets = got / message / took if kind == "udp-stream" else 0.0
        return Sample(got * 8 / took, packets, float(found.get("data_loss", 0)) / 100, cpu / (got / 1e9))

    def _tool(self, server: list[str], client: list[str]) -> str:
        quiet = subprocess.DEVNULL
        serving = subprocess.Popen(_heavy(self.right, server), stdout=quiet, stderr=quiet)
        try:
            time.sleep(0.2)
            command = _heavy(self.left, client)
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        finally:
            serving.terminate()
            serving.wait(10)
        if done.returncode != 0:
            raise BenchError(f"`{' '.join(client)}`: {(done.stderr or done.stdout).strip()[-500:]}")
        return done.stdout
