"""Single receivers of a multicast group: in `explain`, `limit` and exports."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from conftest import Cli
from engpass.error import ChoiceError
from engpass.explain.select_point import choose_in
from engpass.explanation import explain
from engpass.formatting import duration
from engpass.report.figures import FIGURES
from engpass.results.aggregate import tabulate
from engpass.testbed import loads
from required import known

# A tenth is lost before the paths diverge, and then a fifth on the path to the second receiver.
LOSSY = """\
name = "A group and two bad lines"
host = { s = {}, near = {}, far = {} }
switch.w = { kind = "ethernet" }
link.up = { ends = ["s", "w"], medium = "ethernet-100", loss = "10 %" }
link.one = { ends = ["w", "near"], medium = "ethernet-100" }
link.two = { ends = ["w", "far"], medium = "ethernet-100", loss = "20 %" }
traffic.v = { kind = "multicast", from = "s", to = ["near", "far"], message = "1 kB", rate = "20 Mbit/s" }
run = { duration = "1 s" }
"""


def test_explanation_concerns_one_multicast_receiver() -> None:
    testbed = loads(LOSSY)
    chosen = choose_in(testbed, None, [], None)
    assert (chosen.flow, chosen.receiver, chosen.selected_as_worst) == ("v", "far", True)
    at = explain(chosen, advice=False).at
    assert [hop.link for hop in at.hops] == ["up", "two"]
    lost = {drop.place.link: drop.datagrams for drop in at.own_drops}
    # A loss before the paths diverge counts once here, and twice in the outcome.
    (outcome,) = chosen.outcomes
    seen = outcome.flows["v"].receivers
    datagrams = seen["far"].datagrams
    assert datagrams is not None
    assert lost["up"] + lost["two"] == datagrams.lost
    (both,) = (drop.datagrams for drop in outcome.drops if drop.place.link == "up")
    assert both == 2 * lost["up"]


def test_the_idle_delay_beside_that_of_a_group_is_its_slowest_receivers() -> None:
    slow = [("link.two.medium", "ethernet-10"), ("link.two.delay", "3 ms")]
    run = loads(LOSSY, [*slow, ("traffic.v.rate", "5 Mbit/s")]).run()
    table = tabulate(run.record, run.outcomes)
    (delay,) = (figure for figure in FIGURES if figure.name == "delay")
    idle = {
        name: known(run.outcomes[0].flows["v"].receivers[name].limit).idle_delay_s for name in ("near", "far")
    }
    said = f"In an idle network it is {duration(idle['far'])}."
    assert f"The delay is that of the slowest receiver, v to far. {said}" in delay.says(table, "v")
    assert said in delay.says(table, "v to far")
    assert f"In an idle network it is {duration(idle['near'])}." in delay.says(table, "v to near")


def test_check_counts_the_receivers_of_groups(cli: Cli) -> None:
    (cli.directory / "group.toml").write_text(LOSSY)
    assert "4 nodes, 1 flow to 2 receivers, 1 variant" in cli("check", "group.toml").stdout


def test_explain_accepts_a_named_receiver() -> None:
    testbed = loads(LOSSY)
    made = explain(choose_in(testbed, None, [], "v to near"), advice=False)
    assert made.at.goodput == made.chosen.outcomes[0].flows["v"].receivers["near"].goodput_bit_per_s
    assert "`v to near`" in made.sentence
    assert "the line from `s` to `w`" in made.sentence
    assert made.to_json()["receiver"] == "near"
    with pytest.raises(ChoiceError, match="flow `v to s` does not exist"):
        choose_in(testbed, None, [], "v to s")


def test_change_reports_its_effect_on_other_receivers() -> None:
    made = explain(choose_in(loads(LOSSY), None, [], "v to far"))
    assert made.advice is not None
    (change,) = (one for one in made.advice.changes if "link `two`" in one.say)
    assert change.own.flow == "v to far"
    assert [other.flow for other in change.others] == ["v to near"]
    assert change.own.after.loss < change.own.before.loss


def test_limit_and_export_list_each_receiver(cli: Cli, tmp_path: Path) -> None:
    narrow = LOSSY.replace(
        'ends = ["w", "far"], medium = "ethernet-100"', 'ends = ["w", "far"], medium = "ethernet-10"'
    )
    file = tmp_path / "narrow.toml"
    file.write_text(narrow)
    printed = cli("limit", str(file)).stdout
    assert "application `v` limits `v to near`" in printed
    assert "link `two` limits `v to far`" in printed
    flow = json.loads(cli("limit", str(file), "--json").stdout)["flows"]["v"]
    near, far = (flow["receivers"][host]["limit"] for host in ("near", "far"))
    assert near["bound"]["bit_per_s"] > 2 * far["bound"]["bit_per_s"]
    assert near["idle_delay_s"] < far["idle_delay_s"]
    store = tmp_path / "engpass.db"
    cli("run", str(file), "--store", str(store), "--engine", "limit", "--engine", "simulate")
    out = tmp_path / "points.csv"
    cli("export", "last", "--store", str(store), "-o", str(out))
    rows = [row for row in csv.DictReader(io.StringIO(out.read_text())) if row["engine"] == "limit"]
    assert [(row["flow"], row["receiver"]) for row in rows] == [
        ("v", ""),
        ("v to near", "near"),
        ("v to far", "far"),
    ]
    assert [row["bottleneck"] for row in rows] == ["link `two`", "application `v`", "link `two`"]
    # No receiver is above its bound, since each has its own bound.
    assert "above" not in cli("show", "last", "--store", str(store)).stdout


def test_queue_delays_a_receiver_that_gets_all_it_asked_for() -> None:
    """A member for a part of the run gets fewer bits; that its datagrams are late is another matter."""
    testbed = loads("""
host = { a = {}, b = {} }
router.r = {}
link.up = { ends = ["a", "r"], medium = "ethernet-100" }
link.down = { ends = ["r", "b"], medium = "ethernet-10" }
event.joins = { target = "b", traffic = "tv", at = "1500 ms", change = "join" }
run = { duration = "3 s" }
[traffic.tv]
kind = "multicast"
from = "a"
to = ["b"]
message = "1316 B"
rate = "6 Mbit/s"
video = { frame_rate = "25 fps", group_of_pictures = 5, intra_size = "300 %" }
""")
    made = explain(choose_in(testbed, None, [], None), advice=False)
    assert made.at.served.loss == 0.0
    assert made.finding.state == "harmed"
    assert made.sentence.startswith("the buffer of `r` towards `b` harms `tv`, which gets ")
