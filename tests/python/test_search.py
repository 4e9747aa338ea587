"""`engpass search` on simulated and on real networks."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from typing import Any

import pytest

from conftest import Cli
from engpass import child
from engpass.error import EngpassError
from engpass.netlab import kernel
from engpass.report.page import render_search
from engpass.search import Goal
from engpass.search.found import found as search_result
from engpass.search.found import tried
from engpass.search.run import Settings, run_search
from engpass.search.trial_runner import TrialRunner
from engpass.show.markup import prose
from engpass.store import Store
from engpass.testbed import loads
from required import known

NARROW = """\
name = "narrow"
[host.a]
[host.b]
[router.r]
queue = { drop-tail = { limit = "30 kB" } }
[link.wide]
ends = ["a", "r"]
medium = "ethernet-100"
[link.narrow]
ends = ["r", "b"]
medium = "point-to-point"
rate = "20 Mbit/s"
mtu = "1500 B"
[run]
duration = "1 s"
[traffic.u]
kind = "udp-stream"
from = "a"
to = "b"
message = "1472 B"
"""
# Payload rate of packets of 1500 B without framing.
CAPACITY = 20e6 * 1472 / 1500

live = pytest.mark.skipif(
    not kernel.privileged() or shutil.which("ip") is None or shutil.which("tc") is None,
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip` and `tc`",
)


GROUP = """\
name = "group"
[host.a]
[host.b]
[host.c]
[switch.s]
kind = "ethernet"
queue = { drop-tail = { limit = "30 kB" } }
[link.a]
ends = ["a", "s"]
medium = "ethernet-100"
[link.b]
ends = ["s", "b"]
medium = "ethernet-100"
[link.c]
ends = ["s", "c"]
medium = "ethernet-10"
[traffic.video]
kind = "multicast"
from = "a"
to = ["b", "c"]
group = "239.1.1.1"
message = "1000 B"
rate = "1 Mbit/s"
"""

SHAPED = """\
[host.a]
[host.b]
[link.atm]
ends = ["a", "b"]
medium = "oc-3c"
[circuit.c]
from = "a"
to = "b"
shaping = "100000 cells/s"
[traffic.u]
kind = "udp-stream"
from = "a"
to = "b"
message = "9152 B"
"""
# A datagram has 8 + 20 bytes of UDP and IP, 8 of LLC and SNAP and 8 of AAL5: 9196 bytes, in 192 cells of 48.
SHAPED_CAPACITY = 100_000 / 192 * 9152 * 8

QUEUED = """\
[host.a]
[host.b]
[switch.s]
kind = "ethernet"
queue = { drop-tail = { limit = "150 kB" } }
[link.wide]
ends = ["a", "s"]
medium = "ethernet-100"
[link.narrow]
ends = ["s", "b"]
medium = "ethernet-10"
[traffic.u]
kind = "udp-stream"
from = "a"
to = "b"
message = "1472 B"
"""
# 1472 of 1538 bytes on the line, at 10 Mbit/s.
QUEUED_CAPACITY = 1e7 * 1472 / 1538


def search(cli: Cli, *args: str, code: int = 0, text: str = NARROW) -> list[dict[str, Any]]:
    (cli.directory / "narrow.toml").write_text(text)
    said = cli("search", "narrow.toml", "--json", *args, code=code)
    return [json.loads(line) for line in said.stdout.splitlines()]


def test_rfc_2544_search_finds_the_link_capacity(cli: Cli) -> None:
    *trials, last = search(cli, "--engine", "simulate", "--method", "rfc2544", "--width", "0.5 %")
    found = last["result"]
    # A queue of 30 kB holds an excess of 12 ms of the 60 s.
    assert found["throughput_bit_per_s"] <= CAPACITY * (1 + 0.012 / 60)
    assert found["lowest_lossy_bit_per_s"] > CAPACITY
    assert found["lowest_lossy_bit_per_s"] - found["throughput_bit_per_s"] <= 0.005 * CAPACITY * 1.01
    assert found["departures"] == []
    assert all(trial["duration_s"] == 60 for trial in trials)
    # The first trial fills the first link: 1472 of 1538 bytes at 100 Mbit/s.
    assert trials[0]["load_bit_per_s"] == int(100e6 * 1472 / 1538)


def test_mlrsearch_finds_the_link_capacity(cli: Cli) -> None:
    goal = ("--loss", "0 %", "--trial", "60 s", "--sum", "60 s", "--exceed", "0 %", "--initial", "1 s")
    *trials, last = search(cli, "--engine", "simulate", *goal)
    (found,) = last["result"]["goals"]
    assert found["regular"]
    assert found["lower_bit_per_s"] <= CAPACITY * (1 + 0.012 / 60) < found["upper_bit_per_s"] * 1.001
    assert found["conditional_throughput_bit_per_s"] == found["lower_bit_per_s"]
    assert sum(trial["duration_s"] for trial in trials) < 60 * 8


def test_frame_loss_is_the_load_above_capacity(cli: Cli) -> None:
    args = ("--engine", "simulate", "--method", "frame-loss", "--trial", "5 s", "--figures", "pictures")
    *trials, last = search(cli, *args)
    assert [trial["loss"] for trial in trials[-2:]] == [0.0, 0.0]
    for trial in trials[:-2]:
        fits = CAPACITY * 5 + 30_000 * 8
        assert trial["loss"] == pytest.approx(1 - fits / (trial["load_bit_per_s"] * 5), abs=0.01)
    assert last["result"]["departures"] == ["trials last 5 s instead of 60 s (RFC 2544 section 24)"]
    written = sorted(file.name for file in (cli.directory / "pictures").iterdir())
    names = ("loss", "received", "steps")
    assert written == [f"{name}.{kind}" for name in names for kind in ("png", "svg")]


def test_throughput_by_frame_size_is_one_table(cli: Cli) -> None:
    (cli.directory / "narrow.toml").write_text(NARROW)
    args = ("--engine", "simulate", "--method", "rfc2544", "--trial", "1 s", "--frames", "64,1518")
    said = cli("search", "narrow.toml", *args)
    assert "Throughput by frame size" in said.stdout
    # Ethernet carries 148,809.5 frames/s of 64 bytes at 100 Mbit/s, and 8,127.4 of 1518 bytes.
    assert "148,810 frames/s" in said.stdout or "148,809 frames/s" in said.stdout
    assert "8,127 frames/s" in said.stdout
    assert "not conforming: trials last 1 s" in said.stdout
    assert cli("runs").stdout.count("rfc2544") == 2


def test_multicast_throughput_is_that_of_the_slowest_receiver(cli: Cli) -> None:
    args = ("--engine", "simulate", "--method", "rfc2544", "--width", "0.5 %")
    *_, last = search(cli, *args, text=GROUP)
    # 1000 of 1066 bytes at 10 Mbit/s; the queue holds an excess of some milliseconds.
    assert last["result"]["throughput_bit_per_s"] == pytest.approx(1e7 * 1000 / 1066, rel=0.01)


def test_search_resumes_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    testbed, store = loads(NARROW), Store.open(":memory:")
    settings = Settings(method="rfc2544", trial=1.0)
    made = 0

    def after_five(*_: object) -> None:
        nonlocal made
        made += 1
        if made == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_search(testbed, store, settings, traffic="u", engine="simulate", watch=after_five)
    (stopped,) = store.runs()
    assert stopped.result is None
    kept = store.run(stopped.id, any_method=True).trials
    assert len(kept) == 5
    ended = run_search(testbed, store, settings, traffic="u", engine="simulate")
    assert ended.id == stopped.id
    assert ended.trials[:5] == kept
    whole = run_search(testbed, store, settings, traffic="u", engine="simulate")
    assert whole.id != ended.id
    assert (whole.result, whole.trials) == (ended.result, ended.trials)
    flows = [outcome.flows["u"] for outcome in store.outcomes(whole.id)]
    assert [known(flow.datagrams).sent for flow in flows] == [trial["sent"] for trial in whole.trials]


def test_on_off_traffic_throughput_is_a_mean_rate(cli: Cli) -> None:
    bursts = NARROW.replace("udp-stream", "udp-on-off").replace("30 kB", "300 kB")
    bursts += 'rate = "1 Mbit/s"\non = "10 ms"\noff = "10 ms"\n'
    args = ("--engine", "simulate", "--method", "rfc2544", "--trial", "10 s")
    *_, last = search(cli, *args, "--max", "40 Mbit/s", text=bursts)
    # A burst of 10 ms at twice the mean rate fits into the queue, so the mean rate decides.
    assert last["result"]["throughput_bit_per_s"] == pytest.approx(CAPACITY, rel=0.02)


@pytest.mark.parametrize("lengths", ["fixed", "exponential"])
@pytest.mark.parametrize("load", [2_000_000, 15_000_000])
def test_trial_of_on_off_traffic_offers_its_load(lengths: str, load: int) -> None:
    bursts = NARROW.replace("udp-stream", "udp-on-off")
    bursts += f'rate = "1 Mbit/s"\non = "10 ms"\noff = "10 ms"\nlengths = "{lengths}"\n'
    with TrialRunner(loads(bursts), "u", "simulate", "base", lambda: False) as runner:
        trial, _ = runner.trial(load, 10.0)
    # Bursts of 3.4 datagrams have only three; 500 random bursts typically deviate by 6 %.
    assert trial.sent * 1472 * 8 / 10.0 == pytest.approx(load, rel=0.15)


def test_poisson_shortfall_does_not_count_as_loss(cli: Cli) -> None:
    text = NARROW.replace('kind = "udp-stream"', 'kind = "poisson"').replace(
        'message = "1472 B"', 'message = "100 B"\nrate = "1 Mbit/s"'
    )
    method = ("--engine", "simulate", "--method", "frame-loss", "--whole")
    *trials, _ = search(cli, *method, "--trial", "200 ms", "--max", "1 Mbit/s", text=text)
    # A trial has at most 250 datagrams, so their standard deviation is 6 % or more.
    assert any(one["sent"] < 0.98 * one["load_bit_per_s"] * 0.2 / 800 for one in trials)
    assert [one["loss"] for one in trials] == [0.0] * len(trials)


def test_search_rejects_invalid_options(cli: Cli) -> None:
    (cli.directory / "narrow.toml").write_text(NARROW)
    for args, cause in (
        (("--traffic", "v"), "unknown traffic `v`"),
        (("--method", "bisect"), "unknown method `bisect`"),
        (("--engine", "limit"), "unknown engine for searches `limit`"),
        (("--max", "20 parsec"), "`--max` is `20 parsec`"),
        (("--method", "rfc2544", "--loss", "1 %"), "`rfc2544` has no `--loss`"),
        (("--method", "frame-loss", "--width", "1 %"), "`--method mlrsearch` or `--method rfc2544`"),
        (("--step", "5 %"), "`mlrsearch` has no `--step`\nhelp: remove it, or use `--method frame-loss`"),
        (("--whole",), "`mlrsearch` has no `--whole`"),
        (("--method", "frame-loss", "--step", "0 %"), "`--step` is 0 %\nhelp: give more than 0 % and less"),
        (("--method", "frame-loss", "--step", "200 %"), 'less than 100 %, such as "10 %"'),
        (("--method", "frame-loss", "--trial", "0 s"), "`--trial` is 0 s\nhelp: give more than zero"),
        (("--sum", "0 s"), "`--sum` is 0 s"),
        (("--loss", "100 %"), "`--loss` is 100 %\nhelp: give less than 100 %"),
        (("--max", "1 bit/s"), "are not a valid range"),
        (("--frames", "20"), "`--frames 20` is no list of frame sizes"),
    ):
        said = cli("search", "narrow.toml", "--engine", "simulate", *args, code=2)
        assert cause in said.stderr, args


def test_equal_trials_in_a_row_share_a_row_of_the_table(cli: Cli) -> None:
    (cli.directory / "narrow.toml").write_text(NARROW)
    said = cli("search", "narrow.toml", "--engine", "simulate", "--loss", "0 %").stdout
    trials, _, _ = said.partition("MLRsearch,")
    rows = [line.split("│") for line in trials.splitlines() if line.count("│") == 8]
    numbers = [[int(part) for part in row[1].split(" to ")] for row in rows]
    assert numbers[0][0] == 1
    assert all(after[0] == before[-1] + 1 for before, after in pairwise(numbers))
    assert any(last - first == 10 for first, last in (one for one in numbers if len(one) == 2))
    assert all((" each" in row[3]) == (" to " in row[1]) for row in rows)
    assert all(before[2:] != after[2:] for before, after in pairwise(rows))


ASKING = """\
name = "asking"
[host.a]
[host.b]
[router.r]
arp = { hold = 3 }
[link.in]
ends = ["a", "r"]
medium = "ethernet-100"
[link.out]
ends = ["r", "b"]
medium = "ethernet-100"
delay = "5 ms"
[traffic.u]
kind = "udp-stream"
from = "a"
to = "b"
message = "1000 B"
"""


def test_packets_that_wait_for_an_address_are_no_loss_of_a_trial(cli: Cli) -> None:
    args = ("--engine", "simulate", "--method", "rfc2544", "--trial", "1 s")
    *_, last = search(cli, *args, text=ASKING)
    *_, static = search(cli, *args, text=ASKING.replace("arp = { hold = 3 }", ""))
    # Without time to learn, a router that asks for 10 ms and holds 3 packets would lose some above
    # 2.4 Mbit/s of load.
    assert last["result"]["throughput_bit_per_s"] == static["result"]["throughput_bit_per_s"] > 90e6
    assert last["settings"]["learning_s"] == 2
    assert "learning_s" not in static["settings"]
    (note,) = last["result"]["notes"]
    assert note.startswith("each trial begins after 2 s of its traffic, in which router `r` learns addresses")


def test_search_credits_no_load_that_a_shaper_held_back(cli: Cli) -> None:
    args = ("--engine", "simulate", "--method", "rfc2544", "--width", "0.5 %")
    *trials, last = search(cli, *args, text=SHAPED)
    found = last["result"]
    # Besides 38.13 Mbit/s, the sender's buffer takes some datagrams: 0.2 % of a trial of 60 s.
    assert found["throughput_bit_per_s"] == pytest.approx(SHAPED_CAPACITY, rel=0.005)
    assert found["lowest_lossy_bit_per_s"] <= 1.007 * SHAPED_CAPACITY
    assert found["notes"] == []
    for one in trials:
        received = one["sent"] * 9152 * 8 / 60
        assert one["lost"] == 0
        assert one["kept"] == (one["load_bit_per_s"] <= 1.003 * SHAPED_CAPACITY)
        assert one["forwarded_bit_per_s"] == pytest.approx(min(received, one["load_bit_per_s"]), rel=1e-4)
        assert one["loss"] == pytest.approx(0 if one["kept"] else 1 - one["sent"] / one["asked"])


def test_load_counts_while_the_stream_lasts() -> None:
    times = 'start = "250 ms"\nstop = "750 ms"\n'
    with TrialRunner(loads(QUEUED + times), "u", "simulate", "base", lambda: False) as runner:
        trial, _ = runner.trial(8 * 1472 * 1000, 1.0)
    # 1000 datagrams a second for half a second; the queue has room for the excess.
    assert (trial.sent, trial.lost, trial.asked, trial.kept) == (500, 0, 500, True)


def test_trial_that_ends_before_its_stream_starts_is_an_error() -> None:
    late = loads(QUEUED + 'start = "1 s"\n')
    with TrialRunner(late, "u", "simulate", "base", lambda: False) as runner:
        with pytest.raises(EngpassError, match="`u` starts after 1 s, when a trial of 1 s is over"):
            runner.trial(8 * 1472 * 1000, 1.0)
        assert runner.trial(8 * 1472 * 1000, 1.5)[0].sent == 500


def test_result_above_the_limit_has_a_note(cli: Cli) -> None:
    short = ("--engine", "simulate", "--sum", "1 s")
    *_, last = search(cli, *short, "--loss", "0 %", text=QUEUED)
    (goal,) = last["result"]["goals"]
    # The line carries 813 datagrams in a trial of 1 s, and the queue holds 98 of 1514 bytes or 100 of 1500.
    most = goal["conditional_throughput_bit_per_s"]
    assert 8 * 1472 * 905 < most < 8 * 1472 * 915
    (note,) = last["result"]["notes"]
    assert note == (
        f"{most / 1e6:.2f} Mbit/s is more than the limit of the path, {QUEUED_CAPACITY / 1e6:.2f} Mbit/s "
        "(link `narrow`): queues deliver the rest in the 2 s after a trial of 1 s; "
        "results of longer trials (`--trial` or `--method rfc2544`) are closer to the load that lasts"
    )
    shown = cli("show", last["id"]).stdout
    assert f"note: {note}" in " ".join(shown.split())
    with Store.open(str(cli.directory / "engpass.db")) as store:
        assert prose(note) in render_search(store.run(last["id"], any_method=True))
    # In 60 s the queue holds 0.2 % of a trial.
    long = ("--loss", "0 %", "--trial", "60 s", "--sum", "60 s", "--exceed", "0 %", "--initial", "1 s")
    *_, last = search(cli, "--engine", "simulate", *long, text=QUEUED)
    assert last["result"]["goals"][0]["regular"]
    assert last["result"]["notes"] == []


def test_note_names_the_trials_and_the_slowest_receiver(cli: Cli) -> None:
    args = ("--engine", "simulate", "--method", "rfc2544", "--trial", "1 s", "--width", "0.5 %")
    *_, last = search(cli, *args, text=GROUP)
    (note,) = last["result"]["notes"]
    # 1000 of 1066 bytes on the line of the slowest receiver; the queue holds 28 datagrams of 1046 bytes.
    assert "more than the limit of the path, 9.38 Mbit/s (link `c`): queues deliver" in note
    assert note.endswith("results of longer trials (`--trial`) are closer to the load that lasts")


UNBOUNDED = """\
[host.a]
[host.b]
[router.r]
per_packet = "2 ms"
[link.l1]
ends = ["a", "r"]
medium = "ethernet-10"
[link.l2]
ends = ["r", "b"]
medium = "ethernet-10"
[traffic.u]
kind = "udp-stream"
from = "a"
to = "b"
message = "1000 B"
"""
# The engine of the router forwards 500 datagrams a second, and its input queue has no bound.
UNBOUNDED_CAPACITY = 500 * 1000 * 8


@pytest.mark.parametrize("seconds", [5, 20])
def test_datagrams_that_arrive_more_than_two_seconds_after_a_trial_are_lost(cli: Cli, seconds: int) -> None:
    args = ("--engine", "simulate", "--method", "rfc2544", "--trial", f"{seconds} s", "--width", "0.5 %")
    *trials, last = search(cli, *args, text=UNBOUNDED)
    # The router works for the trial and for the 2 s after it (RFC 2544 section 23).
    served = 500 * (seconds + 2)
    for trial in trials:
        late = trial["sent"] - served
        assert trial["lost"] == trial.get("late", 0) == pytest.approx(max(0, late), abs=2)
    found = last["result"]
    most = UNBOUNDED_CAPACITY * (seconds + 2) / seconds
    assert most * 0.995 < found["throughput_bit_per_s"] <= most * 1.001
    assert found["limit_bit_per_s"] == pytest.approx(UNBOUNDED_CAPACITY)
    shown = cli("show", last["id"]).stdout
    assert "datagrams/s (above the limit); " in shown
    assert "late: lost because still in flight 2 s after the trial" in shown


def test_late_datagrams_count_as_lost_for_a_goal(cli: Cli) -> None:
    goal = ("--loss", "0 %", "--trial", "5 s", "--sum", "5 s", "--exceed", "0 %")
    *trials, last = search(cli, "--engine", "simulate", *goal, text=UNBOUNDED)
    (found,) = last["result"]["goals"]
    most = UNBOUNDED_CAPACITY * 7 / 5
    assert found["lower_bit_per_s"] <= most * 1.001 < found["upper_bit_per_s"] * 1.002
    assert sum(trial.get("late", 0) for trial in trials) > 0
    assert "(above the limit)" in " ".join(cli("show", last["id"]).stdout.split())


def test_wait_after_a_trial_is_no_part_of_the_load() -> None:
    with TrialRunner(loads(UNBOUNDED), "u", "simulate", "base", lambda: False) as runner:
        trial, _ = runner.trial(400 * 8000, 5.0)
    assert (trial.sent, trial.lost, trial.asked, trial.kept, trial.late) == (2000, 0, 2000, True, 0)


@live
def test_emulated_trial_does_not_wait_until_its_queue_is_empty() -> None:
    slow = UNBOUNDED.replace('"2 ms"', '"4 ms"')
    with TrialRunner(loads(slow), "u", "emulate", "base", lambda: False) as runner:
        trial, _ = runner.trial(1125 * 8000, 1.0)
    # The router needs 4.5 s for the datagrams of 1 s.
    assert trial.lost > 0


def test_table_by_frame_size_marks_rates_above_the_limit_and_names_what_it_has(cli: Cli) -> None:
    (cli.directory / "u.toml").write_text(UNBOUNDED)
    args = ("search", "u.toml", "--engine", "simulate", "--trial", "5 s", "--frames", "512")
    throughput = cli(*args, "--method", "rfc2544").stdout
    assert "Throughput by frame size" in throughput
    assert "frames/s (above the limit)" in throughput
    grid = " ".join(cli(*args, "--method", "frame-loss", "--step", "5 %").stdout.split())
    assert "Largest tried load without loss, in steps of 5 % of the largest load, by frame size" in grid
    assert "largest tried load without loss, in steps of 5 % of the largest load: " in grid
    assert "Throughput" not in grid
    goal = " ".join(cli(*args, "--loss", "1 %").stdout.split())
    assert "Lower bound of the goal of 1.0 % loss by frame size" in goal


def test_without_a_limit_there_is_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrialRunner, "bound", lambda *_: None)
    settings = Settings(method="frame-loss", trial=1.0)
    record = run_search(loads(QUEUED), Store.open(":memory:"), settings, traffic="u", engine="simulate")
    assert known(record.result)["notes"] == []


def test_search_without_privileges_names_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    def failed(text: str) -> EngpassError:
        with pytest.raises(EngpassError) as caught:
            run_search(loads(text), Store.open(":memory:"), Settings(), traffic="u")
        return caught.value

    said = "; `--engine simulate` needs neither hosts nor privileges"
    cells = failed(SHAPED)
    assert "cannot create the hosts of this testbed: `measure`" in cells.message
    assert known(cells.help).endswith(said)
    monkeypatch.setattr(child, "find", lambda _: None)
    assert known(failed(QUEUED).help).endswith(said)
    # A testbed that names existing hosts is about these hosts.
    reached = QUEUED.replace("[host.a]", '[host.a]\nreach = "netns a"\naddress = "10.0.0.1"')
    reached = reached.replace("[host.b]", '[host.b]\nreach = "netns b"\naddress = "10.0.0.2"')
    assert "simulate" not in (failed(reached).help or "")


@live
def test_measured_search_bounds_a_shaped_link() -> None:
    """The narrow link is shaped to 20 Mbit/s; a busy machine may lose more than the excess, never less."""
    goal = Goal(loss=0.01, final=0.3, total=0.6, width=0.1)
    settings = Settings(goals=(goal,), most=40_000_000, longest=20.0)
    found = run_search(
        loads(NARROW, {"link.narrow.delay": "50 us"}),
        Store.open(":memory:"),
        settings,
        traffic="u",
        engine="measure",
    )
    assert tried(found)[0].loss > 0.3
    result = search_result(found)
    assert result is not None
    assert result.goals is not None
    upper = result.goals[0].upper_bit_per_s
    # In a short trial the shaper's bucket and the queue hold a part of the excess.
    assert upper is not None
    assert upper < 30e6
    assert result.notes[0].startswith("the delay of link `narrow`, 50 us, is left out")


def test_stream_of_a_part_of_the_trial_is_not_above_the_limit(cli: Cli) -> None:
    # The bound is a mean over the whole trial, but the load is the rate while the stream sends.
    text = QUEUED.replace('message = "1472 B"', 'message = "1472 B"\nstart = "500 ms"')
    assert text != QUEUED
    *_, last = search(cli, "--engine", "simulate", "--sum", "1 s", "--loss", "0 %", text=text)
    assert last["result"]["notes"] == []
