"""Values that the model supports and agents do not: reported with their line, before any traffic begins."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from conftest import Cli
from engpass.results import outcomes

FAKE = f"{sys.executable} {Path(__file__).parent / 'fake_agent.py'}"

PLAIN = """\
[host.a]
[host.b]
[link.cable]
ends = ["a", "b"]
medium = "ethernet-100"
[traffic.tiny]
kind = "udp-stream"
from = "a"
to = "b"
message = "8 B"
rate = "1 Mbit/s"
[run]
duration = "20 ms"
"""
REAL = PLAIN.replace("[host.a]", '[host.a]\nreach = "local"').replace("[host.b]", '[host.b]\nreach = "local"')
TOO_SMALL = "`message` is 8 B: agents put a header into the payload of each datagram"


def test_check_warns_of_unusable_values_for_real_hosts(cli: Cli) -> None:
    (cli.directory / "tiny.toml").write_text(REAL)
    said = cli("check", "tiny.toml").stderr
    assert f"warning[not-live]: {TOO_SMALL}" in said
    assert "tiny.toml:12:11" in said
    assert "help: give 12 B to 65507 B" in said
    (cli.directory / "plain.toml").write_text(PLAIN)
    assert "not-live" not in cli("check", "plain.toml").stderr


def test_model_engines_have_no_minimum_message_size(cli: Cli) -> None:
    (cli.directory / "tiny.toml").write_text(PLAIN)
    said = cli("run", "tiny.toml", "--engine", "limit,simulate", "--json")
    assert "not-live" not in said.stderr
    assert all(outcomes.read(line).flows["tiny"].goodput_bit_per_s > 0 for line in said.stdout.splitlines())


def test_run_rejects_only_points_with_unusable_values(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGPASS_AGENT", FAKE)
    swept = REAL + '[sweep]\n"traffic.tiny.message" = ["8 B", "100 B"]\n'
    (cli.directory / "tiny.toml").write_text(swept)
    said = cli("run", "tiny.toml", "--engine", "measure", "--json", code=1)
    small, large = said.stdout.splitlines()
    assert f"error[not-live]: {TOO_SMALL}" in json.loads(small)["error"]
    assert outcomes.read(large).flows["tiny"].goodput_bit_per_s > 0


def test_real_engines_reject_unusable_values(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has no settings for real hosts; no namespace is created for an unsupported point."""
    monkeypatch.setattr("engpass.netlab.up", None)
    (cli.directory / "tiny.toml").write_text(PLAIN)
    for engine in ("measure", "emulate"):
        said = cli("run", "tiny.toml", "--engine", engine, code=1).stderr
        assert f"warning[not-live]: {TOO_SMALL}" in said
        assert f"error[not-live]: {TOO_SMALL}" in said


def test_check_warns_of_different_starts_at_one_host(cli: Cli) -> None:
    other = '[traffic.late]\nkind = "tcp-stream"\nfrom = "a"\nto = "b"\nmessage = "1 kB"\nstart = "5 ms"\n'
    (cli.directory / "late.toml").write_text(REAL.replace('"8 B"', '"80 B"') + other)
    said = cli("check", "late.toml").stderr
    assert "traffic `late` starts at 5 ms and `tiny` at 0 s, both at host `a`" in said
