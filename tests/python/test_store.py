"""The store: its records, old files, and failures of databases."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from msgspec.structs import replace

import engpass
import postgresql_server as postgresql
from conftest import POINTS, Cli
from engpass.campaign import Axis, AxisValue
from engpass.error import ChoiceError, StoreError
from engpass.results import outcomes
from engpass.store import Finished, RunRecord, Store, database, migrations, schema
from engpass.store.transaction import Transaction
from engpass.types.outcome import VERSION, Datagrams, FlowOutcome, Outcome, Tcp
from engpass.types.plan import Drawing
from required import known

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


@pytest.fixture(scope="module")
def postgresql_server() -> Iterator[str]:
    if (reason := postgresql.missing()) is not None:
        pytest.skip(reason)
    with postgresql.server() as url:
        yield url


@pytest.fixture
def postgresql_url(postgresql_server: str) -> str:
    """The URL of an empty database on a server."""
    import psycopg

    schema_name = f"test_{secrets.token_hex(4)}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema_name}")
    return f"{postgresql_server}&options=-csearch_path%3D{schema_name}"


@pytest.fixture(params=["sqlite", "memory", "postgresql"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store on every kind of database."""
    match request.param:
        case "sqlite":
            where = f"sqlite:///{tmp_path}/s.db"
        case "memory":
            where = ":memory:"
        case _:
            where = request.getfixturevalue("postgresql_url")
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


def check_store_of_version_2(store: Store) -> None:
    """Compare the runs with those that version 2 had put into `store-v2.sqlite`."""
    assert [(r.method, r.id, r.points_done, r.status) for r in store.runs()] == [
        ("rfc6349", "3002c71d23", 2, "done"),
        ("campaign", "8c8ba4e628", 3, "done"),
        ("rfc2544", "d9c8102e0f", 1, "done"),
        ("mlrsearch", "763c88b75f", 2, "partial"),
    ]
    assert [o.engine for o in store.outcomes("8c8ba4e628")] == ["limit", "simulate", "simulate"]
    path = store.run("3002c", any_method=True)
    assert (path.engine, path.variant, path.traffic) == ("measure", "it's quick", "u")
    assert path.overrides == [("run.seed", "3")]
    assert path.settings == {"seconds": 5.0, "fractions": [0.5], "from": "a", "to": "b"}
    assert [step["step"] for step in path.trials] == ["path MTU", "baseline round trip"]
    assert path.result == {"mtu_bytes": 1500, "rtt_s": 0.01, "transfers": []}
    assert path.environment == {"version": "0.1.0", "hostname": "host", "cpu": "cpu"}
    stopped = store.run("763c88b75f", any_method=True)
    assert (len(stopped.trials), stopped.result) == (2, None)
    flows = [outcome.flows["u"] for outcome in store.outcomes(stopped.id)]
    assert [known(flow.datagrams).sent for flow in flows] == [trial["sent"] for trial in stopped.trials]


