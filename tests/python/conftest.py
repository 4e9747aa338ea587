"""Fixtures: testbeds, stores, and the command as a subprocess."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

import isolation

# Examples have no deadline: a machine may stop for longer than any example takes.
settings.register_profile("untimed", deadline=None, derandomize=True)
# `make prove` runs ten times as many examples, with new ones each time.
settings.register_profile("prove", deadline=None, max_examples=1000)
settings.load_profile("untimed")

HERE = Path(__file__).parent


def pytest_sessionstart() -> None:
    """Separate the testbeds of these tests from others on this machine."""
    isolation.enter()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that calls `when_it_keeps_up`: it judges real time and needs a quiet machine."""
    for item in items:
        if isinstance(item, pytest.Function) and "when_it_keeps_up" in item.function.__code__.co_names:
            item.add_marker("alone")


# Two hosts on a wire; small, so that it runs fast.
TESTBED = """\
name = "Two hosts"

[host.a]
cost = { per_datagram = "20 us", per_byte = "10 ns" }
[host.b]

[link.wire]
ends = ["a", "b"]
medium = "oc-3c"

[circuit.data]
from = "a"
to = "b"

[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"

[run]
duration = "20 ms"
repeats = 2

[sweep]
"traffic.stream.message" = { from = "1 kB", to = "4 kB", step = "1 kB" }

[variant.plain]
[variant.fast]
"link.wire.medium" = "oc-12c"
"""

# Limit once, simulate twice, for each of 2 variants and 4 sizes.
POINTS = 2 * 4 * (1 + 2)


@pytest.fixture
def testbed_file(tmp_path: Path) -> Path:
    """A valid testbed in a new directory."""
    path = tmp_path / "lan.toml"
    path.write_text(TESTBED)
    return path


@dataclass(frozen=True)
class Result:
    """Output of a command on standard output and standard error."""

    stdout: str
    stderr: str


class Cli:
    """The command `engpass` within this process, in a new directory; it starts fast."""

    def __init__(
        self, directory: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.directory = directory
        self._capfd = capfd
        self._monkeypatch = monkeypatch

    def __call__(self, *args: str, stdin: bytes = b"", code: int | None = 0) -> Result:
        """Run to the end, expecting an exit code; `None` accepts any."""
        from engpass.cli import main

        with self._monkeypatch.context() as patch:
            patch.chdir(self.directory)
            patch.setattr(sys, "argv", ["engpass", *args])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            self._capfd.readouterr()
            with pytest.raises(SystemExit) as exit_:
                main()
        result = Result(*self._capfd.readouterr())
        assert code is None or exit_.value.code == code, result
        return result


class Program:
    """The command `engpass` as a separate process, as a user runs it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
        return {**kept, "PYTHONWARNINGS": "error", **(extra or {})}

    def command(self, *args: str) -> list[str]:
        return [sys.executable, str(HERE / "engpass_command.py"), *args]

    def __call__(self, *args: str, code: int = 0, **env: str) -> Result:
        """Run to the end, expecting an exit code."""
        return self.shell(shlex.join(self.command(*args)), code=code, **env)

    def shell(self, line: str, code: int = 0, **env: str) -> Result:
        """Run a line of shell to the end, expecting an exit code and no trace of a traceback."""
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.directory,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        result = Result(done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in result.stderr, result.stderr
        assert "Exception ignored" not in result.stderr, result.stderr
        assert done.returncode == code, result
        return result

    def start(self, *args: str, **env: str) -> subprocess.Popen[bytes]:
        """Start and leave running."""
        return subprocess.Popen(
            self.command(*args),
            cwd=self.directory,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # Room for output that is printed before the test reads it.
            pipesize=1 << 20,
            stderr=subprocess.PIPE,
        )


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command within this process, run where `testbed_file` is."""
    return Cli(tmp_path, capfd, monkeypatch)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The command as a process, run where `testbed_file` is."""
    return Program(tmp_path)
