"""The public interface from Python."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import engpass
from conftest import POINTS, TESTBED
from engpass import campaign_runner
from engpass.campaign import Point, build
from engpass.campaign_runner import Job, Progress
from engpass.store.record import Finished


def test_testbed_exposes_its_contents(testbed_file: Path) -> None:
    lan = engpass.load(testbed_file)
    assert lan.name == "Two hosts"
    assert lan.text == TESTBED
    assert lan.variants == ["plain", "fast"]
    assert lan.has_variants
    assert lan.repeats == 2
    assert [axis.path for axis in lan.axes] == ["traffic.stream.message"]
    assert next((v.text, v.number, v.unit) for v in lan.axes[0].values) == ("1 kB", 1000, "B")
    assert [flow.name for flow in lan.topology.flows] == ["stream"]
    assert lan.plan().total == POINTS
    assert "24 points" in repr(lan)


def test_override_of_a_swept_value_removes_its_axis(testbed_file: Path) -> None:
    lan = engpass.load(testbed_file, set={"traffic.stream.message": "3 kB", "run.repeats": 7})
    assert lan.axes == ()
    assert lan.repeats == 7
    assert lan.plan().total == 2 * (1 + 7)


def test_broken_testbed_raises_with_its_diagnostics() -> None:
    with pytest.raises(engpass.InvalidTestbed) as error:
        engpass.loads("name = [", name="broken.toml")
    assert error.value.diagnostics[0]["severity"] == "error"
    assert "broken.toml" in error.value.rendered


def test_check_reads_the_file_again(testbed_file: Path) -> None:
    lan = engpass.load(testbed_file)
    assert lan.check() == []
    testbed_file.write_text("name = [")
    assert len(lan.check()) == 1


def test_testbed_from_tables_passes_the_same_check() -> None:
    tables: dict[str, Any] = {
        "name": "Built",
        "host": {"a": {}, "b": {}},
        "link": {"wire": {"ends": ["a", "b"], "medium": "oc-3c"}},
        "circuit": {"data": {"from": "a", "to": "b"}},
        "traffic": {"stream": {"kind": "udp-stream", "from": "a", "to": "b", "message": "1 kB"}},
        "sweep": {"traffic.stream.message": ["1 kB", "2 kB"]},
    }
    lan = engpass.load(tables)
    assert lan.variants == ["base"]
    assert not lan.has_variants
    assert [v.number for v in lan.axes[0].values] == [1000, 2000]
    assert engpass.loads(lan.text).plan() == lan.plan()
    assert lan.check() == []
    with pytest.raises(engpass.InvalidTestbed):
        engpass.load({"name": "No traffic"})
    with pytest.raises(engpass.SourceError, match=r"`name` is a NoneType"):
        engpass.load(json.loads('{"name": null}'))


def test_limit_is_per_variant_and_at_the_files_own_values(testbed_file: Path) -> None:
    lan = engpass.load(testbed_file)
    limits = lan.limit()
    assert list(limits) == ["plain", "fast"]
    assert limits["plain"].sweep == {}
    flow = limits["plain"].flows["stream"]
    assert 0 < flow.goodput_bit_per_s < 135.6e6
    assert flow.limit is not None
    assert flow.limit.stages[0].rate_bit_per_s > 0
    assert list(lan.limit(["fast"])) == ["fast"]
    with pytest.raises(engpass.ChoiceError, match="unknown variant `fasst`"):
        lan.limit(["fasst"])


def test_run_points_convert_to_pandas_and_polars(testbed_file: Path) -> None:
    result = engpass.load(testbed_file).run()
    assert result.record.status == "done"
    assert len(result.outcomes) == POINTS
    table = result.points
    assert table.num_rows == POINTS
    assert table.column_names == [
        "point", "engine", "variant", "repeat", "seed", "traffic.stream.message", "flow", "kind",
        "goodput_bit_per_s", "offered_bit_per_s", "loss", "sent_datagrams", "received_datagrams",
        "lost_datagrams", "in_flight_datagrams", "delay_min_s", "delay_mean_s", "delay_p50_s",
        "delay_p90_s", "delay_p99_s", "delay_p999_s", "delay_max_s",
        "bound_bit_per_s", "idle_delay_s", "bottleneck", "next_bottleneck",
        "summary", "bound_bottleneck", "bound_summary", "next", "sentence", "efci_pdus",
        *(
            f"{delay}_delay_{quantile}_s"
            for delay in ("queueing", "message")
            for quantile in ("min", "mean", "p50", "p90", "p99", "p999", "max")
        ),
    ]  # fmt: skip
    assert table.schema.field("traffic.stream.message").type == pa.float64()
    assert table.schema.field("sent_datagrams").type == pa.int64()
    assert table.column("point").to_pylist() == list(range(POINTS))
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert frame.groupby("engine").size().to_dict() == {"limit": 8, "simulate": 16}
    polars = pl.from_arrow(table)
    assert isinstance(polars, pl.DataFrame)
    assert polars.filter(pl.col("engine") == "simulate").height == 16


def test_outcomes_do_not_depend_on_the_number_of_jobs(testbed_file: Path) -> None:
    lan = engpass.load(testbed_file)
    one, many = (lan.run(jobs=jobs) for jobs in (1, 8))
    assert one.points.equals(many.points)
    assert one.outcomes == many.outcomes


def test_run_takes_a_choice_of_engines_variants_and_repeats(testbed_file: Path) -> None:
    lan = engpass.load(testbed_file)
    result = lan.run(engines=["simulate"], variants=["fast"], repeats=3)
    assert {(o.engine, o.variant) for o in result.outcomes} == {("simulate", "fast")}
    assert len(result.outcomes) == 4 * 3
    assert sorted({o.repeat for o in result.outcomes}) == [0, 1, 2]
    assert len({o.seed for o in result.outcomes}) == 3
    with pytest.raises(engpass.ChoiceError, match="did you mean `simulate`"):
        lan.run(engines=["simulated"])
    with pytest.raises(engpass.EngpassError, match="0 repeats"):
        lan.run(repeats=0)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_points_run_on_the_executor_of_the_caller(kind: Any, testbed_file: Path) -> None:
    lan = engpass.load(testbed_file)
    options = (
        {"mp_context": __import__("multiprocessing").get_context("spawn")}
        if kind is ProcessPoolExecutor
        else {}
    )
    with kind(2, **options) as executor:
        result = lan.run(executor=executor)
        assert executor.submit(int, "1").result() == 1, "a caller's executor stays open"
    assert result.outcomes == lan.run().outcomes
    assert result.record.environment["executor"] == kind.__name__


def _become_another_build() -> None:
    # This runs in a separate process, which ends with the executor.
    setattr(campaign_runner, "build", lambda: "fedcba9876543210")  # noqa: B010 (not a name that `lab` exports)


def test_worker_of_another_build_rejects_its_points(testbed_file: Path) -> None:
    spawn = __import__("multiprocessing").get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, initializer=_become_another_build) as executor:
        result = engpass.load(testbed_file).run(engines=["limit"], executor=executor)
    assert result.outcomes == []
    assert len(result.failures) == result.record.points_total
    error = result.failures[0].error
    assert f"has build fedcba9876543210 of Engpass, but the campaign has build {build()}" in error
    assert "help: install the same wheel on every worker" in error


def test_an_executor_that_is_shut_down_is_an_error(testbed_file: Path) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(engpass.EngpassError, match="the worker processes failed"):
        engpass.load(testbed_file).run(executor=executor)


class _Inline(Executor):
    """Runs each task immediately; after `most` tasks it fails, in `submit` or in the future."""

    def __init__(self, most: int, error: Exception, *, at_once: bool) -> None:
        self._left, self._error, self._at_once = most, error, at_once

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._left -= 1
        if self._left >= 0:
            future.set_result(fn(*args, **kwargs))
        elif self._at_once:
            raise self._error
        else:
            future.set_exception(self._error)
        return future


@pytest.mark.parametrize("at_once", [False, True])
def test_points_before_an_executor_failure_are_stored(
    testbed_file: Path, tmp_path: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engpass.campaign_runner._GATHER_SECONDS", 1000.0)
    monkeypatch.setattr("engpass.campaign_runner._AHEAD", 2)
    monkeypatch.setattr("engpass.campaign_runner._MOST_IN_BATCH", 1)
    store = engpass.Store.open(tmp_path / "s.db")
    error = RuntimeError("no thread") if at_once else BrokenExecutor("a worker died")
    with pytest.raises(engpass.EngpassError, match="the worker processes failed"):
        engpass.load(testbed_file).run(store=store, executor=_Inline(10, error, at_once=at_once), jobs=1)
    assert store.run("last").points_done == 10
    store.close()


def test_points_are_written_in_batches(
    testbed_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engpass.campaign_runner._GATHER_SECONDS", 1000.0)
    # Two points run at a time, so some are still missing when the first ones are written.
    monkeypatch.setattr("engpass.campaign_runner._AHEAD", 2)
    monkeypatch.setattr("engpass.campaign_runner._MOST_IN_BATCH", 1)
    written = []
    original = engpass.Store.write

    def write(store: engpass.Store, run_id: str, session: int, points: list[Finished]) -> int:
        written.append(len(points))
        return original(store, run_id, session, points)

    monkeypatch.setattr(engpass.Store, "write", write)
    with engpass.Store.open(tmp_path / "s.db") as store:
        engpass.load(testbed_file).run(store=store, jobs=1)
    # The first points are written immediately, which shows progress; all others are written together.
    assert sum(written) == POINTS
    assert len(written) == 2


def test_short_points_go_to_workers_many_at_a_time_and_long_ones_alone(
    testbed_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first points after a change of pace may be handed over together, but not be kept together."""
    original, work = campaign_runner._work_on, campaign_runner.work
    handed: list[tuple[int, int]] = []

    def handing(job: Job, points: Sequence[Point]) -> list[Finished]:
        ended = original(job, points)
        handed.append((len(points), len(ended)))
        return ended

    def pausing(job: Job, point: Point) -> str:
        if 400 <= point.position < 420:
            time.sleep(0.03)
        return work(job, point)

    monkeypatch.setattr(campaign_runner, "_work_on", handing)
    monkeypatch.setattr(campaign_runner, "work", pausing)
    monkeypatch.setattr(campaign_runner, "_BATCH_SECONDS", 0.02)
    lan = engpass.load(testbed_file, set={"run.duration": "1 ms", "run.repeats": 100})
    result = lan.run(engines=["simulate"], jobs=1)
    assert [outcome.repeat for outcome in result.outcomes] == list(range(100)) * 8
    assert sum(ended for _, ended in handed) == 800
    assert handed[0] == (1, 1), "nothing is known yet about the pace"
    assert max(ended for _, ended in handed) > 10
    assert sum(ended == 1 for _, ended in handed) >= 19, "the worker came back after each of the long points"