def test_a_store_of_version_2_keeps_its_searches_and_paths(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(DATA / "store-v2.sqlite", path)
    with Store.open(path) as old:
        check_store_of_version_2(old)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    with Store.open(path, create=False) as again:
        assert again.begin(record())[0] == "0" * 10


def test_a_store_of_version_2_on_a_server_is_upgraded(postgresql_url: str) -> None:
    import psycopg

    with (
        contextlib.closing(sqlite3.connect(DATA / "store-v2.sqlite")) as old,
        psycopg.connect(postgresql_url) as server,
    ):
        for (statement,) in old.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"):
            server.execute(statement)
        for name in ("engpass_store", "run", "session", "point", "search", "trial"):
            for row in old.execute(f"SELECT * FROM {name}"):
                server.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", row)
    with Store.open(postgresql_url) as store:
        check_store_of_version_2(store)
        assert store.begin(record())[0] == "0" * 10


def test_an_old_store_is_upgraded_step_by_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.db"
    shutil.copy(DATA / "store-v1.sqlite", path)

    def two(store: Transaction) -> None:
        store.execute("ALTER TABLE run ADD COLUMN two TEXT")

    def three(store: Transaction) -> None:
        store.execute("UPDATE run SET two = 'three'")

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

    def two(store: Transaction) -> None:
        store.execute("DROP TABLE point")
        store.execute("no SQL")

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
            "`x.db` is a store of version 99; this Engpass supports versions up to 3\nhelp: upgrade Engpass",
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

    # The store has no other connection.
    (connection,) = store._database._idle
    connection.execute("PRAGMA max_page_count=1")
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

    execute = Transaction.execute_for_each

    def fail(transaction: Transaction, *args: Any) -> int:
        if store.run().points_done > 5:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return execute(transaction, *args)

    monkeypatch.setattr(Transaction, "execute_for_each", fail)
    with pytest.raises(StoreError, match="no space left"):
        lan.run(store=store)
    assert store.run().points_done > 5
    assert threading.active_count() == 1, "no worker goes on"
    store.close()


# Concurrency


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_many_threads_write_one_store(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = str(tmp_path / "s.db") if kind == "sqlite" else request.getfixturevalue("postgresql_url")
    errors: list[Exception] = []
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


# Searches


def search_record() -> RunRecord:
    return replace(
        record("e" * 64, 0), axes=(), method="rfc2544", traffic="u", settings={"trial_s": 1.0}, points_total=0
    )


def test_a_search_is_a_run_whose_points_are_trials(any_store: Store) -> None:
    given = search_record()
    run_id, session = any_store.begin(given)
    for i in range(2):
        assert any_store.write(run_id, session, [Finished(i, 0.1, outcome(), None, f'{{"load": {i}}}')]) == 1
    found = any_store.run(run_id, any_method=True)
    expected = replace(given, id=run_id, used=found.used, points_done=2, points_total=2)
    assert found == replace(expected, trials=[{"load": 0}, {"load": 1}])
    again, session = any_store.begin(given)
    assert again == run_id, "a search without result goes on"
    any_store.end(session, {"throughput": 1.5})
    ended = any_store.run(run_id, any_method=True)
    assert (ended.status, ended.result) == ("done", {"throughput": 1.5})
    assert any_store.begin(given)[0] != run_id, "a search with a result is made again"


def test_a_trial_of_another_process_is_noticed(any_store: Store) -> None:
    run_id, session = any_store.begin(search_record())
    assert any_store.write(run_id, session, [Finished(0, 0.1, None, None, "{}")]) == 1
    assert any_store.write(run_id, session, [Finished(0, 0.1, None, None, '{"late": 1}')]) == 0
    assert any_store.run(run_id, any_method=True).trials == [{}]


def test_searches_and_campaigns_are_told_apart(any_store: Store) -> None:
    campaign, _ = any_store.begin(record())
    search, _ = any_store.begin(search_record())
    assert [r.id for r in any_store.runs()] == [campaign, search]
    assert any_store.run("last").id == campaign
    assert any_store.run("last", any_method=True).id == search
    with pytest.raises(ChoiceError, match=f"`{search}` comes from `rfc2544`, not from `engpass run`"):
        any_store.run(search[:4])


# Servers


def test_a_campaign_runs_on_a_server(testbed_file: Path, postgresql_url: str, cli: Cli) -> None:
    cli("run", str(testbed_file), "--store", postgresql_url)
    again = cli("run", str(testbed_file), "--store", postgresql_url)
    assert f"all {POINTS} points are already stored" in again.stderr
    table = engpass.load(testbed_file).run(store=postgresql_url).points
    assert table.equals(engpass.load(testbed_file).run().points)


def test_a_store_works_on_after_its_connection_was_lost(postgresql_url: str) -> None:
    import psycopg

    with Store.open(postgresql_url) as store:
        run_id, session = store.begin(record())
        with psycopg.connect(postgresql_url, autocommit=True) as other:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            other.execute(f"{others} AND datname = current_database()")
        assert store.write(run_id, session, [Finished(0, 0.1, outcome(), None)]) == 1


def test_a_server_that_does_not_answer_is_reported(postgresql_server: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"failed: connection is bad: .*\nhelp: check that the database"):
        Store.open(f"postgresql:///x?host={tmp_path}")
    with pytest.raises(StoreError, match=r"^the store `postgresql://me:\*\*\*@/x\?host="):
        Store.open(f"postgresql://me:secret@/x?host={tmp_path}")


def test_a_database_of_another_program_is_no_store(postgresql_url: str) -> None:
    import psycopg

    with psycopg.connect(postgresql_url, autocommit=True) as other:
        other.execute("CREATE TABLE letters (text TEXT)")
        Store.open(postgresql_url).close()
        other.execute("DROP TABLE engpass_store")
    with pytest.raises(StoreError, match="is a database, but not a store of Engpass"):
        Store.open(postgresql_url)


@pytest.mark.skipif(postgresql.missing() is not None, reason=str(postgresql.missing()))
def test_a_server_of_killed_tests_ends() -> None:
    code = (
        "import postgresql_server, time\n"
        "with postgresql_server.server() as url: print(url, flush=True); time.sleep(60)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) as tests:
        assert tests.stdout is not None
        folder = Path(tests.stdout.readline().strip().partition("host=")[2])
        assert (folder / "data/postmaster.pid").exists()
        tests.kill()
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists(), "the folder is removed after the server has ended"


def test_a_file_needs_no_driver_of_servers(tmp_path: Path) -> None:
    code = (
        "import sys; from engpass.store import Store; Store.open('s.db').close();"
        "print([m for m in ('psycopg', 'sqlalchemy', 'pyarrow') if m in sys.modules])"
    )
    env = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=tmp_path)
    assert done.stdout.strip() == "[]"


def test_points_of_a_run_follow_its_plan(testbed_file: Path, tmp_path: Path) -> None:
    lan = engpass.load(testbed_file)
    result = lan.run(store=tmp_path / "s.db")
    assert result.record.plan == lan.plan()
    assert result.record.points_total == POINTS
    for point, found in zip(list(lan.plan()), result.outcomes, strict=True):
        assert (point.engine, point.variant, point.repeat) == (found.engine, found.variant, found.repeat)
