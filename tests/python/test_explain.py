"""`engpass explain`: the selected point, the texts, the files."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from msgspec.structs import replace

from conftest import TESTBED, Cli, Program
from engpass import _engpass, formatting
from engpass import cli as commands
from engpass.advice import sockets
from engpass.error import ChoiceError, EngpassError
from engpass.explain.bottleneck import _ANY_SENDER, _IDLE
from engpass.explain.point_facts import Hop
from engpass.explain.select_point import choose, choose_in
from engpass.explanation import explain
from engpass.report import render_explanation
from engpass.report.explanation import figures
from engpass.report.figures import over_time
from engpass.results import ledger
from engpass.show.sparkline import line
from engpass.show.terminal import print_blocks
from engpass.store import Store
from engpass.testbed import load, loads
from engpass.timeline import timeline as record_timeline
from engpass.types.outcome import Outcome, Place
from engpass.views.explanation import view
from engpass.views.timeline import view as timeline_view
from ledgers import chosen, links, timeline
from required import known

# Two flows into one port; the second flow is too fast for it.
CROWDED = """\
name = "A crowded port"

[host.a]
[host.b]
[host.c]
[host.noise]
[switch.s]
kind = "atm"
output_buffer = "64 cells"
[link]
a = { ends = ["a", "s"], medium = "oc-3c" }
b = { ends = ["b", "s"], medium = "oc-3c" }
c = { ends = ["s", "c"], medium = "oc-3c" }
n = { ends = ["noise", "s"], medium = "oc-3c" }
[circuit]
a = { from = "a", to = "c" }
b = { from = "b", to = "c" }
[traffic]
calm = { kind = "udp-stream", from = "a", to = "c", message = "1 kB", rate = "2 Mbit/s" }
wild = { kind = "udp-stream", from = "b", to = "c", message = "9 kB", rate = "60 Mbit/s" }
noise = { kind = "cbr", from = "noise", to = "c", rate = "100 Mbit/s line" }
[run]
duration = "100 ms"
repeats = 2
[sweep]
"traffic.wild.rate" = ["10 Mbit/s", "60 Mbit/s"]
"""


@pytest.fixture
def crowded(cli: Cli) -> Cli:
    (cli.directory / "crowded.toml").write_text(CROWDED)
    cli("run", "crowded.toml")
    return cli


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in text.splitlines()]


def test_explain_selects_the_worst_served_point(crowded: Cli) -> None:
    shown = crowded("explain").stdout
    # A datagram of 189 cells never fits into a buffer of 64 cells beside the noise, so nothing arrives.
    assert "wild, traffic.wild.rate = 10 Mbit/s: selected as the worst point" in shown
    assert re.search(r"s → c +│ buffer full │ wild", shown)
    said = next(text for text in shown.splitlines() if text.startswith("the buffer of `s` towards `c`"))
    assert re.search(r"limits `wild` to [\d.]+ [kM]?bit/s \(limit [\d.]+ Mbit/s\)", said)
    assert re.search(r": [\d.]+ → [\d.]+ Mbit/s", said)
    assert re.search(r"\d+ changes simulated in \d+ runs", shown)


def test_explain_takes_the_requested_point(crowded: Cli) -> None:
    (made,) = lines(
        crowded("explain", "--json", "--flow", "calm", "--point", "traffic.wild.rate=10000 kbit/s").stdout
    )
    assert (made["flow"], made["sweep"]) == ("calm", {"traffic.wild.rate": "10 Mbit/s"})
    assert made["selected_as_worst"] is False
    assert made["goodput_bit_per_s"] == pytest.approx(2e6, rel=0.02)
    assert made["bottleneck"]["key"] == "limit"
    assert made["summary"].startswith("application `calm` limits `calm`: it")
    assert [one["link"] for one in made["directions"]] == ["a", "c"]
    for one in made["directions"]:
        if one["ledger"] is not None:
            assert sum(one["ledger"].values()) == one["capacity"]


def test_explain_of_a_file_needs_no_run(cli: Cli) -> None:
    (cli.directory / "crowded.toml").write_text(CROWDED)
    (made,) = lines(cli("explain", "crowded.toml", "--no-advice", "--json").stdout)
    assert (made["run"], made["flow"], made["advice"]) == (None, "wild", None)
    larger = ("--set", "switch.s.output_buffer=9000 cells")
    (other,) = lines(cli("explain", "crowded.toml", "--no-advice", "--json", *larger).stdout)
    assert other["goodput_bit_per_s"] > made["goodput_bit_per_s"]
    assert not (cli.directory / "engpass.db").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--flow", "clam"], "unknown flow `clam`\nhelp: did you mean `calm`?"),
        (["--flow", "noise"], "`noise` is a generator"),
        (
            ["--point", "traffic.wild.rat=10 Mbit/s"],
            "`traffic.wild.rat` is not swept in this run\nhelp: did",
        ),
        (
            ["--point", "traffic.wild.rate=11 Mbit/s"],
            "has no value `11 Mbit/s` in this run\nhelp: did",
        ),
        (["--point", "traffic.wild.rate"], "has no value\nhelp: write `--point PATH=VALUE`"),
        (["--variant", "none"], "unknown variant `none`"),
        (["--set", "a.b=1"], "not with a stored run\nhelp: give the file"),
        (["--report", "no/such.html", "--no-advice"], "`no/such.html` cannot be written"),
    ],
)
def test_explain_rejects_invalid_choices(args: list[str], said: str, crowded: Cli) -> None:
    assert said in crowded("explain", *args, code=2).stderr


def test_explain_of_a_run_needs_simulated_points(cli: Cli, testbed_file: Path) -> None:
    cli("run", testbed_file.name, "--engine", "limit")
    assert "has no simulated points\nhelp: " in cli("explain", code=2).stderr
    cli("run", testbed_file.name, "--engine", "simulate")
    (made,) = lines(cli("explain", "--json", "--no-advice").stdout)
    assert made["limit_bit_per_s"] > 0, "limits that the run does not have are computed"


def test_explain_rejects_a_point_without_an_outcome(cli: Cli, testbed_file: Path) -> None:
    import sqlite3

    cli("run", testbed_file.name)
    with sqlite3.connect(cli.directory / "engpass.db") as connection:
        connection.execute("delete from point where position > 8")
    shown = cli("explain", "--variant", "fast", "--point", "traffic.stream.message=4 kB", code=2).stderr
    assert "has no simulated outcome at traffic.stream.message = 4 kB yet" in shown


def test_outcomes_of_another_build_are_simulated_again(cli: Cli, testbed_file: Path) -> None:
    import sqlite3

    cli("run", testbed_file.name)
    with Store.open(cli.directory / "engpass.db") as store:
        here = choose(store, store.run(), "plain", [], None)
    with sqlite3.connect(cli.directory / "engpass.db") as connection:
        connection.execute(
            'update session set environment = replace(environment, \'"build": "\', \'"build": "x\')'
        )
        connection.execute(
            "update point set outcome = replace(outcome, 'goodput_bit_per_s\":', 'goodput_bit_per_s\":1')"
        )
    with Store.open(cli.directory / "engpass.db") as store:
        stale = choose(store, store.run(), "plain", [f"{p}={v}" for p, v in here.sweep], None)
    assert (here.current, stale.current) == (True, False)
    assert explain(stale, advice=False).at.goodput == explain(here, advice=False).at.goodput


def test_explain_says_if_no_change_was_tried_or_helps() -> None:
    calm = CROWDED.replace('"9 kB", rate = "60 Mbit/s" }', '"1 kB", rate = "1 Mbit/s" }')
    made = explain(choose_in(loads(calm.partition("[sweep]")[0]), None, [], "wild"))
    assert made.advice is not None
    assert (made.advice.changes, made.advice.tried) == ((), ())
    assert made.finding.bottleneck == "application `wild`"
    assert made.sentence.endswith("; no change was simulated: no finding suggests one")
    full = CROWDED.replace("[host.b]\n", '[host.b]\nnic_buffer = "64 KiB"\n')
    stuck = explain(
        choose_in(loads(full.replace('"100 Mbit/s line"', '"155.52 Mbit/s line"')), None, [], "wild")
    )
    assert stuck.advice is not None
    assert stuck.advice.tried
    if not stuck.advice.changes:
        assert stuck.sentence.endswith("simulated changes helps")


# With ledgers


def test_lost_datagrams_on_the_line_are_the_evidence() -> None:
    made = explain(chosen("congested", "20 kB"), advice=False)
    assert made.at.tight is not None
    assert made.at.tight.place == "atomis5 → ss20"
    assert made.finding.key == "drops: buffer full"
    assert "of link `receiver` carries parts of lost datagrams" in made.sentence
    assert [step.name for step in made.waterfall][:3] == ["line rate", "physical framing", "cell headers"]
    data = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert data["waterfall"][0] == {"name": "line rate", "family": "", "share": 0.0, "remaining_share": 1.0}
    assert {drop["place"] for drop in data["drops"]} == {"atomis5 -> ss20"}
    assert data["summary"] == made.sentence
    assert sum(data["directions"][1]["ledger"].values()) == data["directions"][1]["capacity"]


def at_half_its_rate(outcome: Outcome) -> Outcome:
    """The outcome with half the rates of the stream."""
    stream = outcome.flows["stream"]
    slower = replace(
        stream,
        goodput_bit_per_s=stream.goodput_bit_per_s / 2,
        offered_bit_per_s=stream.offered_bit_per_s / 2,
    )
    return replace(outcome, flows={**outcome.flows, "stream": slower})


def test_idle_line_names_the_busy_cpu() -> None:
    one = chosen("free", "1 kB")
    made = explain(replace(one, outcomes=tuple(map(at_half_its_rate, one.outcomes))), advice=False)
    assert made.finding.key == "idle: CPU"
    assert made.sentence.startswith("the CPU of host `ss2` limits `stream` to 3.7")
    assert re.search(
        r"link `\w+` is idle 9\d\.\d % of the time while the CPU is busy with sending", made.sentence
    )


def test_full_nic_buffer_is_found_and_advised_larger() -> None:
    one = chosen("free", "1 kB")
    idle = links(0.1, 0.1, 0.0, why="idle: NIC buffer")
    halved = [replace(at_half_its_rate(outcome), links=idle) for outcome in one.outcomes]
    made = explain(replace(one, outcomes=tuple(halved)), advice=False)
    assert made.finding.key == "idle: NIC buffer"
    assert made.sentence.startswith("the NIC of host `ss2` limits `stream` to 3.7")
    assert "nic" in [proposal.kind for proposal in sockets.propose(made.at)]


def test_every_idle_reason_is_an_account() -> None:
    (idle,) = (family for family in ledger.FAMILIES if family.key == "idle")
    assert {f"idle: {reason}" for reason in _IDLE} <= set(idle.accounts)
    assert set(_ANY_SENDER) <= set(_IDLE)


def test_losses_of_parallel_links_are_distinguished() -> None:
    hop = Hop("one", "s", "r", 1e6, 0, None)
    assert hop.is_at(Place(node="s", link="one", to="r"))
    assert not hop.is_at(Place(node="s", link="two", to="r"))
    assert not hop.is_at(Place(node="r", link="one", to="s"))
    assert not hop.is_at(Place(node="s"))


SHARED: dict[str, Any] = {
    "name": "Two on a line",
    "host": {"near": {}, "far": {}, "home": {}},
    "router": {"r": {}},
    "link": {
        "one": {"ends": ["near", "r"], "medium": "ethernet-1g"},
        "two": {"ends": ["far", "r"], "medium": "ethernet-1g", "delay": "20 ms"},
        "line": {
            "ends": ["r", "home"],
            "medium": "point-to-point",
            "rate": "10 Mbit/s",
            "delay": "5 ms",
            "queue": {"drop-tail": {"limit": "20 packets"}},
        },
    },
    "traffic": {
        name: {"kind": "tcp-stream", "from": name, "to": "home", "message": "64 KiB"}
        for name in ("near", "far")
    },
    "run": {"duration": "10 s", "warmup": "2 s"},
}


def test_full_shared_line_names_the_share_of_other_flows() -> None:
    made = explain(choose_in(load(SHARED), "base", [], "far"), advice=False)
    at = made.at
    assert (at.sharing, made.finding.key) == (("near",), "shared")
    assert made.sentence.startswith("link `line` limits `far` to ")
    assert f"it is full, and 1 other flow gets {formatting.rate(at.theirs)} of it" in made.sentence
    assert "while the buffer of `r` towards `home` loses " in made.sentence
    others, last = made.waterfall[-2:]
    assert (others.name, last.name, last.left) == ("other flows", "delivered", at.goodput / 10e6)
    assert others.taken * 10e6 == pytest.approx(at.theirs, rel=0.02)


def test_each_flow_on_a_shared_line_has_its_own_idle_reason() -> None:
    # The line is idle for both flows; each gets the idle reasons of its own sender.
    hosts = {
        "near": {"tcp": {"send_buffer": "9 kB", "nagle": "off"}},
        "far": {},
        "home": {"tcp": {"receive_buffer": "30 kB"}},
    }
    links = {**SHARED["link"], "line": {**SHARED["link"]["line"], "rate": "100 Mbit/s"}}
    testbed = {**SHARED, "host": hosts, "link": links}
    found = {}
    for name in ("near", "far"):
        made = explain(choose_in(load(testbed), "base", [], name), advice=False)
        found[name] = (made.finding.key, made.finding.bottleneck)
    # `near` sends one window per round trip, which is its limit.
    near, far = ("limit", "the send buffer of host `near`"), "the receive window of host `home`"
    assert found == {"near": near, "far": ("idle: receive window", far)}


def test_explain_rejects_an_unbalanced_ledger() -> None:
    one = chosen("congested", "9 kB")
    kept = one.outcomes[0].links["sender"].directions[0].ledger
    assert kept is not None
    kept.accounts["delivered"] += 1
    with pytest.raises(EngpassError, match="the ledger of link `sender` does not balance"):
        explain(one, advice=False)


def test_explain_tables_and_page_show_all_accounts(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from engpass.explain import select_point as package

    monkeypatch.setattr(package, "choose_in", lambda *_, **__: chosen("congested", "20 kB"))
    shown = cli("explain", "any.toml", "--no-advice", code=2).stderr
    assert "any.toml" in shown
    (cli.directory / "any.toml").write_text(TESTBED)
    shown = cli("explain", "any.toml", "--no-advice", "--report", "why.html").stdout
    for account in ("physical framing", "traffic `interference`", "lost datagrams", "idle: CPU", "capacity"):
        assert account in shown
    # The capacity is ten seconds of an OC-3c.
    assert re.search(r"capacity +│ +1\.56 Gbit +100\.0 % │", shown)
    page = (cli.directory / "why.html").read_text(encoding="utf-8")
    assert "Use of the line" in page
    assert "<code>atomis5</code>" in page


def test_show_ledger_prints_the_ledger_of_a_run(cli: Cli, testbed_file: Path) -> None:
    cli("run", testbed_file.name)
    shown = cli("show", "--ledger")
    with Store.open(cli.directory / "engpass.db") as store:
        kept = any(ledger.directions(o) for o in store.outcomes(store.run().id))
    if kept:
        assert "wire: a → b" in shown.stdout
        assert "wire: b → a" not in shown.stdout, "nobody could have used it"
        assert re.search(r"capacity .* 100\.0 %", shown.stdout)
    else:
        assert "no point of `plain` has a ledger" in shown.stderr


# Timelines


def test_timeline_is_drawn_on_the_page_and_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    from engpass.cli import console

    made = replace(explain(chosen("congested", "20 kB"), advice=False), timeline=timeline())
    print_blocks(view(made), console.tables())
    shown = capsys.readouterr().out
    assert re.search(r"congestion window +[▁▂▃▄▅▆▇█ ]+ max 2\d\d\.\d\d kB", shown)
    assert re.search(r"queue atomis5 → ss20 .* of 384 cells", shown)
    assert re.search(r"timeouts +[·x]+ 1 time\b", shown)
    drawn = figures(made)
    assert list(drawn) == ["ledger-waterfall", "timeline"]
    for chart in drawn.values():
        svg = vl_convert.vegalite_to_svg(json.dumps(chart.to_dict()), allowed_base_urls=[])
        assert svg.startswith("<svg")
    page = render_explanation(made)
    assert page.count('data-chart="') == 2
    assert json.loads(json.dumps(made.to_json()))["timeline"]["duration_s"] == 10


def test_timeline_figure_has_a_panel_per_recorded_series() -> None:
    spec = over_time.draw(timeline_view(timeline(), "stream")).to_dict()
    # The panels: windows, goodput, the used queue, events, the time axis.
    assert len(spec["vconcat"]) == 5
    whole = timeline()
    empty = replace(whole, flows={"stream": replace(whole.flows["stream"], tcp=None)}, queues={})
    assert len(over_time.draw(timeline_view(empty, "stream")).to_dict()["vconcat"]) == 2
    assert timeline_view(empty, "stream").caption.startswith("The received rate")
    tcp = replace(known(whole.flows["stream"].tcp), receive_window_bytes=[4_000_000] * 1000)
    high = replace(whole, flows={"stream": replace(whole.flows["stream"], tcp=tcp)})
    shown = timeline_view(high, "stream")
    assert [curve.name for curve in shown.panels[0].curves] == ["congestion window", "in flight"]
    assert "not shown" in shown.notes[0]
    cut = replace(whole.queues["atomis5 -> ss20"], truncated=True)
    assert "Only the first of many" in timeline_view(replace(high, queues={"q": cut}), "stream").notes[0]


def test_timeline_figure_thins_many_events() -> None:
    whole = timeline()
    queue = replace(whole.queues["atomis5 -> ss20"], drops=[i / 1000 for i in range(10_000)])
    crowd = replace(whole, queues={"atomis5 -> ss20": queue})
    spec = over_time.draw(timeline_view(crowd, "stream")).to_dict()
    rows = [row for data in spec["datasets"].values() for row in data if "kind" in row]
    assert 500 < len(rows) < 2000


def test_sparkline_scales_values_to_blocks() -> None:
    assert line([0, 1, 2, 3], [0, 4, 8, 1], 4, 4) == " ▄█▁"
    assert line([0.0], [0.0], 0, 3) == "   "
    assert line([0, 3], [8, 8], 4, 4) == "████"


def test_timeline_is_recorded_or_an_error_without_support(testbed_file: Path) -> None:
    campaign = load(testbed_file).campaign
    sweep = [("traffic.stream.message", "2 kB")]
    if hasattr(_engpass.Campaign, "timeline"):
        made = record_timeline(campaign, "plain", sweep, samples=50)
        assert made.flows["stream"].delivered_bytes[-1] > 0
        assert len(made.flows["stream"].time_s) <= 51
    else:
        with pytest.raises(EngpassError, match="records no timeline"):
            record_timeline(campaign, "plain", sweep)


def test_explain_command_is_listed() -> None:
    assert "explain" in [command.name for command in commands.COMMANDS]


def test_explain_rejects_generators() -> None:
    text = re.sub(r"(calm|wild) = .*\n", "", CROWDED).partition("[sweep]")[0]
    with pytest.raises(EngpassError, match="is from generators"):
        choose_in(loads(text), None, [], None)
    with pytest.raises(ChoiceError):
        choose_in(loads(CROWDED), None, [], "noise")


def test_ctrl_c_ends_explain_soon(program: Program) -> None:
    endless = CROWDED.replace("100 ms", "100 min").partition("[sweep]")[0]
    (program.directory / "endless.toml").write_text(endless)
    process = program.start("explain", "endless.toml")
    time.sleep(3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert b"interrupted" in said


# Two hosts on a LAN; the traffic does not use the LAN but a circuit.
TWO_WAYS = """\
name = "A circuit beside a LAN"
host.a = {}
host.b = {}
switch.s = { kind = "atm" }
link.lan = { ends = ["a", "b"], medium = "ethernet-100" }
link.up = { ends = ["a", "s"], medium = "oc-3c" }
link.down = { ends = ["s", "b"], medium = "oc-3c" }
circuit.pvc = { from = "a", to = "b" }
traffic.stream = { kind = "udp-stream", from = "a", to = "b", message = "9 kB", circuit = "pvc" }
run = { duration = "100 ms" }
"""


def test_explain_uses_ledgers_of_lines_that_carry_the_flow() -> None:
    made = explain(choose_in(loads(TWO_WAYS), None, [], None), advice=False)
    carried = {side.link for side in made.at.books.values() if side.books.share("delivered") > 0}
    assert carried == {"up", "down"}, "the engine sends the traffic over the circuit"
    assert [hop.link for hop in made.at.hops] == ["up", "down"]
    assert made.at.tight is not None
    assert made.at.tight.books is not None
    assert made.at.tight.books.share("delivered") > 0.5


def test_copies_and_dma_limit_in_the_plural() -> None:
    slow = """
host.pc = { memory.bandwidth = "400 MB/s", io_bus.bandwidth = "133 MB/s", send_path = "one-copy" }
host.far = {}
link.l = { ends = ["pc", "far"], medium = "ethernet-1g" }
traffic.t = { kind = "udp-stream", from = "pc", to = "far", message = "8192 B" }
run.duration = "100 ms"
"""
    made = explain(choose_in(loads(slow), None, [], None), advice=False)
    # 8192 B take 41 us of copies at 200 MB/s, then 61.6 us of DMA at 133 MB/s.
    assert made.sentence.startswith("copies and DMA of host `pc` limit `t`: it gets 638.")
