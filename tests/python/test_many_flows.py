"""Very many flows: output is limited, says so, and appears fast."""

import json
from pathlib import Path

import pytest

from conftest import Cli

FLOWS = 230


@pytest.fixture
def many(tmp_path: Path) -> str:
    """A file with many datagram flows from one host to another."""
    flow = """
[traffic.f{0}]
kind = "udp-stream"
from = "a"
to = "b"
message = "1000 B"
rate = "{1} kbit/s"
"""
    text = """
[host.a]
[host.b]
[link.line]
ends = ["a", "b"]
medium = "point-to-point"
rate = "100 Mbit/s"
[run]
duration = "100 ms"
"""
    text += "".join(flow.format(number, 100 + number % 3) for number in range(FLOWS))
    (tmp_path / "many.toml").write_text(text)
    return "many.toml"


def test_table_shows_200_flows_and_names_the_export(cli: Cli, many: str) -> None:
    shown = cli("run", many)
    assert shown.stdout.count("│ base") == 200
    assert "200 of 230 flows are shown; `engpass export " in shown.stdout
    delays = cli("show", "--delays").stdout
    assert delays.count("│ base") == 3 * 200, "delay, queueing delay, message delay"
    assert "200 of 230 flows are shown; `engpass export " in delays
    rows = cli("export").stdout.splitlines()
    assert len(rows) == 1 + 2 * FLOWS


def test_delay_table_shows_only_flows_with_delays(cli: Cli, many: str, tmp_path: Path) -> None:
    # All flows but the last begin so late in the run that none of their datagrams arrives.
    text = (tmp_path / many).read_text()
    (tmp_path / many).write_text(text.replace("kbit/s", 'kbit/s"\nstart = "99.999 ms', FLOWS - 1))
    cli("run", many)
    delays = cli("show", "--delays").stdout
    assert f"f{FLOWS - 1}" in delays
    assert delays.count("│ base") == 3


def test_limit_shows_200_flows_and_json_has_all(cli: Cli, many: str) -> None:
    shown = cli("limit", many).stdout
    assert shown.count("idle delay: ") == 200
    assert "200 of 230 flows are shown; `--json` lists all" in shown
    assert len(json.loads(cli("limit", many, "--json").stdout)["flows"]) == FLOWS


def test_report_has_bottlenecks_of_200_flows_at_most(cli: Cli, many: str, tmp_path: Path) -> None:
    cli("run", many, "--set", 'run.duration="10 ms"')
    cli("report", "-o", "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "200 of 230 rows" in page
