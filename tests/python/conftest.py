"""Fixtures: testbeds, stores, and the command as a subprocess."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import fake_native

fake_native.install()

HERE = Path(__file__).parent

# Two hosts on a wire: sound for the real check, small enough to run in no time.
TESTBED = """\
name = "Two hosts"

[host.a]
[host.b]

[link.wire]
ends = ["a", "b"]
medium = "ethernet-10"

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
"link.wire.medium" = "ethernet-100"
"""

# Limit once, simulate twice, for each of 2 variants and 4 sizes.
POINTS = 2 * 4 * (1 + 2)


@pytest.fixture
def testbed_file(tmp_path: Path) -> Path:
    """A sound testbed in a directory of its own."""
    path = tmp_path / "lan.toml"
    path.write_text(TESTBED)
    return path


@dataclass(frozen=True)
class Result:
    """What a command printed."""

    stdout: str
    stderr: str


class Cli:
    """The command `engpass`, run in a directory as a user would."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        path = os.pathsep.join([str(HERE), str(HERE.parents[1] / "python")])
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
        return {**kept, "PYTHONPATH": path, "PYTHONWARNINGS": "error", **(extra or {})}

    def command(self, *args: str) -> list[str]:
        return [sys.executable, str(HERE / "engpass_command.py"), *args]

    def __call__(
        self, *args: str, stdin: bytes | None = None, code: int | None = 0, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end, expecting an exit code (`None`: any)."""
        done = subprocess.run(
            self.command(*args),
            cwd=self.directory,
            env=self.environment(env),
            input=stdin if stdin is not None else b"",
            capture_output=True,
            timeout=60,
        )
        result = subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )
        assert "Traceback" not in result.stderr, result.stderr
        assert code is None or result.returncode == code, (result.returncode, result.stdout, result.stderr)
        return result

    def start(self, *args: str, **env: str) -> subprocess.Popen[bytes]:
        """Start and leave running."""
        return subprocess.Popen(
            self.command(*args),
            cwd=self.directory,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command, run where `testbed_file` is."""
    return Cli(tmp_path)


@pytest.fixture
def cli_in() -> Callable[[Path], Cli]:
    """The command, run in another directory."""
    return Cli


@pytest.fixture
def engpass_main(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command within this process, for tests that put something of their own into it."""
    from engpass.cli import main

    def run(*args: str, code: int = 0) -> Result:
        monkeypatch.setattr(sys, "argv", ["engpass", *args])
        with pytest.raises(SystemExit) as exit_:
            main()
        out, err = capfd.readouterr()
        assert exit_.value.code == code, err
        return Result(out, err)

    return run
