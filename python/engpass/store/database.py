"""Opens databases, runs transactions, and turns database errors into messages for users."""

from __future__ import annotations

import contextlib
import os
import random
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import quote

from engpass.error import StoreError
from engpass.store import migrations, schema
from engpass.store.transaction import Connection, Kind, Transaction

BUSY_SECONDS = 60
"""Seconds that a writer waits for another. A batch takes milliseconds; a longer wait means a held lock."""

T = TypeVar("T")


class Database:
    """One database with atomic transactions, whose errors are raised as `StoreError`."""

    def __init__(self, kind: Kind, where: str) -> None:
        self._kind, self.where = kind, where
        self._idle: list[Connection] = []
        # The finalizer closes the connections of a store that the caller never closes, as in a result.
        weakref.finalize(self, _close, self._idle)
        # A store in memory has a single connection, which allows one transaction at a time.
        self.in_memory = where == IN_MEMORY
        self._turn = threading.RLock() if self.in_memory else contextlib.nullcontext()

    @contextlib.contextmanager
    def read(self) -> Iterator[Transaction]:
        """Open a read transaction, which sees one consistent state of the database."""
        try:
            with self._transaction(self._kind.begin_read) as transaction:
                yield transaction
        except self._kind.error as error:
            raise explained(error, self.where) from error

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction, durable on return; after a conflict `work` is called again."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                with self._transaction(self._kind.begin_write) as transaction:
                    return work(transaction)
            except self._kind.error as error:
                if not _passing(error) or time.monotonic() > deadline:
                    raise explained(error, self.where) from error
                # A random pause keeps writers that wait for the same lock out of step.
                time.sleep(random.uniform(0.01, 0.1))  # noqa: S311 (no secret)

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        with self._turn:
            connection = self._connection()
            try:
                connection.execute(begin)
                yield Transaction(connection, self._kind)
                connection.commit()
            except BaseException:
                with contextlib.suppress(self._kind.error):
                    connection.rollback()
                raise
            finally:
                self._idle.append(connection)

    def _connection(self) -> Connection:
        """An idle connection, or a new one."""
        with contextlib.suppress(IndexError):
            while True:
                idle = self._idle.pop()
                if self._kind.is_alive(idle):
                    return idle
                idle.close()
        return self._kind.connect()

    def close(self) -> None:
        """Close all connections; SQLite then merges its log into the file."""
        _close(self._idle)


def _close(connections: list[Connection]) -> None:
    while connections:
        connections.pop().close()


IN_MEMORY = ":memory:"
_URL_HELP = "a store is a file (SQLite) or `postgresql://user@host/database`"


def open_database(where: str, create: bool) -> Database:
    """Open a store by path or URL and bring it to the current version; raises `StoreError`.

    With `create` a missing store is created, and the store must be writable. Without it the store must exist,
    and may be on read-only media.
    """
    scheme, found, rest = where.partition("://")
    backend = scheme.partition("+")[0] if found else "sqlite"
    if found and not re.fullmatch(r"[A-Za-z][\w+.-]*", scheme):
        raise StoreError(f"`{where}` is not a database URL", _URL_HELP)
    if backend == "postgresql":
        return _postgresql(rest)
    if backend != "sqlite":
        raise StoreError(f"a store cannot be on `{backend}`", _URL_HELP)
    # As in SQLAlchemy's URLs, the path begins after a third slash.
    path = rest.removeprefix("/") if found else where
    if path in ("", IN_MEMORY):
        return _opened(_sqlite(IN_MEMORY), IN_MEMORY, create=True)
    return _file(Path(path), create)


def _opened(kind: Kind, where: str, create: bool) -> Database:
    database = Database(kind, where)
    try:
        # Read the version first: a store of the current version then needs no write lock.
        with database.read() as transaction:
            found = migrations.current(transaction, where)
        if found is None and not create:
            raise StoreError(f"`{where}` has no runs", "`engpass run FILE` creates one")  # noqa: TRY301
        if found is None or found < schema.VERSION:
            database.write(lambda transaction: migrations.upgrade(transaction, where))
        else:
            migrations.check_not_newer(found, where)
    except BaseException:
        database.close()
        raise
    return database


def _sqlite(uri: str, *, durable: bool = False) -> Kind:
    def connect() -> sqlite3.Connection:
        # Without an isolation level, sqlite3 opens no transactions itself, which it does late.
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        if durable:
            _use_wal(connection)
            # In WAL mode NORMAL survives `kill -9`, since the kernel has the written data, but loses the last
            # commits at a power failure. FULL syncs the log at every commit, so that stored points survive
            # that, too. A batch holds all points that arrived during the previous sync; the cost therefore
            # hardly grows with the number of points.
            connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        return connection

    return Kind(
        connect,
        lambda _: True,
        sqlite3.Error,
        marker="?",
        begin_read="BEGIN",
        # A writer takes its lock at the start: upgrading a read lock fails at once if another process writes.
        begin_write="BEGIN IMMEDIATE",
        tables="SELECT name FROM sqlite_master WHERE type = 'table'",
        is_own_file=True,
    )


def _file(path: Path, create: bool) -> Database:
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
    return _opened(_sqlite(uri, durable=not query), where, create)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


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


def _postgresql(rest: str) -> Database:
    """Open a store on a server, given the part of its URL after `postgresql://`."""
    hidden = re.sub(r"([?&]password=)[^&]*", r"\1***", re.sub(r"^([^/@:]*):[^/]*@", r"\1:***@", rest))
    where = f"postgresql://{hidden}"
    try:
        import psycopg
    except ImportError as error:
        raise StoreError(
            f"`{where}` needs a driver that is not installed: {error}", "`pip install 'engpass[postgresql]'`"
        ) from None

    def connect() -> Connection:
        # Transactions are opened by `BEGIN`, as with SQLite. Psycopg accepts only literals as statements, and
        # those of this package are.
        return cast("Connection", psycopg.connect(f"postgresql://{rest}", autocommit=True))

    def is_alive(connection: Connection) -> bool:
        # A server may have been restarted since.
        try:
            connection.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    kind = Kind(
        connect,
        is_alive,
        psycopg.Error,
        marker="%s",
        begin_read="BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        begin_write="BEGIN",
        tables="SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
        is_own_file=False,
    )
    return _opened(kind, where, create=True)


def _code(error: Exception) -> int | None:
    """SQLite's primary error code; `None` for other databases."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else int(code) & 0xFF


_PASSING = ("40001", "40P01", "23505", "42P07", "42710", "42701")
"""Errors of PostgreSQL: serialization failure, deadlock, and two processes that create the same row or table,
or upgrade the tables, at once."""


def _passing(error: Exception) -> bool:
    """Whether a retry may help, because another writer was faster."""
    if (code := _code(error)) is not None:
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(error, "sqlstate", None) in _PASSING


def explained(error: Exception, where: str) -> StoreError:
    """The `StoreError` for an error of the database, with its cause and a cure."""
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    keeps = "; stored points are kept"
    match _code(error):
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
