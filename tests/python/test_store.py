"""The store: its records, old files, and failures of databases."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from sqlalchemy import Connection, event

import engpass
from conftest import POINTS
from engpass.campaign import Axis, AxisValue
from engpass.error import ChoiceError, StoreError
from engpass.results import outcomes
from engpass.store import Finished, RunRecord, Store, database, migrations, schema
from engpass.types.outcome import VERSION, Datagrams, FlowOutcome, Outcome, Tcp
from engpass.types.plan import Drawing

DATA = Path(__file__).parents[1] / "data"


def outcome(variant: str = "base", *, note: str = "", tcp: Tcp | None = None, lost: int | None = None) -> str:
    counts = None if lost is None else Datagrams(sent=9, received=9 - lost, lost=lost)
    flow = FlowOutcome(
        kind="udp-stream",
        goodput_bit_per_s=1.5,
        offered_bit_per_s=2,
        datagrams=counts,
        tcp=tcp,
        summary=note or None,
    )
    return outcomes.write(
        Outcome(
            version=VERSION,
            variant=variant,
            engine="limit",
            repeat=0,
            seed=0,
            sweep={},
            flows={"stream": flow},
            links={},
        )
    )


def record(digest: str = "0" * 64, total: int = 4) -> RunRecord:
    values = tuple(AxisValue(f"{i} B", float(i), "B") for i in range(total))
    return RunRecord(
        id="",
        name="ä test",
        source="lan.toml",
        text="name = 'ä test'",
        overrides=[("run.seed", "3")],
        engines=["limit"],
        variants=["base"],
        axes=(Axis("traffic.stream.message", values),),
        repeats=1,
        topology=Drawing(),
        environment={"version": "0"},
        created="2026-01-01T00:00:00.000000+00:00",
        points_total=total,
        points_done=0,
        status="partial",
        digest=digest,
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.db") as opened:
        yield opened


# PostgreSQL is tested only if a server is given: `ENGPASS_TEST_POSTGRESQL=postgresql://me@localhost/test`.
POSTGRESQL = os.environ.get("ENGPASS_TEST_POSTGRESQL")


@pytest.fixture(params=["sqlite", "memory", *(["postgresql"] if POSTGRESQL else [])])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store on every kind of database."""
    match request.param:
        case "sqlite":
            where = f"sqlite:///{tmp_path}/s.db"
        case "memory":
            where = ":memory:"
        case _:
            import psycopg

            schema_name = f"test_{secrets.token_hex(4)}"
            with psycopg.connect(str(POSTGRESQL), autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {schema_name}")
            where = f"{POSTGRESQL}?options=-csearch_path%3D{schema_name}"
    with Store.open(where) as opened:
        yield opened


def test_run_record_round_trips_through_the_store(any_store: Store) -> None:
    given = record()
    run_id, session = any_store.begin(given)
    any_store.write(
        run_id, session, [Finished(2, 0.1, outcome(), None), Finished(0, 0.2, None, "out of memory")]
    )
    found = any_store.run(run_id)
    assert found == replace(given, id=run_id, used=found.used, points_done=1, points_failed=1)
    assert any_store.outcomes(run_id) == [outcomes.read(outcome())]
    assert [(f.point.position, f.error) for f in any_store.failures(found)] == [(0, "out of memory")]
    assert any_store.done(run_id, 4) == bytearray([0, 0, 1, 0])
    (only,) = any_store.sessions(run_id)
    assert only["ended"] is None
    any_store.end(session)
    assert any_store.sessions(run_id)[0]["ended"] >= only["started"]


def test_a_point_counts_once_and_an_error_is_replaced(any_store: Store) -> None:
    run_id, session = any_store.begin(record())
    any_store.write(
        run_id, session, [Finished(0, 0.1, None, "first"), Finished(1, 0.1, outcome("one"), None)]
    )
    any_store.write(
        run_id, session, [Finished(0, 0.1, outcome("two"), None), Finished(1, 0.1, outcome("late"), None)]
    )
    any_store.write(run_id, session, [Finished(1, 0.1, None, "late error")])
    assert [o.variant for o in any_store.outcomes(run_id)] == ["two", "one"]
    assert any_store.run(run_id).points_failed == 0


def test_all_points_of_a_batch_are_stored_or_none(any_store: Store) -> None:
    run_id, session = any_store.begin(record())
    with pytest.raises(StoreError):
        any_store.write(
            run_id,
            session,
            [Finished(0, 0.1, outcome(), None), Finished(1, cast("float", None), outcome(), None)],
        )
    assert any_store.run(run_id).points_done == 0


def test_equal_campaign_is_resumed_and_a_fresh_one_is_new(any_store: Store) -> None:
    first, _ = any_store.begin(record())
    again, _ = any_store.begin(record())
    assert again == first
    fresh, _ = any_store.begin(record(), fresh=True)
    assert fresh != first
    latest, _ = any_store.begin(record())
    assert latest == fresh, "the newest of equal campaigns goes on"
    assert len(any_store.sessions(first)) == 2


def test_runs_are_found_by_id_prefix_and_last_use(any_store: Store) -> None:
    with pytest.raises(ChoiceError, match="there are no runs"):
        any_store.run("last")
    one, _ = any_store.begin(record("a" * 64))
    two, _ = any_store.begin(record("ab" * 32))
    assert any_store.run().id == two
    any_store.begin(record("a" * 64))
    assert any_store.run("last").id == one, "last is what ran last, not what was made last"
    assert [r.id for r in any_store.runs()] == [two, one]
    assert any_store.run("ab").id == two
    assert any_store.run(one).id == one
    with pytest.raises(ChoiceError, match="`a` matches 2 runs: `ababababab`, `aaaaaaaaaa`"):
        any_store.run("a")
    with pytest.raises(ChoiceError, match="there is no run `zz`"):
        any_store.run("zz")
    with pytest.raises(ChoiceError, match="there is no run ``"):
        any_store.run("")


def test_table_column_types_do_not_depend_on_the_outcomes(any_store: Store) -> None:
    run_id, session = any_store.begin(record())
    lines = [
        outcome(lost=3),
        outcome(tcp=Tcp(retransmitted_segments=7)),
        outcome(tcp=Tcp(smoothed_rtt_s=0.5)),
    ]
    any_store.write(run_id, session, [Finished(i, 0.1, line, None) for i, line in enumerate(lines)])
    table = any_store.table(run_id)
    assert table.schema.field("lost_datagrams").type == pa.int64()
    assert table.column("lost_datagrams").to_pylist() == [3, None, None]
    assert table.column("offered_bit_per_s").to_pylist() == [2.0, 2.0, 2.0]
    assert table.column_names[-2:] == ["retransmitted_segments", "smoothed_rtt_s"]
    assert table.column("retransmitted_segments").to_pylist() == [None, 7, None]
    assert table.column("smoothed_rtt_s").to_pylist() == [None, None, 0.5]
    assert "duplicate_datagrams" not in table.column_names
    assert any_store.table(any_store.begin(record(), fresh=True)[0]).num_rows == 0


def test_a_long_run_is_read_in_pages(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engpass.store.store._ROWS", 3)
    run_id, session = any_store.begin(record(total=20))
    any_store.write(
        run_id, session, [Finished(i, 0.1, outcome(note=str(i)), None) for i in range(20) if i != 7]
    )
    read = [position for position, _ in any_store.raw_outcomes(run_id)]
    assert read == [i for i in range(20) if i != 7]
    assert [p for p, _ in any_store.raw_outcomes(run_id, [range(2, 4), range(6, 12)])] == [
        2,
        3,
        6,
        8,
        9,
        10,
        11,
    ]


# Old and foreign files


def test_a_store_of_version_1_opens(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(DATA / "store-v1.sqlite", path)
    with Store.open(path) as old:
        (found,) = old.runs()
        assert (found.name, found.status, found.points_done) == ("Two hosts", "partial", 2)
        assert found.variants == ["plain", "fast"]
        assert found.overrides == [("run.repeats", "1")]
        assert found.environment["version"] == "0.1.0"
        assert old.table(found.id).column("goodput_bit_per_s").to_pylist() == [9570000.0, 9580000.0]
        assert old.failures(found)[0].error == "out of memory"


def test_an_old_store_is_upgraded_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.db"
    shutil.copy(DATA / "store-v1.sqlite", path)

    def two(connection: Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE run ADD COLUMN two TEXT")

    def three(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE run SET two = 'three'")

    monkeypatch.setattr(schema, "VERSION", 3)
    monkeypatch.setattr(migrations, "STEPS", {1: two, 2: three})
    Store.open(path, create=False).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version FROM engpass_store").fetchall() == [(3,)]
        assert connection.execute("SELECT two FROM run").fetchall() == [("three",)]
    connection.close()


def test_failed_upgrade_leaves_the_old_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.db"
    shutil.copy(DATA / "store-v1.sqlite", path)

    def two(connection: Connection) -> None:
        connection.exec_driver_sql("DROP TABLE point")
        connection.exec_driver_sql("no SQL")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "VERSION", 2)
        patch.setattr(migrations, "STEPS", {1: two})
        with pytest.raises(StoreError):
            Store.open(path)
    with Store.open(path) as old:
        assert old.run().points_done == 2


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"This is a letter, and no database at all. " * 30,
            "`x.db` is not a database\nhelp: give another file",
        ),
        (
            "CREATE TABLE letters (text)",
            "`x.db` is a database, but not a store of Engpass\nhelp: give another file",
        ),
        ("CREATE TABLE run (text)", "`x.db` is a database, but not a store of Engpass"),
        (
            "CREATE TABLE engpass_store (version); INSERT INTO engpass_store VALUES (99)",
            "`x.db` is a store of version 99; this Engpass supports versions up to 2\nhelp: upgrade Engpass",
        ),
        ("CREATE TABLE engpass_store (version)", "`x.db` has no version"),
    ],
)
def test_file_that_is_no_store_is_rejected(
    content: bytes | str, message: str, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("x.db")
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        connection = sqlite3.connect(path)
        connection.executescript(content)
        connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError) as error:
        Store.open(path, create=create)
    assert str(error.value).startswith(message)
    assert isinstance(content, str) or path.read_bytes() == before


def test_empty_file_becomes_a_store_only_for_writing(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(StoreError, match="has no runs"):
        Store.open(path, create=False)
    with Store.open(path) as opened:
        assert opened.runs() == []


@pytest.mark.parametrize(
    ("where", "create", "message"),
    [
        ("none.db", False, "there is no store `none.db`\nhelp: `engpass run FILE` creates one"),
        (".", True, "the store `.` is a directory\nhelp: give a file in it"),
        ("none/x.db", True, "there is no directory `none` for the store"),
        ("/proc/x.db", True, "the store `/proc/x.db` cannot be written: unable to open database file"),
        ("x" * 5000, True, f"the store `{'x' * 5000}` cannot be opened: "),
        (
            "mysql://somewhere/x",
            True,
            "a store cannot be on `mysql`\nhelp: a store is a file (SQLite) or `postgresql",
        ),
        ("://", True, "`://` is not a database URL"),
        ("postgresql://me:secret@localhost/x", True, "`postgresql://me:***@localhost/x` needs a driver"),
    ],
)
def test_store_that_cannot_be_opened_names_the_reason(
    where: str, create: bool, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError) as error:
        Store.open(where, create=create)
    assert str(error.value).startswith(message)


def test_a_store_on_read_only_media_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.db"
    with Store.open(path) as opened:
        run_id, session = opened.begin(record())
        opened.write(run_id, session, [Finished(0, 0.1, outcome(), None)])
    assert [p.name for p in tmp_path.iterdir()] == ["s.db"], "a closed store is one file"
    monkeypatch.setattr(database, "_writable", lambda _: False)
    before = path.stat().st_mtime_ns
    with Store.open(path, create=False) as opened:
        assert len(opened.outcomes(run_id)) == 1
        with pytest.raises(StoreError, match="cannot be written: attempt to write a readonly database"):
            opened.begin(record())
    assert path.stat().st_mtime_ns == before


def test_full_disk_is_reported_and_keeps_stored_points(store: Store) -> None:
    run_id, session = store.begin(record())
    store.write(run_id, session, [Finished(0, 0.1, outcome(), None)])

    @event.listens_for(store._database.engine, "begin")
    def fill(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count=1")

    with pytest.raises(StoreError, match="no space left for the store") as error:
        store.write(run_id, session, [Finished(1, 0.1, outcome(note="y" * 200_000), None)])
    assert "stored points are kept" in str(error.value)
    assert len(store.outcomes(run_id)) == 1


def test_locked_store_is_reported(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with (
        Store.open(tmp_path / "s.db") as impatient,
        pytest.raises(StoreError, match="locked by another program"),
    ):
        impatient.begin(record())
    other.execute("ROLLBACK")
    other.close()
    store.begin(record())


def test_damaged_store_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.open(path) as opened:
        run_id, session = opened.begin(record())
        opened.write(run_id, session, [Finished(i, 0.1, outcome(note="y" * 3000), None) for i in range(4)])
    data = bytearray(path.read_bytes())
    data[8192:-4096] = b"\x55" * (len(data) - 8192 - 4096)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"), Store.open(path) as broken:
        broken.outcomes(run_id)


def test_store_failure_ends_the_run(
    testbed_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Otherwise all points may be in the first two transactions.
    monkeypatch.setattr("engpass.campaign_runner._GATHER_SECONDS", 0.0)
    store = Store.open(tmp_path / "s.db")
    lan = engpass.load(testbed_file, set={"run.repeats": 50})

    @event.listens_for(store._database.engine, "before_cursor_execute")
    def fail(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT INTO point") and store.run().points_done > 5:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

    with pytest.raises(StoreError, match="no space left"):
        lan.run(store=store)
    assert store.run().points_done > 5
    assert threading.active_count() == 1, "no worker goes on"
    store.close()


# Concurrency


def test_many_threads_write_one_store_file(tmp_path: Path) -> None:
    path, errors = tmp_path / "s.db", []
    start = threading.Barrier(8)

    def write(worker: int) -> None:
        try:
            start.wait()
            with Store.open(path) as mine:
                run_id, session = mine.begin(record(total=80))
                for i in range(10):
                    mine.write(run_id, session, [Finished(worker * 10 + i, 0.1, outcome(), None)])
        except Exception as error:  # noqa: BLE001 (shown by the assertion)
            errors.append(error)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with Store.open(path) as opened:
        (found,) = opened.runs()
        assert (found.points_done, found.status) == (80, "done")
        assert len(opened.sessions(found.id)) == 8


def test_points_of_a_run_follow_its_plan(testbed_file: Path, tmp_path: Path) -> None:
    lan = engpass.load(testbed_file)
    result = lan.run(store=tmp_path / "s.db")
    assert result.record.plan == lan.plan()
    assert result.record.points_total == POINTS
    for point, found in zip(list(lan.plan()), result.outcomes, strict=True):
        assert (point.engine, point.variant, point.repeat) == (found.engine, found.variant, found.repeat)
