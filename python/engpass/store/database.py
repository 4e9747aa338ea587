"""Opens databases, runs transactions, and turns database errors into messages for users."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import QueuePool, StaticPool

from engpass.error import StoreError
from engpass.store import migrations, schema

BUSY_SECONDS = 60
"""Seconds that a writer waits for another. A batch takes milliseconds; a longer wait means a held lock."""

T = TypeVar("T")


class Database:
    """One database with atomic transactions, whose errors are raised as `StoreError`."""

    def __init__(self, engine: Engine, where: str) -> None:
        self.engine = engine
        self.where = where
        # A store in memory has a single connection, which allows one transaction at a time.
        shared = isinstance(engine.pool, StaticPool)
        self._turn = threading.RLock() if shared else contextlib.nullcontext()

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a read transaction, which sees one consistent state of the database."""
        with self._turn, translated(self.where), self.engine.connect() as connection, connection.begin():
            yield connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, durable on return; after a conflict `work` is called again."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                with self._turn, self.engine.connect() as connection:
                    connection.execution_options(engpass_write=True)
                    with connection.begin():
                        return work(connection)
            except DBAPIError as error:
                if not _passing(error) or time.monotonic() > deadline:
                    raise explained(error, self.where) from error
                # A random pause keeps writers that wait for the same lock out of step.
                time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 (no secret)

    def close(self) -> None:
        """Close all connections; SQLite then merges its log into the file."""
        self.engine.dispose()


def open_database(where: str, create: bool) -> Database:
    """Open a store by path or URL and bring it to the current version; raises `StoreError`.

    With `create` a missing store is created, and the store must be writable. Without it the store must exist,
    and may be on read-only media.
    """
    if where == ":memory:":
        return _opened(_memory_engine(), "memory", create=True)
    if "://" not in where:
        return _sqlite(Path(where), create)
    try:
        url = make_url(where)
    except ArgumentError:
        raise StoreError(f"`{where}` is not a database URL", _URL_HELP) from None
    backend = url.get_backend_name()
    if backend == "sqlite":
        if url.database in (None, "", ":memory:"):
            return _opened(_memory_engine(), "memory", create=True)
        return _sqlite(Path(str(url.database)), create)
    if backend == "postgresql":
        return _postgresql(url)
    raise StoreError(f"a store cannot be on `{backend}`", _URL_HELP)


_URL_HELP = "a store is a file (SQLite) or `postgresql://user@host/database`"


def _opened(engine: Engine, where: str, create: bool) -> Database:
    database = Database(engine, where)
    try:
        if create:
            # Read the version first: a store of the current version then needs no write lock.
            with database.read() as connection:
                found = migrations.current(connection, where)
            if found != schema.VERSION:
                database.write(lambda connection: migrations.upgrade(connection, where))
        else:
            with database.read() as connection:
                found = migrations.current(connection, where)
            if found is None:
                raise StoreError(f"`{where}` has no runs", "`engpass run FILE` creates one")  # noqa: TRY301
            if found < schema.VERSION:
                database.write(lambda connection: migrations.upgrade(connection, where))
            migrations.check_not_newer(found, where)
    except BaseException:
        database.close()
        raise
    return database


def _memory_engine() -> Engine:
    # All threads share one connection: another connection would open another, empty database.
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    _use_own_transactions(engine, durable=False)
    return engine


def _sqlite(path: Path, create: bool) -> Database:
    where = os.fsencode(path).decode("utf-8", "replace")
    try:
        exists, directory = path.exists(), path.is_dir()
        parent_exists = path.absolute().parent.is_dir()
    except (OSError, ValueError) as error:
        raise StoreError(f"the store `{where}` cannot be opened: {error}", "check the path") from None
    if directory:
        raise StoreError(
            f"the store `{where}` is a directory", f"give a file in it, such as `{where}/engpass.db`"
        )
    if not create and not exists:
        raise StoreError(
            f"there is no store `{where}`",
            "`engpass run FILE` creates one; `--store` gives another path",
        )
    if not parent_exists:
        raise StoreError(
            f"there is no directory `{path.parent}` for the store", "create it, or check `--store`"
        )
    query = ""
    if not create and not _writable(path):
        # Even reading a WAL database needs its -shm file. If that cannot be created and there is no log to
        # read, SQLite can treat the file as immutable.
        query = "?mode=ro" if Path(f"{path}-wal").exists() else "?mode=ro&immutable=1"
    uri = f"file:{quote(os.fsencode(path.absolute()))}{query}"
    engine = create_engine(
        "sqlite://",
        poolclass=QueuePool,
        creator=lambda: sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False),
    )
    _use_own_transactions(engine, durable=not query)
    return _opened(engine, where, create)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def _use_own_transactions(engine: Engine, durable: bool) -> None:
    @event.listens_for(engine, "connect")
    def connect(connection: Any, _record: object) -> None:  # noqa: ANN401 (DBAPI connections have no common type)
        # Stop sqlite3 from opening transactions itself, which it does late; `begin` opens them.
        connection.isolation_level = None
        if durable:
            _use_wal(connection)
            # In WAL mode NORMAL survives `kill -9`, since the kernel has the written data, but loses the last
            # commits at a power failure. FULL syncs the log at every commit, so that stored points survive
            # that, too. A batch holds all points that arrived during the previous sync; the cost therefore
            # hardly grows with the number of points.
            connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes its lock at the start: upgrading a read lock fails at once if another process writes.
        write = connection.get_execution_options().get("engpass_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode, in which readers do not wait for the writer.

    The busy timeout does not cover the switch itself, so this function repeats it.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            # File systems without shared memory keep another mode, which is slower but as safe.
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _postgresql(url: URL) -> Database:
    where = url.render_as_string(hide_password=True)
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    try:
        engine = create_engine(url, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise StoreError(
            f"`{where}` needs a driver that is not installed: {error}", "`pip install 'engpass[postgresql]'`"
        ) from None
    return _opened(engine, where, create=True)


@contextlib.contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn errors of the database into `StoreError`."""
    try:
        yield
    except DBAPIError as error:
        raise explained(error, where) from error


def _code(error: DBAPIError) -> int | None:
    return getattr(error.orig, "sqlite_errorcode", None)


def _passing(error: DBAPIError) -> bool:
    """Whether a retry may help, because another writer was faster."""
    code = _code(error)
    if code is not None:
        return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    # PostgreSQL: serialization failure, deadlock, and two processes that create the tables at once.
    return getattr(error.orig, "sqlstate", None) in ("40001", "40P01", "23505", "42P07")


def explained(error: DBAPIError, where: str) -> StoreError:
    """The `StoreError` for an error of the database, with its cause and a cure."""
    code = _code(error)
    reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    keeps = "; stored points are kept"
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return StoreError(f"`{where}` is not a database", "give another file with `--store`")
        case sqlite3.SQLITE_FULL:
            return StoreError(
                f"no space left for the store `{where}`{keeps}", "free some space, then run again"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreError(
                f"the store `{where}` cannot be written: {reason}",
                "it needs a writable directory, also for its log; `--store` gives another path",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreError(
                f"the store `{where}` has been locked by another program for {BUSY_SECONDS} s{keeps}",
                "end that program, then run again",
            )
        case sqlite3.SQLITE_CORRUPT:
            return StoreError(f"the store `{where}` is damaged: {reason}", "restore it from a backup")
        case sqlite3.SQLITE_IOERR:
            return StoreError(
                f"the store `{where}` cannot be read or written: {reason}{keeps}",
                "check whether the disk is full or failing, then run again",
            )
        case _:
            return StoreError(f"the store `{where}` failed: {reason}", "check that the database is reachable")
