"""The loss over repeats is the ratio of the sums in all outputs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from conftest import Cli
from engpass.explain.service import Served
from engpass.report.search import figures
from engpass.results import outcomes
from engpass.results.aggregate import tabulate
from engpass.results.losses import Losses
from engpass.results.samples import LOSS
from engpass.store import Finished, Store
from engpass.testbed import load
from engpass.types.outcome import VERSION, Datagrams, FlowOutcome, Outcome
from test_report_search import record, trial

# Two repeats: 50 of 100 lost, and 0 of 1000. The mean of the two ratios is 25 %.
REPEATS = ((100, 50), (1000, 0))
TOGETHER = 50 / 1100


def flow(sent: int, lost: int) -> FlowOutcome:
    counts = Datagrams(sent=sent, received=sent - lost, lost=lost)
    return FlowOutcome(kind="udp-stream", goodput_bit_per_s=1e6, offered_bit_per_s=1e6, datagrams=counts)


def test_loss_of_repeats_is_the_ratio_of_the_sums() -> None:
    parts = [Losses.of(flow(*repeat)) for repeat in REPEATS]
    assert Losses.sum(parts).share == TOGETHER
    assert Losses.sum([]).share is None
    assert Losses(10, 12).share == 1.0


def test_uncounted_losses_have_no_share() -> None:
    assert Losses.of(replace(flow(5, 1), datagrams=None)).share is None
    assert Losses.of(flow(0, 0)).share is None


def test_show_and_page_give_the_same_loss(cli: Cli, testbed_file: Path) -> None:
    text = testbed_file.read_text()
    testbed_file.write_text(text[: text.index("[sweep]")])
    testbed = load(testbed_file)
    path = testbed_file.parent / "engpass.db"
    with Store.open(path) as store:
        plan = testbed.plan(["simulate"], None, 2)
        started = testbed.start(plan, store)
        finished = []
        for repeat, counts in enumerate(REPEATS):
            point = plan.point(repeat)
            outcome = Outcome(
                version=VERSION,
                variant="base",
                engine="simulate",
                repeat=repeat,
                seed=1,
                sweep={},
                flows={"stream": flow(*counts)},
                links={},
            )
            finished.append(Finished(point.position, 0.0, outcomes.write(outcome), None))
        store.write(started.run_id, started._session, finished)
        run = store.run(started.run_id)
        (point_of_page,) = tabulate(run, list(store.outcomes(run.id))).points
    loss = point_of_page.spread(LOSS)
    assert loss is not None
    assert (loss.value, loss.low, loss.high) == (TOGETHER, 0.0, 0.5)
    assert "4.5 %" in cli("show", "last").stdout


def test_mean_of_served_repeats_has_the_ratio_of_the_sums() -> None:
    assert Served.of(flow(*repeat) for repeat in REPEATS).loss == TOGETHER


def test_loss_of_a_load_is_the_ratio_over_all_its_trials() -> None:
    short = trial(2e7, 50) | {"sent": 100, "asked": 100, "duration_s": 0.1}
    made = msgspec.structs.replace(
        record("frame-loss", None, [short, trial(2e7, 0)]), settings={"most_bit_per_s": 1}
    )
    chart = figures([made])["loss"].to_dict()
    line = chart["layer"][0]
    assert line["encoding"]["y"]["field"] == "loss"
    (row,) = chart["datasets"][line["data"]["name"]]
    assert row["loss"] == pytest.approx(100 * TOGETHER)
