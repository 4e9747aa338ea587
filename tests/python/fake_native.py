"""A double of `engpass._engpass`, used while the real one cannot be imported: reads TOML, invents figures."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import tomllib
from typing import Any

DELAY = float(os.environ.get("ENGPASS_FAKE_DELAY", "0"))


class InvalidTestbed(ValueError):
    def __init__(self, message: str, code: str = "invalid") -> None:
        super().__init__(message)
        self.rendered = f"error[{code}]: {message}"
        self.rendered_color = self.rendered
        self.diagnostics = [
            {"code": code, "severity": "error", "path": None, "file": "?", "line": 1, "column": 1}
            | {"message": message, "help": None}
        ]


class Interrupted(RuntimeError):
    pass


class Unsupported(RuntimeError):
    pass


class Interrupt:
    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()


UNITS = {"B": 1, "kB": 1000, "bit/s": 1, "Mbit/s": 1e6, "s": 1, "ms": 1e-3, "%": 0.01}


def _value(text: str) -> dict[str, Any]:
    number, _, unit = text.partition(" ")
    if unit in UNITS:
        base = {"kB": "B", "Mbit/s": "bit/s", "ms": "s", "%": ""}.get(unit, unit)
        return {"text": text, "number": float(number) * UNITS[unit], "unit": base}
    return {"text": text, "number": None, "unit": None}


def _steps(spec: Any) -> list[str]:
    if isinstance(spec, list):
        return [str(v) for v in spec]
    (low, unit), (high, _), (step, _) = (spec[k].split(" ") for k in ("from", "to", "step"))
    return [f"{v} {unit}" for v in range(int(low), int(high) + 1, int(step))]


class Campaign:
    def __init__(self, text: str, overrides: list[tuple[str, str]]) -> None:
        data = tomllib.loads(text)
        self.text = text
        self.name = data.get("name", "unnamed")
        self.description = data.get("description")
        self.variants = list(data.get("variant", {})) or ["base"]
        self.repeats = int(dict(overrides).get("run.repeats", data.get("run", {}).get("repeats", 1)))
        self.seed = 1
        self.duration_s = 1.0
        gone = {p for p, _ in overrides}
        self._axes = [
            (p, [_value(t) for t in _steps(s)]) for p, s in data.get("sweep", {}).items() if p not in gone
        ]
        self._data = data
        self._fail = dict(overrides).get("fake.fail")

    def axes(self) -> str:
        return json.dumps([{"path": p, "values": v} for p, v in self._axes])

    def topology(self) -> str:
        flows = [
            {"name": n, "kind": t["kind"], "from": t["from"], "to": t["to"]}
            for n, t in self._data.get("traffic", {}).items()
        ]
        nodes = [{"name": n, "kind": "host"} for n in self._data.get("host", {})]
        return json.dumps({"nodes": nodes, "links": [], "circuits": [], "flows": flows})

    def run(
        self, engine: str, variant: str, sweep: list[tuple[str, str]], repeat: int, interrupt: Interrupt
    ) -> str:
        end = time.monotonic() + DELAY
        while time.monotonic() < end:
            if interrupt.is_set():
                raise Interrupted
            time.sleep(0.002)
        if self._fail is not None and any(t == self._fail for _, t in sweep):
            raise InvalidTestbed(f"{self._fail} is too much", "out-of-range")
        number = sum(_value(t)["number"] or 0 for _, t in sweep)
        goodput = 1e6 * (1 + self.variants.index(variant)) + number + repeat
        limit = engine == "limit"
        flows: dict[str, Any] = {}
        for name, t in self._data.get("traffic", {}).items():
            flow: dict[str, Any] = {
                "kind": t["kind"],
                "goodput_bit_per_s": goodput,
                "offered_bit_per_s": goodput,
            }
            if limit:
                stages = [{"name": "line rate", "rate_bit_per_s": 155_520_000.0}]
                flow |= {
                    "bottleneck": "link `out`",
                    "next": "host",
                    "sentence": "The link.",
                    "stages": stages,
                }
            else:
                flow |= {
                    "sent_datagrams": 10,
                    "received_datagrams": 9,
                    "lost_datagrams": 1,
                    "in_flight_datagrams": 0,
                }
            flows[name] = flow
        return json.dumps(
            {
                "variant": variant,
                "engine": engine,
                "repeat": repeat,
                "seed": 0 if limit else 1 + repeat,
                "sweep": {p: _value(t)["number"] if _value(t)["number"] is not None else t for p, t in sweep},
                "flows": flows,
                "links": {},
                "drops": [],
            }
        )


def load(text: bytes, source: str, overrides: list[tuple[str, str]], max_points: int | None) -> Campaign:
    try:
        campaign = Campaign(text.decode(), overrides)
    except UnicodeDecodeError as error:
        raise InvalidTestbed(f"{source}: not UTF-8: {error}", "not-utf-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidTestbed(f"{source}: {error}", "syntax") from None
    if not campaign._data.get("traffic"):
        raise InvalidTestbed(f"{source}: no traffic", "no-traffic")
    return campaign


def version() -> str:
    return "0.0.0"


def schema() -> str:
    return "{}"


def catalogue() -> str:
    return "{}"


def install() -> None:
    """Stand in for the native module if there is none."""
    try:
        import engpass._engpass
    except ImportError:
        import engpass

        sys.modules["engpass._engpass"] = engpass._engpass = sys.modules[__name__]
