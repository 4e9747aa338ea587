"""The loads of engines: in the outcome, and over time in numbers, on the page and in a terminal."""

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

import engpass
from conftest import Cli
from engpass.report.figures import over_time
from engpass.show.terminal import print_blocks
from engpass.timeline import MOST_ENGINES, busiest, loads, timeline
from engpass.types.outcome import EngineLine, NodeLine, Timeline
from engpass.views.timeline import view as timeline_view

CARDS = Path(__file__).parents[1] / "data/cards.toml"


def recorded() -> Timeline:
    bed = engpass.loads(CARDS.read_text(), name="cards.toml")
    return timeline(bed.campaign, "base", (), 0, 100)


def test_load_equals_packets_times_their_work(cli: Cli) -> None:
    """A process forwards both groups, makes a copy of the video, and puts the lesson into the tunnel."""
    said = json.loads(cli("run", str(CARDS), "--engine", "simulate", "--json", "--fresh").stdout)
    (lan,) = (side for side in said["links"]["lan"]["directions"] if side["from"] == "source")
    # 50 packets of each group in each of 2 s.
    each = lan["frames"]["sent"] / 2
    assert each == 100
    loads = {name: engine["load"] for name, engine in said["nodes"]["edge"]["engines"].items()}
    assert loads == pytest.approx(
        {
            "forwarding": each * ((4 + 1) + (4 + 1)) * 1e-3 / 2,
            # Packets of both come together, so only the first of two finds the card without work.
            "lan": each * (2 * 0.5 + 0.25) * 1e-3 / 2,
            "members": 0,
        }
    )


def test_loads_of_parts_keep_the_busy_time() -> None:
    engine = EngineLine(time_s=[1.0, 2.0, 4.0, 5.0], load=[1.0, 0.0, 0.5, 0.2])
    assert loads(engine, 4) == [(0.0, 1.0, 1.0), (1.0, 2.0, 0.0), (2.0, 4.0, 0.5), (4.0, 5.0, 0.2)]
    # In two parts: 1 s of 2 s, then 1.2 s of 3 s.
    assert loads(engine, 2) == [(0.0, 2.0, 0.5), (2.0, 5.0, pytest.approx(0.4))]


def test_timeline_shows_the_busiest_engines_in_the_order_of_the_file() -> None:
    nodes = {
        f"r{number}": NodeLine(engines={"forwarding": EngineLine(time_s=[1.0], load=[number / 20])})
        for number in range(MOST_ENGINES + 2)
    }
    whole = recorded()
    shown = busiest(Timeline(duration_s=1.0, flows={}, queues={}, nodes=nodes))
    # Two engines are too many: that of `r0` has no load, and that of `r1` the smallest.
    assert [name for name, _ in shown] == [f"r{number}: forwarding" for number in range(2, MOST_ENGINES + 2)]
    assert [name for name, _ in busiest(whole)] == ["edge: forwarding", "edge: lan"]


def test_timeline_has_a_panel_and_a_row_for_each_engine_that_works() -> None:
    whole = recorded()
    spec = over_time.draw(timeline_view(whole, "lesson")).to_dict()
    titles = [panel["layer"][0]["encoding"].get("y", {}).get("title") for panel in spec["vconcat"]]
    assert ["edge", "forwarding", "load in %"] in titles
    assert ["edge", "lan", "load in %"] in titles
    assert "each CPU and forwarding engine is busy" in timeline_view(whole, "lesson").caption
    # Two packets of each 20 ms take 5 ms of the processor and 5 ms more, and 1.25 ms of the card.
    for (_, engine), load in zip(busiest(whole), (0.5, 0.0625), strict=True):
        ((_, end, share),) = loads(engine, 1)
        assert end == pytest.approx(whole.duration_s)
        assert share == pytest.approx(load, rel=0.01)
    shown = StringIO()
    print_blocks([timeline_view(whole, "lesson")], Console(file=shown, width=100))
    assert "load edge: lan" in shown.getvalue()
