"""An agent without traffic: it follows docs/agent.md and invents round numbers.

`FAKE_AGENT` makes it misbehave: `die-in-run` at the start of a run, `fail=SIZE` for messages of this size,
`freeze=SIZE` when traffic with such messages begins; `stop=REQUEST=SIZE` stops it, as a signal does, at a
request of a run with such messages.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

HOW = os.environ.get("FAKE_AGENT", "")


def tell(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def hello() -> None:
    protocol = 9 if HOW == "old" else 1
    addresses = [{"interface": "lo", "address": "127.0.0.1", "prefix": 8, "mtu": 65536}]
    host = {"name": "fake", "kernel": "0", "addresses": addresses}
    tell({"event": "hello", "protocol": protocol, "version": "0", "host": host, "settings": {}, "timer": {}})


class Fake:
    def __init__(self) -> None:
        self.flows: list[dict[str, Any]] = []
        self.asked: list[str] = []

    def serve(self, do: str, fields: dict[str, Any]) -> dict[str, Any]:
        if do == "prepare":
            if f"fail={fields['message_bytes']}" == HOW:
                return {
                    "error": {"code": "refused", "cause": "nobody listens", "help": "look at the firewall"}
                }
            self.flows.append(fields)
            return {"ok": {"port": 4000 + len(self.flows), "streams": [{"congestion": "fake"}]}}
        if do == "start":
            if HOW == "die-in-run":
                sys.stderr.write("out of luck\n")
                sys.stderr.flush()
                os._exit(9)
            if any(f"freeze={flow['message_bytes']}" == HOW for flow in self.flows):
                threading.Event().wait(600)
            for flow in self.flows:
                if flow["side"] == "connect":
                    done = {
                        "event": "done",
                        "run": flow["run"],
                        "flow": flow["flow"],
                        "role": "send",
                        "ended": "duration",
                    }
                    threading.Timer((flow["warmup_ns"] + flow["duration_ns"]) / 1e9, tell, [done]).start()
            return {"ok": {"started_ns": 1}}
        if do == "collect":
            flows, self.flows = [self.result(flow) for flow in self.flows], []
            return {
                "ok": {
                    "flows": flows,
                    "before": {"at_ns": 1, "snmp": {"Udp": {"NoPorts": 1}}},
                    "after": {"at_ns": 5, "snmp": {"Udp": {"NoPorts": 1}}},
                }
            }
        if do == "drop":
            self.flows = []
        return {"ok": {}}

    def result(self, flow: dict[str, Any]) -> dict[str, Any]:
        """The result of a flow that sends 100 messages per second and receives one fewer in total."""
        role = "send" if flow["side"] == "connect" else "receive"
        messages = flow["duration_ns"] * 100 // 10**9 - (role == "receive")
        found: dict[str, Any] = {
            "flow": flow["flow"],
            "kind": flow["kind"],
            "role": role,
            "ended": "duration",
            "bytes": messages * flow["message_bytes"],
            "messages": messages,
            "cpu": {"user_ns": 10**6, "system_ns": 10**6},
        }
        if flow["kind"] == "request-response" and role == "send":
            found["latency"] = {
                "count": messages,
                "mean_ns": 2000,
                "min_ns": 1000,
                "p50_ns": 1500,
                "p99_ns": 9000,
            }
        if flow["kind"] == "udp-stream" and role == "receive":
            found["sequence"] = {"received": messages, "duplicate": 0, "reordered": 1}
        if flow["kind"] == "tcp-stream" and role == "send":
            opened = {"total_retrans": 3, "busy_us": 0, "rwnd_limited_us": 0}
            closed = {"total_retrans": 8, "busy_us": 1000, "rwnd_limited_us": 250, "rtt_us": 42}
            found["streams"] = [{"granted": {"congestion": "fake"}, "tcp": {"open": opened, "close": closed}}]
        return found


def main() -> None:
    if HOW == "silent":
        sys.stdin.read()
        return
    if HOW == "garbage":
        sys.stdout.buffer.write(b"\x1b[2Jhello\x07\xff\n" * 50)
        sys.stdout.flush()
        sys.stdin.read()
        return
    if HOW == "broken":
        sys.stderr.write("no libraries here\n")
        sys.exit(3)
    hello()
    fake = Fake()
    for text in sys.stdin:
        fields = json.loads(text)
        number, do = fields.pop("id"), fields.pop("do")
        flows = [fields] if do == "prepare" else fake.flows
        if any(f"stop={do}={flow['message_bytes']}" == HOW for flow in flows):
            os.kill(os.getpid(), signal.SIGSTOP)
        tell({"id": number, **fake.serve(do, fields)})


main()