def test_progress_rises_within_a_long_point(testbed_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run reports the share of its virtual time that is done, and ends on request."""
    monkeypatch.setattr("engpass.campaign_runner._LOOK_SECONDS", 0.002)
    seen: list[Progress] = []
    long = {"run.duration": "2000 s", "run.repeats": "1"}
    testbed = engpass.load(testbed_file, set=long)
    interrupt = engpass._engpass.Interrupt()
    assert interrupt.under_way() == 0

    def watch(progress: Progress) -> None:
        seen.append(progress)
        if progress.under_way > 0.01:
            raise _EnoughError

    with pytest.raises(_EnoughError):
        testbed.run(engines=["simulate"], progress=watch, jobs=1)
    shares = [p.under_way for p in seen]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert 0.01 < shares[-1] < 1, "it was told long before the run was over"


class _EnoughError(Exception):
    pass


def test_progress_counts_stored_points(testbed_file: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    store = engpass.Store.open(tmp_path / "s.db")

    def watch(progress: Progress) -> None:
        seen.append(progress)
        assert store.run("last").points_done == progress.done

    engpass.load(testbed_file).run(store=store, progress=watch)
    assert seen[0] == Progress(POINTS, 0, 0, 0, 0)
    assert seen[-1] == Progress(POINTS, POINTS, 0, 0, POINTS)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    store.close()


def fail_at(monkeypatch: pytest.MonkeyPatch, bad: int, error: BaseException | None) -> list[int]:
    """Let the point at a position fail; returns a list that collects the positions of the points that ran."""
    original = campaign_runner.work
    ran = []

    def work(job: Job, point: Point) -> str:
        ran.append(point.position)
        if point.position == bad and error is not None:
            raise error
        return original(job, point)

    monkeypatch.setattr(campaign_runner, "work", work)
    return ran


def test_failed_point_is_stored_and_retried_alone(
    testbed_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lan = engpass.load(testbed_file)
    with monkeypatch.context() as patch:
        fail_at(patch, 5, MemoryError())
        result = lan.run(store=tmp_path / "s.db")
    assert result.record.status == "failed"
    assert (result.record.points_done, result.record.points_failed) == (POINTS - 1, 1)
    assert [(f.point.position, f.error.splitlines()[0]) for f in result.failures] == [(5, "out of memory")]
    assert 5 not in result.points.column("point").to_pylist()
    # Running again retries only that point.
    with monkeypatch.context() as patch:
        ran = fail_at(patch, 5, None)
        again = lan.run(store=tmp_path / "s.db")
    assert ran == [5]
    assert again.id == result.id
    assert again.record.status == "done"
    assert again.failures == []


def test_panic_is_reported_as_a_bug(testbed_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    fail_at(monkeypatch, 0, PanicException("the queue holds what it counted"))
    result = engpass.load(testbed_file).run()
    message = "internal error, a bug in Engpass: PanicException: the queue holds what it counted"
    assert result.failures[0].error == message


def test_complete_campaign_runs_nothing_unless_fresh(
    testbed_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lan = engpass.load(testbed_file)
    first = lan.run(store=tmp_path / "s.db")
    ran = fail_at(monkeypatch, 0, None)
    assert lan.run(store=tmp_path / "s.db").id == first.id
    assert ran == []
    fresh = lan.run(store=tmp_path / "s.db", fresh=True)
    assert sorted(ran) == list(range(POINTS))
    assert fresh.id != first.id
    assert fresh.points.equals(first.points)


@pytest.mark.parametrize(
    "change",
    [
        {"repeats": 3},
        {"variants": ["fast"]},
        {"engines": ["limit"]},
        {"set": {"link.wire.medium": "oc-12c"}},
        {"text": TESTBED + "\n# a comment\n"},
    ],
)
def test_a_changed_campaign_is_another_run(
    change: dict[str, Any], testbed_file: Path, tmp_path: Path
) -> None:
    first = engpass.load(testbed_file).run(store=tmp_path / "s.db")
    testbed_file.write_text(change.pop("text", TESTBED))
    lan = engpass.load(testbed_file, change.pop("set", None))
    assert lan.run(store=tmp_path / "s.db", **change).id != first.id


def test_interrupted_run_keeps_its_points_and_resumes(testbed_file: Path, tmp_path: Path) -> None:
    import signal

    lan = engpass.load(testbed_file, set={"run.repeats": 200})
    total = lan.plan().total

    def interrupt(progress: Progress) -> None:
        if progress.done:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            lan.run(store=tmp_path / "s.db", progress=interrupt, jobs=1)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    with engpass.Store.open(tmp_path / "s.db") as store:
        kept = store.run()
    assert 0 < kept.points_done < total
    assert kept.status == "partial"
    result = lan.run(store=tmp_path / "s.db")
    assert result.id == kept.id
    assert result.record.points_done == total
    assert result.outcomes == lan.run().outcomes


def test_a_run_in_another_thread_leaves_signals_alone(testbed_file: Path) -> None:
    results = []
    thread = threading.Thread(target=lambda: results.append(engpass.load(testbed_file).run()))
    thread.start()
    thread.join()
    assert results[0].record.status == "done"


def test_importing_engpass_imports_nothing_heavy() -> None:
    heavy = ["sqlite3", "psycopg", "pyarrow", "altair", "rich", "pandas", "typer", "vl_convert"]
    code = f"import sys, engpass, engpass.testbed; print([m for m in {heavy!r} if m in sys.modules])"
    env = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == "[]"


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute `lode`"):
        engpass.lode  # noqa: B018 (reading it is the test)
    assert set(engpass.__all__) <= set(dir(engpass))
    assert isinstance(engpass.__version__, str)


def test_a_result_writes_its_report(testbed_file: Path, tmp_path: Path) -> None:
    target = engpass.load(testbed_file).run(repeats=1).report(tmp_path / "report.html")
    assert target == tmp_path / "report.html"
    assert "Two hosts" in target.read_text(encoding="utf-8")
