"""Failing links in the outputs: tables, exports, pages and claims."""

from __future__ import annotations

import csv
import functools
import io
import json
import re

import pytest
from rich.console import Console

import engpass
from conftest import Cli
from engpass.claims.curves import Campaign
from engpass.report import render
from engpass.report.figures import over_time
from engpass.results.ledger import Books, directions, family, parallel
from engpass.show.terminal import print_blocks
from engpass.timeline import timeline
from engpass.types.outcome import Outcome
from engpass.views.timeline import view as timeline_view
from snapshots import page_text

# 1000 packets per second for two seconds, over the first of two parallel links: `upper`.
PAIR = """\
name = "Two ways"

[host.a]
[host.b]
[router.near]
ecmp = "first"
[router.far]
ecmp = "first"

[link]
in = { ends = ["a", "near"], medium = "ethernet-1g" }
upper = { ends = ["near", "far"], medium = "ethernet-100" }
lower = { ends = ["near", "far"], medium = "ethernet-100" }
out = { ends = ["far", "b"], medium = "ethernet-1g" }

[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "1472 B"
rate = "11.776 Mbit/s"

[run]
duration = "2 s"
"""
# `upper` is down from 0.5 to 1 s. The routers do not use `lower` instead.
CUT = """
[event]
cut = { at = "500 ms", target = "upper", change = "down" }
mended = { at = "1 s", target = "upper", change = "up" }
"""
# One line, and a tunnel over it. Its ends send a keepalive every 60 ms.
TUNNEL = (
    PAIR.replace('lower = { ends = ["near", "far"], medium = "ethernet-100" }\n', "")
    + """
[tunnel.gre]
ends = ["near", "far"]
keepalive = { period = "60 ms", retries = 2 }
"""
)


@functools.cache
def outcome() -> Outcome:
    """The outcome of the run with the outage."""
    (made,) = engpass.loads(PAIR + CUT, name="pair.toml").run(["simulate"]).outcomes
    return made


def test_outage_is_posted_to_idle_line_down() -> None:
    (upper,) = [side.books for side in directions(outcome()) if (side.link, side.start) == ("upper", "near")]
    assert upper.share("idle: line down") == pytest.approx(0.25, rel=1e-4)
    assert family("idle: line down").key == family("idle: other way").key == "idle"
    names = upper.names
    assert names.index("idle: line down") > names.index("idle: application")


def test_reverse_line_with_outages_still_has_no_sender() -> None:
    assert Books(10, 1, {"idle: no sender": 7, "idle: line down": 3}).nobody_sends
    assert not Books(10, 1, {"idle: line down": 10}).nobody_sends
    assert not Books(10, 1, {"idle: other way": 7, "idle: line down": 3}).nobody_sends


def test_places_at_parallel_links_name_their_link(cli: Cli) -> None:
    assert parallel(outcome()) == {"upper", "lower"}
    (cli.directory / "pair.toml").write_text(PAIR + CUT)
    shown = cli("explain", "pair.toml", "--no-advice").stdout
    assert "near → far (upper) │ line down │ stream │" in shown


def test_explanation_shows_the_longest_gap_beside_the_delay(cli: Cli) -> None:
    (cli.directory / "pair.toml").write_text(PAIR + CUT)
    shown = cli("explain", "pair.toml", "--no-advice").stdout
    assert re.search(r"longest gap +│ +501 ms │ +500 lost to line down", shown)
    (made,) = [json.loads(cli("explain", "pair.toml", "--no-advice", "--json").stdout)]
    assert made["longest_gap_s"] == pytest.approx(0.501, rel=1e-3)
    assert made["lost_to_line_down"] == 500


def test_timeline_shows_outages_as_time_spans() -> None:
    recorded = timeline(engpass.loads(PAIR + CUT, name="pair.toml").campaign, "base", (), 0, 11)
    assert recorded.outages == {"upper": [[0.5, 1.0]]}
    shown = io.StringIO()
    print_blocks([timeline_view(recorded, "stream")], Console(file=shown, width=92))
    (row,) = [line for line in shown.getvalue().splitlines() if line.startswith("link down: upper")]
    # The outage is the second quarter of 40 characters.
    assert re.findall(r"[·█]+", row) == ["·" * 10 + "█" * 10 + "·" * 20]
    drawn = over_time.draw(timeline_view(recorded, "stream")).to_dict()
    assert "link down: upper" in json.dumps(drawn)
    assert "when links or tunnels were down" in timeline_view(recorded, "stream").caption


def test_timeline_shows_tunnels_that_are_down_as_time_spans() -> None:
    recorded = timeline(engpass.loads(TUNNEL + CUT, name="tunnel.toml").campaign, "base", (), 0, 11)
    assert set(recorded.tunnels_down) == {"gre at near", "gre at far"}
    shown = io.StringIO()
    print_blocks([timeline_view(recorded, "stream")], Console(file=shown, width=92))
    (row,) = [line for line in shown.getvalue().splitlines() if line.startswith("tunnel down: gre at near")]
    # The keepalives of 540 and 600 ms do not come back, that of 1020 ms does. A character is 50 ms.
    assert re.findall(r"[·█]+", row) == ["·" * 13 + "█" * 7 + "·" * 20]
    assert "tunnel down: gre at near" in json.dumps(
        over_time.draw(timeline_view(recorded, "stream")).to_dict()
    )


def test_tables_and_exports_show_gap_and_outage_losses(cli: Cli) -> None:
    (cli.directory / "pair.toml").write_text(PAIR + CUT)
    shown = cli("run", "pair.toml", "--engine", "simulate").stdout
    assert "Longest gap" in shown
    assert "501 ms" in shown
    assert "longest gap: the longest time without a received packet" in shown
    cli("export", "last", "-o", "rows.csv")
    (row,) = csv.DictReader((cli.directory / "rows.csv").read_text().splitlines())
    assert float(row["outage_longest_s"]) == pytest.approx(0.501, rel=1e-3)
    assert row["outage_lost_datagrams"] == "500"


def test_run_without_events_has_no_outage_columns(cli: Cli) -> None:
    (cli.directory / "pair.toml").write_text(PAIR)
    assert "Longest gap" not in cli("run", "pair.toml").stdout
    cli("export", "last", "-o", "rows.csv")
    assert "outage" not in (cli.directory / "rows.csv").read_text()


def test_page_shows_the_longest_gap_beside_the_delays() -> None:
    made = engpass.loads(PAIR + CUT, name="pair.toml").run(["limit", "simulate"])
    text = page_text(render(made.record, made.outcomes))
    (head,) = [line for line in text.splitlines() if line.startswith("Variant | Goodput")]
    row = next(line for line in text.splitlines() if line.startswith("base | "))
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert cells["Longest gap ms"] == "501"
    assert "near → far (upper) | line down | stream | 500" in text
    assert "nothing arrives for up to 501 ms." in text


def test_claims_can_check_outage_gaps_and_losses() -> None:
    campaign = Campaign([], [outcome(), outcome()])

    def value(quantity: str, link: str | None = None) -> tuple[float, str]:
        curve = campaign.curve("simulate", "base", "stream", quantity, None, link)
        return curve.samples[0].value, curve.unit

    gap, unit = value("longest gap")
    assert gap == pytest.approx(0.501, rel=1e-3)
    assert unit == "s"
    assert value("lost to line down") == (1000, "datagrams")
    # A quarter of the capacity of 25 MB.
    down, unit = value("idle: line down", "upper")
    assert down == pytest.approx(6.25e6, rel=1e-4)
    assert unit == "B"
