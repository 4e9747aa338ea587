"""A headless Chromium, driven over the DevTools protocol.

It opens pages, evaluates expressions, takes pictures and collects messages.
"""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 30.0
"""Longest wait for the browser, in seconds: only a broken page takes so long, even on a loaded machine."""


def find() -> str | None:
    """The browser's program: `$CHROMIUM`, or the first of the usual names."""
    return os.environ.get("CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


class Page:
    """One tab and all its events."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=PATIENCE, suppress_origin=True)
        self._number = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._socket.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression; waits for a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until the expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < end, f"{expression} did not come true: {self.complaints()}"
            time.sleep(0.05)

    def size(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def scheme(self, name: str) -> None:
        """Set the preferred colour scheme of the system: `light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, file: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=file.resolve().as_uri())
        self.wait("document.readyState === 'complete'")

    def screenshot(self, file: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """Exceptions, errors and warnings of the console, and log entries of the browser."""
        said = []
        for event in self.events:
            match event["method"], event["params"]:
                case "Runtime.exceptionThrown", parameters:
                    said.append(f"exception: {parameters['exceptionDetails']}")
                case "Runtime.consoleAPICalled", parameters if parameters["type"] in (
                    "error",
                    "warning",
                    "assert",
                ):
                    said.append(f"console: {parameters['args']}")
                case "Log.entryAdded", parameters if parameters["entry"]["level"] in ("error", "warning"):
                    said.append(f"log: {parameters['entry']}")
        return said

    def requests(self) -> list[str]:
        """Requested addresses, without data within the page."""
        sent = [
            e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith(("data:", "blob:"))]


@contextmanager
def browser(program: str, directory: Path) -> Iterator[Page]:
    """A fresh browser with its profile in `directory`, ended with the block."""
    arguments = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
        "--no-default-browser-check",
        "--hide-scrollbars",
        "--remote-debugging-port=0",
        f"--user-data-dir={directory}",
        "about:blank",
    ]
    process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port = directory / "DevToolsActivePort"
        end = time.monotonic() + PATIENCE
        while not (port.exists() and port.read_text().count("\n") >= 1):
            assert process.poll() is None, f"the browser ended with {process.returncode}"
            assert time.monotonic() < end, "the browser did not open its port"
            time.sleep(0.05)
        page = Page(_tab(port.read_text().splitlines()))
        try:
            yield page
        finally:
            page.close()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _tab(port: list[str]) -> str:
    """The address of the only tab, requested from the browser."""
    base = f"ws://127.0.0.1:{port[0]}"
    connection = websocket.create_connection(f"{base}{port[1]}", timeout=PATIENCE, suppress_origin=True)
    try:
        connection.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
        while (message := json.loads(connection.recv())).get("id") != 1:
            pass
    finally:
        connection.close()
    targets = message["result"]["targetInfos"]
    return (
        f"{base}/devtools/page/{next(target['targetId'] for target in targets if target['type'] == 'page')}"
    )
