"""Opening a database, its transactions, and what its errors mean to a user."""

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
"""How long one writer waits for another. A batch takes milliseconds: then somebody holds a lock."""

T = TypeVar("T")


class Database:
    """One database: transactions that end in the file or not at all, and errors in plain words."""

    def __init__(self, engine: Engine, where: str) -> None:
        self.engine = engine
        self.where = where
        # A store in memory has one connection, and that one transaction at a time.
        shared = isinstance(engine.pool, StaticPool)
        self._turn = threading.RLock() if shared else contextlib.nullcontext()

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the database."""
        with self._turn, translated(self.where), self.engine.connect() as connection, connection.begin():
            yield connection

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do `work` in one transaction, durable when this returns; a conflict calls it again."""
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
                # Not in step with the others that wait for the same lock.
                time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 (no secret)

    def close(self) -> None:
        """Give up all connections; SQLite then folds its log into the file."""
        self.engine.dispose()


def open_database(where: str, create: bool) -> Database:
    """Open a store by path or URL and bring it to the current version; raises `StoreError`.

    With `create` it may be new and will be written to; without, it must exist, and read-only media will do.
    """
    if where == ":memory:":
        return _opened(_memory_engine(), "memory", create=True)
    if "://" not in where:
        return _sqlite(Path(where), create)
    try:
        url = make_url(where)
    except ArgumentError:
        raise StoreError(f"`{where}` is no URL of a database", _URL_HELP) from None
    backend = url.get_backend_name()
    if backend == "sqlite":
        if url.database in (None, "", ":memory:"):
            return _opened(_memory_engine(), "memory", create=True)
        return _sqlite(Path(str(url.database)), create)
    if backend == "postgresql":
        return _postgresql(url)
    raise StoreError(f"there is no store on `{backend}`", _URL_HELP)


_URL_HELP = "a store is a file (SQLite) or `postgresql://user@host/database`"


def _opened(engine: Engine, where: str, create: bool) -> Database:
    database = Database(engine, where)
    try:
        if create:
            # Reading first keeps the usual case, a store that is up to date, free of write locks.
            with database.read() as connection:
                found = migrations.current(connection, where)
            if found != schema.VERSION:
                database.write(lambda connection: migrations.upgrade(connection, where))
        else:
            with database.read() as connection:
                found = migrations.current(connection, where)
            if found is None:
                raise StoreError(f"`{where}` holds no runs", "`engpass run FILE` makes one")  # noqa: TRY301
            if found < schema.VERSION:
                database.write(lambda connection: migrations.upgrade(connection, where))
            migrations.check_not_newer(found, where)
    except BaseException:
        database.close()
        raise
    return database


def _memory_engine() -> Engine:
    # One connection for all threads: every other one would be another, empty database.
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
            f"the store `{where}` is a directory", f"name a file in it, `{where}/engpass.db` say"
        )
    if not create and not exists:
        raise StoreError(
            f"there is no store `{where}`",
            "`engpass run FILE` makes one; `--store` names one at another place",
        )
    if not parent_exists:
        raise StoreError(
            f"there is no directory `{path.parent}` for the store", "make it, or check `--store`"
        )
    query = ""
    if not create and not _writable(path):
        # A WAL database needs its -shm file beside it even for reading. Where none can be made and no log is
        # left to read, SQLite may take the file as it is.
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
        # sqlite3 would open transactions by itself, and late; we say when, see `begin`.
        connection.isolation_level = None
        if durable:
            _use_wal(connection)
            # In WAL mode NORMAL would already survive `kill -9` (what was written is the kernel's then), but
            # loses the last commits when the power fails. FULL syncs the log at every commit, and then a
            # point that was counted is there after that, too. A batch takes as many points as came in during
            # the sync before it, so the price hardly grows with the number of points.
            connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes its lock at the start: upgrading a read lock fails at once if another process writes.
        write = connection.get_execution_options().get("engpass_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _use_wal(connection: sqlite3.Connection) -> None:
    """In WAL mode no reader waits for the writer. The change itself is not covered by the busy timeout."""
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            # File systems without shared memory answer with another mode: slower, as safe.
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
    """Turn what the database says into a `StoreError`."""
    try:
        yield
    except DBAPIError as error:
        raise explained(error, where) from error


def _code(error: DBAPIError) -> int | None:
    return getattr(error.orig, "sqlite_errorcode", None)


def _passing(error: DBAPIError) -> bool:
    """Whether trying again may help: another writer was faster."""
    code = _code(error)
    if code is not None:
        return code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    # PostgreSQL: serialization failure, deadlock, and two processes that create the tables at once.
    return getattr(error.orig, "sqlstate", None) in ("40001", "40P01", "23505", "42P07")


def explained(error: DBAPIError, where: str) -> StoreError:
    """What an error of the database means, and what to do."""
    code = _code(error)
    reason = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    keeps = "; points stored before are kept"
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return StoreError(f"`{where}` is not a database", "name another file with `--store`")
        case sqlite3.SQLITE_FULL:
            return StoreError(
                f"there is no room left for the store `{where}`{keeps}", "free some, then run again"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreError(
                f"the store `{where}` cannot be written: {reason}",
                "it needs a writable directory, for its log too; `--store` names another place",
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreError(
                f"the store `{where}` has been locked by another program for {BUSY_SECONDS} s{keeps}",
                "end that program, then run again",
            )
        case sqlite3.SQLITE_CORRUPT:
            return StoreError(f"the store `{where}` is damaged: {reason}", "take a copy from a backup")
        case sqlite3.SQLITE_IOERR:
            return StoreError(
                f"the store `{where}` cannot be read or written: {reason}{keeps}",
                "look for a full or failing disk, then run again",
            )
        case _:
            return StoreError(f"the store `{where}` fails: {reason}", "check that the database is reachable")
