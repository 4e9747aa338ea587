"""A driver without a model: it carries every packet at once and follows the protocol of the real driver.

`FAKE_DRIVER` makes it misbehave: `mute` never gets ready, `refuse` reports why it cannot start, `die` ends
when its window opens, `late` exceeds its limit of lateness.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import socket
import struct
import sys
import time
from typing import Any

HOW = os.environ.get("FAKE_DRIVER", "")
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
MTU = 1500


def device(netns: str, name: str) -> int:
    """Create a TUN device in a namespace; it exists as long as this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(netns, os.O_RDONLY)
    assert libc.setns(there, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    assert libc.setns(home, CLONE_NEWNET) == 0
    os.close(home)
    os.close(there)
    return tun


def goal(packet: bytes) -> bytes:
    return packet[16:20] if packet[0] >> 4 == 4 else packet[24:40]


class Driver:
    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.devices: dict[int, str] = {}
        self.doors: dict[bytes, int] = {}
        self.carried = 0
        self.opened: float | None = None
        for host in config["hosts"]:
            tun = device(host["netns"], host["device"])
            self.devices[tun] = host["name"]
            for address in host["addresses"]:
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                self.doors[socket.inet_pton(family, address)] = tun
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(config["socket"])
        self.listener.listen()

    def serve(self) -> None:
        waits = selectors.DefaultSelector()
        for tun in self.devices:
            waits.register(tun, selectors.EVENT_READ, self.carry)
        waits.register(self.listener, selectors.EVENT_READ, lambda _fd: self.accept(waits))
        while True:
            for key, _ in waits.select():
                key.data(key.fd)

    def carry(self, tun: int) -> None:
        for _ in range(64):
            try:
                packet = os.read(tun, 1 << 17)
            except OSError:
                return
            to = self.doors.get(goal(packet))
            if to is not None:
                self.carried += 1
                with contextlib.suppress(OSError):
                    os.write(to, packet)

    def accept(self, waits: selectors.BaseSelector) -> None:
        peer, _ = self.listener.accept()
        waits.register(peer, selectors.EVENT_READ, lambda _fd: self.answer(peer, waits))

    def answer(self, peer: socket.socket, waits: selectors.BaseSelector) -> None:
        # The client may have ended before it gets the response.
        with contextlib.suppress(ConnectionError):
            if asked := peer.recv(1 << 16):
                for line in asked.splitlines():
                    peer.sendall(json.dumps(self.does(json.loads(line)["do"])).encode() + b"\n")
                    if json.loads(line)["do"] == "stop":
                        sys.exit(0)
                return
        waits.unregister(peer)
        peer.close()

    def does(self, what: str) -> dict[str, Any]:
        lateness = self.lateness()
        if what == "status":
            hosts: list[dict[str, Any]] = [{"name": "a", "sent_packets": self.carried, "backlog": 0}]
            hosts[0] |= {"discarded": {"group": 0, "unknown": 2}, "dropped_by_kernel": 5}
            hosts[0] |= {"failures": 7, "last_failure": "Input/output error (os error 5)"}
            hosts.append({**hosts[0], "name": "b", "discarded": {}, "dropped_by_kernel": 0, "failures": 0})
            status = {"at_ps": time.monotonic_ns() * 1000, "inside": 0, "hosts": hosts}
            lost = [{"way": "a to b", "packets": 1}, {"way": "b to a", "packets": 1234}]
            return {"ok": {**status, "lost": lost, "links": self.links(), "lateness": lateness}}
        if what == "window":
            if HOW == "die":
                os._exit(9)
            self.opened = time.monotonic()
            return {"ok": {}}
        if what == "end-window":
            assert self.opened is not None, "no window is open"
            self.opened = None
            place = {"node": "a", "link": "line", "to": "b"}
            drops = [{"place": place, "cause": "loss", "flow": "a to b", "cells": 0, "datagrams": 2}]
            way = {"kind": "outside", "goodput_bit_per_s": 0.0, "offered_bit_per_s": 0.0}
            outcome = {"flows": {"a to b": way}, "links": {}, "drops": drops, "events": self.carried}
            return {"ok": {"outcome": outcome, "lateness": lateness}}
        return {"ok": {}}

    def lateness(self) -> dict[str, Any]:
        late = 2_000_000 if HOW == "late" else 30_000
        return {
            "packets": 10,
            "over_limit": 0,
            "p50_ns": late // 2,
            "p99_ns": late,
            "p999_ns": late,
            "max_ns": late,
            "limit_ns": 1_000_000,
            "valid": HOW != "late",
            "late": {"count": 10, "histogram": [[late, 10]]},
        }

    def links(self) -> list[dict[str, Any]]:
        return [
            {
                "link": "line",
                "from": "a",
                "to": "b",
                "rate_bit_per_s": 10_000_000,
                "bits": self.carried * MTU * 8,
                "queue": 3,
                "queue_unit": "packets",
                "lost": 2,
            }
        ]


def main() -> None:
    config = json.loads(sys.stdin.read())
    if HOW == "refuse":
        sys.exit("the model has no such thing\nhelp: ask for less")
    if HOW == "mute":
        time.sleep(300)
    driver = Driver(config)
    print(json.dumps({"event": "ready", "process": os.getpid()}), flush=True)
    driver.serve()


main()
